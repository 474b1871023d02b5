//! The page of `lookback inspect attention --out x.html`.

use crate::reliability::sampled;
use crate::report::sentence;
use crate::support::page::PageView;
use lookback::report::attention::measure::summarize;
use lookback::report::attention::{AttentionMap, Part, SentenceMaps, html};
use lookback::report::page::Markup;

/// Two layers of three heads over `n` words, each head with weights of its own.
fn sentences(n: usize) -> Vec<SentenceMaps> {
    let words = ["ein", "<b>", "\"Hund\"", "läuft", "😀", "▁im", "Park"];
    let tokens = |n: usize| -> Vec<String> {
        (0..n).map(|i| words[i % words.len()].to_string()).chain(["</s>".to_string()]).collect()
    };
    let map = |part: Part, layer: usize, head: usize, rows: usize, columns: usize| {
        let weight = |i: usize, j: usize| 1.0 / (1.0 + (i * head).abs_diff(j * layer) as f32);
        let row = |i: usize| {
            let row: Vec<f32> = (0..columns).map(|j| weight(i, j)).collect();
            let sum: f32 = row.iter().sum();
            row.into_iter().map(move |weight| weight / sum)
        };
        AttentionMap {
            part,
            layer: Some(layer),
            head: Some(head),
            n_rows: rows,
            n_columns: columns,
            weights: (0..rows).flat_map(row).collect(),
            is_causal: false,
        }
    };
    let heads = || (1..=2).flat_map(|layer| (1..=3).map(move |head| (layer, head)));
    let of = |number: usize, n: usize| SentenceMaps {
        number,
        source_text: tokens(n)[..n].join(" "),
        target_text: "<script>alert(1)</script> dog".into(),
        source: tokens(n),
        input: tokens(n),
        target: tokens(n),
        probabilities: vec![0.5; n + 1],
        maps: [Part::Cross, Part::Encoder]
            .into_iter()
            .flat_map(|part| heads().map(move |(layer, head)| map(part, layer, head, n + 1, n + 1)))
            .collect(),
    };
    vec![of(1, n), of(4, 3)]
}

fn page(sentences: &[SentenceMaps]) -> String {
    html::page("Attention", "The model x.", sentences, &summarize(sentences), &Markup::default()).render()
}

#[test]
fn nothing_stands_in_a_readers_way() {
    let Some(mut view) = PageView::open(&page(&sentences(8))) else { return };
    view.audit_everywhere("attention", &["view=matrix&layer=1&head=2", "view=lines", "view=grid"]);
    view.audit_print("attention");
    view.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    view.audit("attention, unfolded");
    let Some(mut view) = PageView::open(&page(&sentences(60))) else { return };
    view.audit_everywhere("attention of 60 words", &sampled(["view=lines", "view=matrix"], 2).collect::<Vec<_>>());
    let Some(mut view) = PageView::open(&page(&[sentence()])) else { return };
    view.audit("a small one");
}

#[test]
fn cells_fill_the_frame_and_numbers_on_them_can_be_read() {
    let Some(mut view) = PageView::open(&page(&sentences(8))) else { return };
    let share = view.value("(place.wide * current.columns) / frame.clientWidth").as_f64().unwrap();
    assert!(share > 0.55, "the matrix takes {share} of its frame");
    view.go("sentence=4");
    assert!(view.value("place.wide").as_f64() <= Some(64.0) && view.value("place.wide").as_f64() > Some(50.0));
    // Black or white on every shade, in both schemes.
    for scheme in ["light", "dark"] {
        view.prefer(&[("prefers-color-scheme", scheme)]);
        let worst = "Math.min(...[...Array(101).keys()].map(i => { \
                     const ground = blend(theme('--weight').split(',').map(Number), channels(theme('--ground')), i / 100); \
                     const [a, b] = [lightness(channels(readable(ground))), lightness(ground)].sort((x, y) => y - x); \
                     return (a + 0.05) / (b + 0.05); }))";
        let worst = view.value(worst).as_f64().unwrap();
        assert!(worst >= 4.5, "{scheme}: {worst}");
    }
}

