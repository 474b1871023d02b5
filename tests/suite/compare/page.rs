//! The page of `lookback compare` in Chromium.

use super::example::example;
use crate::support::page::PageView;
use lookback::report::comparison::{AlignedSentence, Comparison, Map, html};

/// With a map whose cells have room for numbers, from the lightest to the darkest.
fn with_maps() -> Comparison {
    let tokens = |n: usize| (0..n).map(|i| format!("t{i}")).collect::<Vec<_>>();
    let map = Map {
        contestant: "one <b>".into(),
        text: "t0 t1".into(),
        columns: tokens(5),
        rows: tokens(4),
        weights: (0..20).map(|i| i as f32 / 19.0).collect(),
    };
    let sentence = AlignedSentence {
        what: "of middle length".into(),
        source: "t0 t1".into(),
        reference: "t0 t1".into(),
        other_references: Vec::new(),
        maps: vec![map],
    };
    Comparison { alignments: vec![sentence], ..example() }
}

#[test]
fn nothing_stands_in_a_readers_way() {
    let Some(mut view) = PageView::open(&html::page(&example()).render()) else { return };
    view.audit_everywhere("compare", &[""]);
    view.audit_print("compare");
    view.show(&html::page(&with_maps()).render());
    view.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    for scheme in ["light", "dark"] {
        view.prefer(&[("prefers-color-scheme", scheme)]);
        for width in [1440, 390] {
            view.resize(width, 900);
            view.audit(&format!("compare, unfolded, {scheme}, {width}"));
            // Numbers on cells of any shade: their own ground is a path behind them.
            let worst = "(() => { const svg = document.querySelector('.maps svg'), ink = theme('--ink'); \
                         const fills = [...svg.querySelectorAll('path, rect')].map(e => getComputedStyle(e).fill).filter(f => f.startsWith('rgba')); \
                         const ground = channels(getComputedStyle(svg.parentNode).backgroundColor); \
                         return [fills.length, Math.min(...fills.map(f => { const c = f.match(/[\\d.]+/g).map(Number); \
                         const [a, b] = [lightness(channels(ink)), lightness(blend(c.slice(0, 3), ground, c[3]))].sort((x, y) => y - x); \
                         return (a + 0.05) / (b + 0.05); }))]; })()";
            let worst = view.value(worst);
            assert!(worst[0].as_u64() > Some(10) && worst[1].as_f64() >= Some(4.5), "{scheme}: {worst}");
            let shown = "[...document.querySelectorAll('.maps svg text')].filter(t => t.textContent === '1.00').map(t => getComputedStyle(t).fill === getComputedStyle(document.body).color)";
            assert_eq!(view.value(shown), serde_json::json!([true]), "{scheme}: the number on the darkest cell");
        }
    }
}

#[test]
fn the_first_screen_is_one_table_beside_the_chart_and_lines_have_their_names() {
    let comparison = example();
    let Some(mut view) = PageView::open(&html::page(&comparison).render()) else { return };
    view.resize(1440, 900);
    view.settle();
    let within =
        "(b => b.top >= 0 && b.bottom <= innerHeight)(document.querySelector('SELECTOR').getBoundingClientRect())";
    for selector in ["#overview", "#first figure svg"] {
        assert!(view.holds(&within.replace("SELECTOR", selector)), "{selector} is not on the first screen");
    }
    assert!(view.value("document.querySelectorAll('#headlines li').length").as_u64() <= Some(3));
    assert_eq!(view.value("document.querySelectorAll('details[open]').length"), 0);
    let rows = view.text("document.querySelector('#overview').innerText");
    for contestant in &comparison.contestants {
        assert!(rows.contains(&contestant.name), "{rows}");
        let at_line = format!(
            "[...document.querySelectorAll('#first g.series text')].some(t => t.textContent === {:?})",
            contestant.name
        );
        assert!(view.holds(&at_line), "{} is not beside its line", contestant.name);
    }
    view.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    assert!(!view.text("document.body.innerText").contains("length-20"), "an internal id is shown");
}

