//! The page of `lookback explain --html`.

use crate::reliability::{campaign, sampled};
use crate::report::examples::{configs, example};
use crate::support::page::PageView;
use lookback::models::ModelConfig;
use lookback::report::explanation::{Explanation, Selection, html};

fn explanation(wanted: &str) -> Explanation {
    let (_, config) = configs().into_iter().find(|(name, _)| name.contains(wanted)).unwrap();
    example(&config, Some("drei eins vier")).2
}

fn page(explanation: &Explanation) -> String {
    html::page(explanation, &Selection::default())
}

const STEPS: [&str; 5] = ["view=steps", "stage=1", "stage=4&step=2", "view=words", "view=layers"];

#[test]
fn nothing_stands_in_a_readers_way() {
    // Of the recurrent families one each in CI, all in a campaign.
    let more: &[&str] = if campaign() > 1 { &["fixed", "two layers of LSTMs"] } else { &[] };
    for wanted in sampled(["Sinusoidal", "Additive", "over minGRU"].iter().chain(more), 3) {
        let Some(mut view) = PageView::open(&page(&explanation(wanted))) else { return };
        view.audit_everywhere(&format!("explain {wanted}"), &STEPS);
        view.audit_print(&format!("explain {wanted}"));
    }
}

/// Of scores below zero the weakest are the largest in size.
#[test]
fn the_scores_in_passing_are_those_with_most_weight() {
    let Some(mut view) = PageView::open(&page(&explanation("Sinusoidal"))) else { return };
    view.value("data.source = [...'abcdefghijk'], oneHead = () => ({ scores: [-9, -1, -8, -2, -7, -3, -6, -4, -5, 0, -4.5] }), 0");
    assert_eq!(view.text("glimpse({ id: 'scores' }, data.steps[0]).textContent"), "bdefghijk");
}

#[test]
fn every_mechanism_has_all_of_its_views() {
    let mut view: Option<PageView> = None;
    // Every second of them in CI, all in a campaign.
    for (name, config) in sampled(configs().into_iter().step_by(if campaign() > 1 { 1 } else { 2 }), 3) {
        let html = page(&example(&config, Some("drei eins")).2);
        match &mut view {
            Some(view) => view.show(&html),
            None => match PageView::open(&html) {
                Some(opened) => view = Some(opened),
                None => return,
            },
        }
        check_views(view.as_mut().unwrap(), &name);
    }
}

/// Goes through every stage of a step, and the layers.
fn check_views(view: &mut PageView, name: &str) {
    let n = view.value("stages().length").as_u64().unwrap();
    for i in 0..=n + 1 {
        match n.checked_sub(i) {
            Some(_) => view.value(&format!("go({{ view: 'steps', step: 1, stage: {i} }})")),
            None => view.value("go({ view: 'layers' }); look('target', 1); look('source', 1)"),
        };
        let text = view.text("document.querySelector('main').innerText");
        for wrong in ["undefined", "NaN", "Infinity", "[object"] {
            assert!(!text.contains(wrong), "{name}, stage {i}: {wrong} in\n{text}");
        }
    }
    // Pointing at a word says something of it.
    for side in ["target", "source"] {
        view.value(&format!("look('{side}', 0)"));
        let said = view.text("document.getElementById('band-says').textContent");
        assert!(said.len() > 10 && !said.contains("norms ."), "{name}, {side}: {said}");
    }
    // What a step computes is in one of the stages: no line is lost.
    let lost =
        "lines.filter(line => line.part === 'model' && !stages().some(stage => stage.lines.includes(line))).length";
    assert_eq!(view.value(lost), 0, "{name}");
    assert_eq!(view.faults, Vec::<String>::new(), "{name}");
}

