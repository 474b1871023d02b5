//! Drawings: the SVG of a small map, labels that do not touch, PNG.

use lookback::report::heat_map::{HeatMap, grid, heat_map};
use lookback::report::png::png;
use lookback::report::states::scatter::{Dot, scatter};
use lookback::report::svg::{fitted, text_width};
use std::io::Read;

fn drawn<'a>(n: usize, words: &'a [String], values: &'a [f32]) -> HeatMap<'a> {
    let labels = || words[..n].iter().map(String::as_str).collect::<Vec<_>>();
    let values = &values[..n * n];
    HeatMap {
        title: "title".into(),
        rows: labels(),
        columns: labels(),
        row_axis: "target",
        column_axis: "source",
        values,
        unit: "weight",
    }
}

fn words(n: usize) -> Vec<String> {
    let kinds = ["▁Wirtschaft", "经济增长", "שלום", "مرحبا", "🐕", "im", "Straßenbahnhaltestellenschilder"];
    (0..n).map(|i| kinds[i % kinds.len()].to_string()).collect()
}

#[test]
fn a_small_map_as_svg() {
    let map = HeatMap {
        title: "What each target word looks at".into(),
        rows: vec!["le", "chien"],
        columns: vec!["<the>", "dog"],
        row_axis: "target",
        column_axis: "source",
        values: &[1.0, 0.0, 0.25, 0.75],
        unit: "weight",
    };
    insta::assert_snapshot!(heat_map(&map));
}

/// The boxes of the labels beside and above a map, as far as they are written upright or turned by 90 degrees.
fn overlaps(svg: &str, size: f64) -> usize {
    let number = |text: &str, after: &str| -> Option<f64> {
        text.split_once(after)?.1.split(['"', ' ', ')']).next()?.parse().ok()
    };
    let texts: Vec<&str> = svg.lines().filter(|line| line.starts_with("<text")).collect();
    let rows: Vec<f64> = texts
        .iter()
        .filter(|t| t.contains("text-anchor=\"end\"") && t.contains(" x=\""))
        .filter_map(|t| number(t, " y=\""))
        .collect();
    let columns: Vec<f64> = texts
        .iter()
        .filter(|t| t.contains("rotate(-90)") && !t.contains("end"))
        .filter_map(|t| number(t, "translate("))
        .collect();
    let close = |places: &[f64]| places.windows(2).filter(|pair| (pair[1] - pair[0]).abs() < size).count();
    // The last text at the right anchor is the 0 of the scale.
    close(&rows[..rows.len() - 1]) + close(&columns)
}

#[test]
fn labels_do_not_touch_at_any_length() {
    let words = words(500);
    let values: Vec<f32> = (0..500 * 500).map(|i| if i % 501 == 0 { 1.0 } else { 0.0 }).collect();
    for n in [1, 5, 50, 200, 500] {
        let svg = heat_map(&drawn(n, &words, &values));
        assert_eq!(overlaps(&svg, 9.5), 0, "{n} tokens");
        let size = |key: &str| svg.split_once(key).unwrap().1.split('"').next().unwrap().parse::<f64>().unwrap();
        assert!(size("width=\"") < 3000.0 && size("height=\"") < 3000.0, "{n} tokens");
    }
    assert!(text_width("mmm", 10.0) > text_width("iii", 10.0));
    let cut = fitted("Straßenbahnhaltestellenschilder", 10.0, 60.0);
    assert!(cut.ends_with('…') && text_width(&cut, 10.0) <= 60.0, "{cut}");
}

/// Width, height and the bytes of the rows of a PNG.
fn decoded(png: &[u8]) -> (u32, u32, Vec<u8>) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    let data = png.windows(4).position(|kind| kind == b"IDAT").unwrap();
    let len = number(data - 4) as usize;
    let mut rows = Vec::new();
    flate2::read::ZlibDecoder::new(&png[data + 4..data + 4 + len]).read_to_end(&mut rows).unwrap();
    (number(16), number(20), rows)
}

#[test]
fn a_png_has_the_size_of_its_svg_and_is_not_empty() {
    let words = words(7);
    let values: Vec<f32> = (0..49).map(|i| i as f32 / 49.0).collect();
    let svg = heat_map(&drawn(7, &words, &values));
    let size = |key: &str| svg.split_once(key).unwrap().1.split('"').next().unwrap().parse::<u32>().unwrap();
    let (width, height, rows) = decoded(&png(&svg, 2.0).unwrap());
    assert_eq!((width, height), (2 * size("width=\""), 2 * size("height=\"")));
    assert_eq!(rows.len(), (height * (3 * width + 1)) as usize);
    assert!(rows.iter().filter(|byte| **byte != 0).count() > 1000, "hardly anything is drawn");
    assert!(png(&svg, 1000.0).unwrap_err().to_string().contains("choose one map with --layer and --head"));
}

/// Series whose colours come round again are told apart by dashes, in pictures too.
#[test]
fn a_dashed_line_is_dashed_in_a_picture() {
    let n_inked = |dashes: &str| {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"110\" height=\"10\">\
             <path d=\"M0 0H110V10H0Z\" fill=\"#fff\"/><path d=\"M0 5H110\" stroke=\"#000\" stroke-width=\"2\"{dashes}/></svg>"
        );
        let (width, _, rows) = decoded(&png(&svg, 1.0).unwrap());
        // Each row begins with the filter's byte and holds the difference to the row above; the line is in rows 4 and 5.
        let bytes = rows.len() / 10;
        let mut row = vec![0u8; bytes - 1];
        for line in rows.chunks(bytes).take(5) {
            assert_eq!(line[0], 2, "the filter is Up");
            row.iter_mut().zip(&line[1..]).for_each(|(above, difference)| *above = above.wrapping_add(*difference));
        }
        row.chunks(row.len() / width as usize).filter(|pixel| pixel[0] < 128).count()
    };
    assert_eq!(n_inked(""), 110);
    assert_eq!(n_inked(" stroke-dasharray=\"7 4\""), 70);
}

#[test]
fn a_grid_has_every_matrix_and_labels_only_where_they_fit() {
    let words = words(100);
    let values = vec![0.1; 100 * 100];
    for (n, labelled) in [(5, true), (100, false)] {
        let row = || vec![drawn(n, &words, &values), drawn(n, &words, &values)];
        let svg = grid("every head", &[row(), row(), row()]);
        assert_eq!(svg.matches(">title<").count(), 6);
        assert_eq!(svg.contains("Wirtschaft"), labelled);
    }
}

#[test]
fn a_scatter_names_groups_and_shows_sentences_on_hovering() {
    let dot = |x, group, name: &str| Dot { at: [x, 0.0], group, name: name.into(), title: format!("{name} & more") };
    let dots = [dot(0.0, 0, "one"), dot(1.0, 1, "two"), dot(1.0, 1, "three")];
    let svg = scatter("Sentences", &dots, &["first".into(), "second".into()], [0.75, 0.125]);
    for part in
        ["component 1: 75.0 % of the variance", "component 2: 12.5 %", "<title>one &amp; more</title>", ">second<"]
    {
        assert!(svg.contains(part), "{part} is missing");
    }
}