#[test]
fn pointing_at_a_line_dims_the_others_and_hints_do_not_stay() {
    let Some(mut view) = PageView::open(&html::page(&example()).render()) else { return };
    let [x, y] = view.middle("#first g.series[data-series='1'] .point");
    view.point_at([x, y]);
    view.settle();
    assert_eq!(view.value("document.querySelectorAll('#first g.series.dimmed').length"), 1);
    assert!(view.holds("!document.querySelector('g.series[data-series=\"1\"]').classList.contains('dimmed')"));
    assert!(view.text("document.getElementById('tip').innerText").contains("other & \"co\""));
    view.value("dispatchEvent(new Event('scroll'))");
    assert!(view.holds("document.getElementById('tip').hidden"));
    view.point_at([2.0, 2.0]);
    view.settle();
    assert_eq!(view.value("document.querySelectorAll('g.series.dimmed').length"), 0);
}

#[test]
fn links_open_sections_tables_sort_and_the_wall_is_large() {
    let Some(mut view) = PageView::open(&html::page(&example()).render()) else { return };
    view.click("nav.contents a[href='#cost']");
    view.settle();
    assert!(view.holds("document.getElementById('cost').closest('details').open"));
    view.key("n");
    assert!(view.holds("location.hash === '#curves' && document.getElementById('curves').closest('details').open"));
    view.value("document.querySelectorAll('#overview th button')[1].focus()");
    view.key("Enter");
    assert_eq!(view.text("document.querySelectorAll('#overview th')[1].getAttribute('aria-sort')"), "ascending");
    view.key("f");
    assert!(view.holds("isWall() && parseFloat(getComputedStyle(document.body).fontSize) >= 22"));
    assert!(view.holds("[...document.querySelectorAll('.controls')].every(e => !e.checkVisibility())"));
    view.key("f");
    view.audit_copies("compare", "#first", "sequence accuracy");
}

#[test]
fn what_is_unfolded_is_copied_with_its_charts() {
    let Some(mut view) = PageView::open(&html::page(&example()).render()) else { return };
    let copied = |view: &mut PageView| {
        view.value(
            "window.copied = null; navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }; \
             document.getElementById('told').textContent = ''",
        );
        view.click("[data-copy=SVG]");
        view.wait("window.copied !== null");
        view.text("window.copied")
    };
    let count = |svg: &str| svg.matches("<svg").count();
    let folded = copied(&mut view);
    view.value("document.getElementById('cost').closest('details').open = true");
    view.settle();
    let n_charts = view.value("document.querySelectorAll('details:has(#cost) figure svg').length").as_u64().unwrap();
    assert!(n_charts > 0);
    let unfolded = copied(&mut view);
    assert!(count(&unfolded) >= count(&folded) + n_charts as usize, "{} and {}", count(&folded), count(&unfolded));
    // What is folded and what steers the page are not in the picture.
    assert!(!unfolded.contains(">TSV<") && !unfolded.contains("SHA-256"));
    view.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    view.settle();
    view.audit_copies("compare, unfolded", "main", "SHA-256");
}

#[test]
fn a_sentence_of_sixty_words_and_its_map_fit() {
    let mut comparison = with_maps();
    let words: Vec<String> = (0..60).map(|i| format!("word{i}")).collect();
    let sentence = &mut comparison.alignments[0];
    (sentence.source, sentence.reference) = (words.join(" "), words.join(" "));
    let map = &mut sentence.maps[0];
    map.weights = (0..3600).map(|i| if i % 61 == 0 { 1.0 } else { 0.0 }).collect();
    (map.text, map.columns, map.rows) = (words.join(" "), words.clone(), words);
    let Some(mut view) = PageView::open(&html::page(&comparison).render()) else { return };
    view.go("alignments");
    for (width, scheme) in [(1440, "light"), (768, "dark"), (390, "light")] {
        view.prefer(&[("prefers-color-scheme", scheme)]);
        view.resize(width, 900);
        assert!(view.holds("document.getElementById('alignments').closest('details').open"));
        view.audit(&format!("compare, sixty words, {scheme}, {width}"));
    }
}