#[test]
fn models_without_a_decoder_and_layers_without_attention_have_all_of_their_views() {
    let config = |text: &str| -> ModelConfig { serde_json::from_str(text).unwrap() };
    let sizes = r#""d_model": 16, "d_feed_forward": 24, "n_heads": 4, "positions": { "kind": "sinusoidal" }"#;
    let encoder = |output: &str| {
        config(&format!(r#"{{ "kind": "encoder-only", "output": "{output}", "n_layers": 2, {sizes} }}"#))
    };
    let mixers = r#""mixer": [{ "kind": "min-gru" }, { "kind": "attention" }]"#;
    let hybrid = config(&format!(r#"{{ "kind": "decoder-only", "n_layers": 3, {mixers}, {sizes} }}"#));
    let mut view: Option<PageView> = None;
    for (name, config) in [("tags", encoder("tags")), ("class", encoder("class")), ("hybrid", hybrid)] {
        let explanation = example(&config, None).2;
        let html = page(&explanation);
        match &mut view {
            Some(view) => view.show(&html),
            None => match PageView::open(&html) {
                Some(opened) => view = Some(opened),
                None => return,
            },
        }
        let view = view.as_mut().unwrap();
        check_views(view, name);
        if name == "hybrid" {
            let choose = |layer| Selection { layer: Some(layer), ..Selection::default() };
            assert_eq!(
                choose(1).check(&explanation).unwrap_err().to_string(),
                "--layer 1: this model has attention in one layer, 2"
            );
            choose(2).check(&explanation).unwrap();
            // A page that is told to show it shows what there is.
            view.show(&html::page(&explanation, &choose(1)));
            check_views(view, "a layer without attention");
        }
    }
}

/// A copy has what a frame hides and what is further to the right than the page is wide.
#[test]
fn what_scrolls_is_copied_whole() {
    let mut long = explanation("Sinusoidal");
    long.source[0] = "Donaudampfschifffahrtsgesellschaft".repeat(4);
    long.source[1] = "A\u{1}B".into();
    let Some(mut view) = PageView::open(&page(&long)) else { return };
    assert!(view.holds("document.documentElement.scrollWidth <= innerWidth"), "a long token makes the page wider");
    view.value("go({ view: 'layers' })");
    view.value("$('bands').style.width = '300px'; $('bands').style.overflow = 'auto'; $('bands').scrollLeft = 50");
    let whole = "(svg => new DOMParser().parseFromString(svg, 'image/svg+xml'))(pictureOf($('layers')))";
    assert!(view.holds(&format!("{whole}.querySelector('parsererror') === null")), "control characters");
    let width = view.value(&format!("Number({whole}.documentElement.getAttribute('width'))")).as_f64().unwrap();
    let needed = view.value("$('bands').scrollWidth").as_f64().unwrap();
    assert!(needed > 400.0 && width >= needed - 2.0, "{width} of {needed}");
    assert_eq!(view.value("$('bands').scrollLeft"), 50, "it stays where it was");
}

#[test]
fn long_and_hostile_sentences_are_shown_whole() {
    let mut long = explanation("Sinusoidal");
    let words = [
        "<script>alert(1)</script>",
        "\"quoted\"",
        "it's",
        "😀",
        "&amp;",
        "Donaudampfschifffahrtsgesellschaft",
        "</p>",
    ];
    for (i, word) in long.source.iter_mut().chain(&mut long.target).enumerate() {
        *word = words[i % words.len()].to_string();
    }
    // As long as sixty words.
    let n = long.source.len();
    long.source = long.source.iter().cycle().take(60).cloned().collect();
    for step in &mut long.steps {
        for row in step.attention.iter_mut() {
            row.scores = row.scores.iter().cycle().take(60).copied().collect();
            row.weights = row.weights.iter().cycle().take(60).map(|weight| weight * n as f32 / 60.0).collect();
        }
        step.influence = step.influence.iter().cycle().take(60).copied().collect();
    }
    let Some(mut view) = PageView::open(&page(&long)) else { return };
    view.audit_everywhere("explain long", &["view=steps", "stage=4", "view=words"]);
    assert_eq!(view.value("document.querySelectorAll('#source .unit').length"), 60);
    assert!(view.holds("[...document.querySelectorAll('#target .unit')].every(e => e.checkVisibility())"));
    assert!(view.holds("document.querySelectorAll('main script').length === 0"));
    // Legible at a third of the size of a projector's picture.
    for width in [1280, 390] {
        view.resize(width, 720);
        view.go("view=steps");
        let least = "Math.min(...[...document.querySelectorAll('#scene .unit')].map(e => parseFloat(getComputedStyle(e).fontSize)))";
        assert!(view.value(least).as_f64() >= Some(24.0), "tokens of {} pixels", view.value(least));
    }
    assert!(view.text("document.getElementById('source').innerText").contains("<script>alert(1)</script>"));
}

#[test]
fn one_head_is_shown_with_its_own_numbers_and_a_mean_says_of_what() {
    let explanation = explanation("Sinusoidal");
    let Some(mut view) = PageView::open(&page(&explanation)) else { return };
    // One head from the start: the nearest to the mean of all.
    assert_eq!(view.value("chosenHeads().length"), 1);
    view.go("step=2&stage=2&layer=2&head=3");
    let row = explanation.steps[1].attention.iter().find(|row| (row.layer, row.head) == (2, 3)).unwrap();
    let scores = view.text("document.querySelector('[data-stage=scores]').innerText");
    for score in &row.scores {
        assert!(scores.contains(&format!("{score:.3}").replace('-', "−")), "{score} is not in {scores}");
    }
    view.go("step=2&stage=3&layer=2&head=3");
    let weights = view.text("document.querySelector('[data-stage=weights]').innerText");
    for weight in &row.weights {
        assert!(weights.contains(&format!("{weight:.3}")), "{weight} is not in {weights}");
    }
    assert!(view.holds("Math.abs(document.querySelectorAll('#arcs path').length - linkWeights(data.steps[1]).filter(w => w >= 0.01).length) < 1"));
    // Each layer has a vector of its own.
    view.go("step=2&stage=5&layer=1&head=1");
    let first = view.text("document.querySelector('.detail .values').textContent");
    view.go("step=2&stage=5&layer=2&head=1");
    let second = view.text("document.querySelector('.detail .values').textContent");
    assert_ne!(first, second);
    let shown = |value: f32| format!("{value:.3}").replace('-', "−");
    assert!(first.starts_with(&shown(explanation.steps[1].layers[0][0])), "{first}");
    assert!(second.starts_with(&shown(explanation.steps[1].layers[1][0])), "{second}");
    view.key("a");
    assert!(view.text("document.getElementById('sentence').innerText").contains("the mean of all 8 heads of 2 layers"));
    view.go("stage=1&layer=0&head=0");
    assert!(view.text("document.querySelector('.detail').innerText").contains("has a query of its own"));
}

#[test]
fn keys_work_wherever_the_focus_is_and_the_address_keeps_the_place() {
    let Some(mut view) = PageView::open(&page(&explanation("Sinusoidal"))) else { return };
    // After a click on a box, a list or the slider the arrows still change the step.
    for (i, control) in ["#all", "#slider", "#layer", "#head"].into_iter().enumerate() {
        view.go("step=1");
        view.point_and_click(control);
        view.press("Escape");
        let before = view.value("at.step").as_u64().unwrap();
        view.key("ArrowRight");
        assert_eq!(view.value("at.step"), (before + 1).min(3), "{control} of place {i}");
        assert!(view.state().contains(&format!("step={}", (before + 2).min(4))), "{control}");
    }
    view.go("view=steps");
    for (key, expected) in [
        ("ArrowRight", "at.step === 1"),
        ("ArrowLeft", "at.step === 0"),
        ("End", "at.step === data.steps.length - 1"),
        ("Home", "at.step === 0"),
        ("ArrowDown", "stages()[at.stage].id === 'sum'"),
        ("ArrowUp", "stages()[at.stage].id === 'weights'"),
        ("c", "at.part === 'own'"),
        ("c", "at.part === 'cross'"),
        ("a", "at.layer === 0 && at.head === 0"),
        ("l", "at.layer === 1"),
        ("L", "at.layer === 0"),
        ("h", "at.head === 1"),
        ("H", "at.head === 0"),
        ("m", "document.getElementById('sentence').innerText.includes('<s>')"),
        ("m", "!document.getElementById('sentence').innerText.includes('<s>')"),
        ("1", "!document.getElementById('words').hidden"),
        ("2", "!document.getElementById('layers').hidden"),
        // No step is changed unseen: the key shows it.
        ("ArrowRight", "at.step === 1 && !document.getElementById('steps').hidden"),
        ("3", "at.view === 'steps'"),
        ("f", "isWall()"),
        ("f", "!isWall()"),
    ] {
        view.key(key);
        assert!(view.holds(expected), "{key}: not {expected}");
    }
    // The address alone brings it back.
    view.go("view=steps&step=3&stage=2&part=own&layer=2&head=4");
    assert!(view.holds("at.step === 2 && at.stage === 1 && at.part === 'own' && at.layer === 2 && at.head === 4"));
    view.go("step=99&layer=77&stage=x");
    assert!(view.holds("at.step === 0"), "what is not there is left out");
    assert_eq!(view.faults, Vec::<String>::new());
}

#[test]
fn words_and_stages_are_reached_by_tab_and_the_focus_is_kept() {
    let Some(mut view) = PageView::open(&page(&explanation("Sinusoidal"))) else { return };
    let reached = view.reached_by_tab(24);
    let count = |part: &str| reached.iter().filter(|one| one.as_str().unwrap().contains(part)).count();
    assert_eq!(count("unit now"), 1, "{reached:?}");
    assert_eq!(count("name-of-stage"), 5, "{reached:?}");
    view.value("document.querySelector('#target .now').focus()");
    view.key("ArrowRight");
    assert!(view.holds("document.activeElement.dataset.step === '1'"), "the focus goes with the step");
    view.value("document.querySelectorAll('.name-of-stage')[0].focus()");
    view.key("Enter");
    assert!(view.holds("at.stage === 0 && document.activeElement.className === 'name-of-stage'"));
    // Numbers that were unfolded stay so, and so does the focus on them.
    view.value("document.querySelector('.detail summary').focus()");
    view.key("Enter");
    view.key("ArrowRight");
    assert!(view.holds("document.activeElement.tagName === 'SUMMARY' && document.activeElement.parentNode.open"));
    view.value("document.querySelector('#marks input').focus()");
    view.key(" ");
    assert!(view.holds("marks.areShown && document.activeElement === document.querySelector('#marks input')"));
    view.key("m");
    view.point_and_click("#target [data-step='2']");
    view.settle();
    assert_eq!(view.value("at.step"), 2);
    // Words of the layers show what they look at.
    view.go("view=layers");
    view.value("document.querySelectorAll('.words button')[1].focus()");
    view.settle();
    assert!(view.value("document.querySelectorAll('.band.arcs path').length").as_u64() > Some(1));
    assert!(view.text("document.getElementById('band-says').innerText").contains("looks most at"));
}

#[test]
fn lines_join_a_word_and_what_each_layer_looks_at_in_the_source() {
    let Some(mut view) = PageView::open(&page(&explanation("Sinusoidal"))) else { return };
    view.go("view=layers&layer=2&head=2");
    // Each line as "number of the state of the source, layer of the target".
    let drawn = "(() => {
        const at = (n, box) => Math.abs(n - box.left - box.width / 2) < 2, ground = document.getElementById('bands').getBoundingClientRect();
        const boxes = side => [...document.querySelectorAll(`[data-side=${side}] .band.vectors`)].map(line => [...line.querySelectorAll('.place')].map(place => place.getBoundingClientRect()));
        const read = boxes('source').at(-1), own = boxes('target');
        return [...document.querySelectorAll('#bands > .across path')].map(path => {
            const start = path.getPointAtLength(0), end = path.getPointAtLength(path.getTotalLength());
            const layer = own.findIndex(line => Math.abs(line[0].top - ground.top - end.y) < 2);
            return `${read.findIndex(box => at(start.x + ground.left, box))}, ${layer}, ${own[layer]?.findIndex(box => at(end.x + ground.left, box))}`;
        });
    })()";
    let due = |view: &mut PageView, pairs: &str| {
        let row = "(layer, t) => data.steps[t].rows[data.heads.findIndex(head => head.layer === layer && head.head === 2)].weights";
        view.value(&format!("[1, 2].flatMap(layer => {pairs}.filter(([i, t]) => ({row})(layer, t)[i] >= 0.05).map(([i, t]) => `${{i}}, ${{layer}}, ${{t}}`))"))
    };
    for (side, n, pairs) in
        [("target", 1, "data.source.map((_, i) => [i, 1])"), ("source", 2, "data.steps.map((_, t) => [2, t])")]
    {
        view.value(&format!("document.querySelectorAll('[data-side={side}] .words button')[{n}].focus()"));
        view.settle();
        let (drawn, due) = (view.value(drawn), due(&mut view, pairs));
        assert!(due.as_array().is_some_and(|due| due.len() > 2), "{due}");
        assert_eq!(drawn, due, "{side}");
    }
    assert!(
        view.text("document.getElementById('band-says').innerText")
            .contains("Looked at most while this was written: layer 1: ")
    );
    view.value("document.querySelectorAll('[data-side=target] .words button')[0].focus()");
    view.settle();
    assert!(view.text("document.getElementById('band-says').innerText").contains("In the source: layer 1: "));
    assert_eq!(view.faults, Vec::<String>::new());
}

#[test]
fn an_influence_that_is_none_is_not_drawn() {
    let mut nothing = explanation("fixed");
    nothing.steps.iter_mut().for_each(|step| step.influence = vec![1e-12, -3e-12, 0.0, 2e-12, 1e-12]);
    let Some(mut view) = PageView::open(&page(&nothing)) else { return };
    view.go("stage=2");
    assert_eq!(view.value("document.querySelectorAll('#arcs path').length"), 0);
    assert!(view.text("document.getElementById('sentence').innerText").contains("No measurable influence"));
    let widest = "Math.max(0, ...[...document.querySelectorAll('.detail td .bar')].map(bar => bar.offsetWidth))";
    assert_eq!(view.value(widest), 0);
    view.go("view=layers");
    assert!(view.text("document.getElementById('context').innerText").contains("No measurable influence"));
    // A small one has a small bar: every step has the same scale.
    let mut small = explanation("fixed");
    small.steps.iter_mut().for_each(|step| step.influence = vec![0.01, 0.0, 0.0, 0.0, 0.02]);
    let Some(mut view) = PageView::open(&page(&small)) else { return };
    view.go("stage=2");
    assert!(view.holds(&format!("{widest} < 12")));
}

#[test]
fn pointing_at_a_cell_says_its_number_and_what_is_seen_can_be_copied() {
    let explanation = explanation("Sinusoidal");
    let Some(mut view) = PageView::open(&page(&explanation)) else { return };
    view.go("step=1&stage=1&layer=1&head=1");
    let [x, y] = view.middle(".detail .cells");
    view.point_at([x, y]);
    view.settle();
    let hint = view.text("document.getElementById('tip').innerText");
    assert!(hint.contains("number ") && !view.holds("document.getElementById('tip').hidden"), "{hint}");
    view.value("scrollBy(0, 40); dispatchEvent(new Event('scroll'))");
    assert!(view.holds("document.getElementById('tip').hidden"), "a hint does not stay after scrolling");
    let tsv = view.text("tsv(stepRows())");
    let row = explanation.steps[0].attention.iter().find(|row| (row.layer, row.head) == (1, 1)).unwrap();
    assert!(tsv.contains(&format!("\t{}\t", (f64::from(row.scores[0]) * 1e6).round() / 1e6)), "{tsv}");
    view.audit_copies("explain", "#steps", "softmax");
}
