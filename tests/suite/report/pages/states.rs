//! The page of `lookback inspect states --out x.html`.

use crate::support::page::PageView;
use lookback::report::page::Markup;
use lookback::report::states::nearest::nearest;
use lookback::report::states::{Labelled, SentenceStates, grouping, html, sentence_map, token_map};

/// Three groups, of which two say the opposite with the same words.
fn states() -> Vec<SentenceStates> {
    let lines = [
        ("man-hugs-woman", "A man hugs a woman.", [1.0, 0.1, 0.0]),
        ("man-hugs-woman", "It is a woman whom a man hugs.", [1.0, -0.1, 0.2]),
        ("woman-hugs-man", "A woman hugs a man.", [1.0, 0.15, 0.0]),
        ("woman-hugs-man", "It is a man whom a woman hugs.", [0.8, 0.5, 0.4]),
        ("<b>&\"", "<script>alert(1)</script> 😀", [-2.0, 0.0, 0.3]),
        ("<b>&\"", "Two \"quoted\" words", [-2.2, 0.4, -0.3]),
    ];
    let state = |(i, (label, text, vector)): (usize, &(&str, &str, [f32; 3]))| {
        let sentence = Labelled::parse(i + 1, &format!("{label}\t{text}"));
        let tokens: Vec<String> = text.split(' ').map(String::from).chain(["</s>".into()]).collect();
        let states = (0..tokens.len()).map(|k| vector.iter().map(|x| x + k as f32 * 0.3).collect()).collect();
        SentenceStates { sentence, tokens, vector: vector.to_vec(), states }
    };
    lines.iter().enumerate().map(state).collect()
}

fn page(states: &[SentenceStates]) -> String {
    let maps = [&sentence_map(states), &token_map(states)];
    html::page("The model x.", states, maps, grouping(states), &Markup::default()).render()
}

#[test]
fn nothing_stands_in_a_readers_way() {
    let Some(mut view) = PageView::open(&page(&states())) else { return };
    view.audit_everywhere("states", &["", "point=1", "map=tokens", "colour=length"]);
    view.audit_print("states");
    view.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    view.audit("states, unfolded");
    // Dots and lengths stand out from the ground.
    for (scheme, state) in [("light", ""), ("dark", ""), ("light", "colour=length"), ("dark", "colour=length")] {
        view.prefer(&[("prefers-color-scheme", scheme)]);
        view.go(state);
        let worst = "Math.min(...data.sentences.map(s => { const c = colourOf(s); \
                     const [a, b] = [lightness(channels(c)), lightness(channels(theme('--ground')))].sort((x, y) => y - x); \
                     return (a + 0.05) / (b + 0.05); }))";
        let worst = view.value(worst).as_f64().unwrap();
        assert!(worst >= 3.0, "{scheme} {state}: {worst}");
    }
}

#[test]
fn sentences_of_sixty_words_fit() {
    let mut long = states();
    let text = (0..60).map(|i| format!("Donaudampfschiff{i}")).collect::<Vec<_>>().join(" ");
    for states in &mut long {
        states.sentence = Labelled::parse(1, &format!("a label of several words\t{text}"));
    }
    let Some(mut view) = PageView::open(&page(&long)) else { return };
    view.audit_everywhere("states, sixty words", &["point=1", "map=tokens&point=2"]);
}

#[test]
fn the_nearest_are_those_of_all_dimensions() {
    let vectors: [&[f32]; 4] = [&[1.0, 0.0, 9.0], &[2.0, 0.1, 9.0], &[-1.0, 0.0, 9.0], &[-1.0, -0.2, 9.0]];
    let found = nearest(&vectors, 2);
    let places: Vec<usize> = found.iter().map(|of| of[0].0).collect();
    assert_eq!(places, [1, 0, 3, 2]);
    assert!(found.iter().all(|of| of.len() == 2 && of[0].1 >= of[1].1), "{found:?}");
    assert!(nearest(&[], 3).is_empty());
}

#[test]
fn the_result_is_the_headline_and_swapped_pairs_are_marked() {
    let states = states();
    let Some(mut view) = PageView::open(&page(&states)) else { return };
    let found = grouping(&states).unwrap();
    let percent = format!("{:.0} %", 100.0 * found.nearest_is_same);
    let headline = view.text("document.getElementById('headline').innerText");
    assert!(headline.contains(&percent) && headline.contains("by chance 20 %"), "{headline}");
    assert_eq!(view.value("swapped"), serde_json::json!([[0, 2], [1, 3]]));
    let lesson = view.text("document.getElementById('lesson').innerText");
    assert!(lesson.contains("A man hugs a woman.") && lesson.contains("of 4"), "{lesson}");
    // Shapes of the picture: names of clusters, dashed lines, and lines to the nearest of what is pointed at.
    let lines =
        |view: &mut PageView, part: &str| view.value(&format!("canvas.shapes().markup.split('{part}').length - 1"));
    assert_eq!(lines(&mut view, "stroke-dasharray=\"7 5\""), 2);
    assert!(view.holds("canvas.shapes().markup.includes('woman-hugs-man') && !canvas.shapes().markup.includes('<b>')"));
    view.key("j");
    assert_eq!(lines(&mut view, &format!("stroke=\"{}\"", "#0b62c4")), 3);
    let readout = view.text("document.getElementById('readout').innerText");
    assert!(readout.contains("A man hugs a woman.") && readout.contains("cosine"), "{readout}");
    view.key("s");
    assert_eq!(lines(&mut view, "stroke-dasharray=\"7 5\""), 0);
    view.audit_copies("states", "#plot", "woman-hugs-man");
}

#[test]
fn keys_skip_what_is_faded_and_the_address_keeps_the_place() {
    let Some(mut view) = PageView::open(&page(&states())) else { return };
    view.point_and_click("#legend button:nth-child(2)");
    view.settle();
    for expected in [2, 3, 2] {
        view.key("j");
        assert_eq!(view.value("shown.point"), expected, "only points of the label are lit");
    }
    assert!(view.state().contains("point=3") && view.state().contains("label=woman-hugs-man"));
    view.point_and_click("#swapped");
    for (key, expected) in [
        ("k", "shown.point === 3"),
        ("Escape", "shown.point === null && shown.label === null"),
        ("v", "shown.map === 1"),
        ("v", "shown.map === 0"),
        ("c", "shown.colour === 'length'"),
        ("c", "shown.colour === 'label'"),
        ("f", "isWall()"),
        ("f", "!isWall()"),
    ] {
        view.key(key);
        assert!(view.holds(expected), "{key}: not {expected}");
    }
    // A field for text keeps its keys.
    view.value("document.getElementById('find').focus()");
    view.key("v");
    assert!(view.holds("shown.map === 0 && document.getElementById('find').value === 'v'"));
    view.go("map=tokens&colour=length&point=2");
    assert!(view.holds("shown.map === 1 && shown.colour === 'length' && shown.point === 1"));
    let table = "document.getElementById('points-details')";
    view.value(&format!("{table}.open = true"));
    view.settle();
    view.value("document.querySelectorAll('#points th button')[0].focus()");
    view.key("Enter");
    assert_eq!(view.text("document.querySelector('#points th').getAttribute('aria-sort')"), "ascending");
    assert_eq!(view.faults, Vec::<String>::new());
}