#[test]
fn a_click_on_a_head_swaps_the_matrix_that_is_in_sight() {
    let Some(mut view) = PageView::open(&page(&sentences(8))) else { return };
    assert_eq!(view.value("document.querySelectorAll('#strip .thumbnail').length"), 6);
    view.point_and_click("#strip [data-map='2,3']");
    view.wait("shown.layer === 2 && shown.head === 3 && current.weights.length === 81");
    view.settle();
    assert_eq!(view.text("document.querySelector('#strip [aria-pressed=true]').dataset.map"), "2,3");
    assert!(view.state().contains("layer=2&head=3"));
    // From the table far below, the picture comes into sight.
    view.value("document.getElementById('attention-heads').open = true; scrollTo(0, document.body.scrollHeight)");
    view.settle();
    view.value("document.querySelector('#heads tbody tr button').click()");
    view.wait("shown.layer === 1 && shown.head === 1");
    view.settle();
    assert!(
        view.holds(
            "frame.getBoundingClientRect().top < innerHeight - 100 && frame.getBoundingClientRect().bottom > 100"
        )
    );
    // Columns are sorted by keyboard, and say so.
    view.value("document.querySelectorAll('#heads th button')[5].focus()");
    view.key("Enter");
    assert_eq!(view.text("document.querySelectorAll('#heads th')[5].getAttribute('aria-sort')"), "ascending");
    let sorted = "(v => v.every((x, i) => !i || v[i - 1] <= x))([...document.querySelectorAll('#heads tbody tr')].map(r => Number(r.cells[5].dataset.value)))";
    assert!(view.holds(sorted));
}

#[test]
fn keys_work_wherever_the_focus_is_and_the_address_keeps_the_place() {
    let Some(mut view) = PageView::open(&page(&sentences(8))) else { return };
    for control in ["#relative", "#least", "#zoom", "#head", "#sentence"] {
        view.go("layer=1&head=1");
        view.point_and_click(control);
        view.press("Escape");
        view.settle();
        view.key("ArrowRight");
        assert_eq!(view.value("shown.head"), 2, "{control}");
    }
    for (key, expected) in [
        ("ArrowLeft", "shown.head === 1"),
        ("ArrowDown", "shown.layer === 2"),
        ("ArrowUp", "shown.layer === 1"),
        ("a", "shown.layer === 'average' && shown.head === 'average'"),
        ("j", "shown.row === 0"),
        ("j", "shown.row === 1 && location.hash.includes('row=2')"),
        ("k", "shown.row === 0"),
        ("Escape", "shown.row === null"),
        ("c", "shown.part === 'encoder'"),
        ("v", "shown.view === 'lines'"),
        ("v", "shown.view === 'grid'"),
        ("v", "shown.view === 'matrix'"),
        ("n", "shown.sentence === 1"),
        ("p", "shown.sentence === 0"),
        ("+", "document.getElementById('zoom').value === '10'"),
        ("-", "document.getElementById('zoom').value === '0'"),
        ("m", "marks.areShown"),
        ("m", "!marks.areShown"),
        ("f", "isWall()"),
        ("f", "!isWall()"),
    ] {
        view.key(key);
        view.settle();
        assert!(view.holds(expected), "{key}: not {expected}");
    }
    view.go("sentence=4&part=encoder&layer=2&head=3&view=lines&row=2");
    assert!(view.holds("sentence().number === 4 && shown.part === 'encoder' && shown.layer === 2 && shown.head === 3 && shown.view === 'lines' && shown.row === 1"));
    assert_eq!(view.faults, Vec::<String>::new());
}

#[test]
fn the_table_and_the_copies_have_the_numbers_of_the_picture() {
    let all = sentences(8);
    let Some(mut view) = PageView::open(&page(&all)) else { return };
    view.go("layer=2&head=3");
    let map = &all[0].maps[5];
    let weight = map.row(3)[4];
    assert!((view.value("weightRows()[4][5]").as_f64().unwrap() - f64::from(weight)).abs() < 2e-5);
    view.value("document.getElementById('weights-details').open = true");
    view.settle();
    let cell = view.text("document.querySelector('#weights').rows[4].cells[5].innerText");
    assert_eq!(cell, format!("{weight:.3}"));
    view.audit_copies("attention", "#picture", "looked at");
    // Lines are shapes in the copy, not dots.
    view.go("view=lines");
    assert!(view.holds("pictureOf(document.getElementById('picture')).split('<path').length > 10"));
}
