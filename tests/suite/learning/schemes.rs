//! What each score, window, placement and position scheme learns, and what it cannot.
//!
//! Two tasks: *reverse* needs places, *recall* (key-value pairs, then a key: what was its value?) needs content. Each scheme is
//! expected to learn, to fail where theory says that it must, or to be refused; any other failure to learn is a bug.
//!
//! One task for each scheme, a few minutes on two cores, as CI runs it:
//!
//! ```text
//! cargo test --release --test suite -- --ignored learns_what_it_can
//! ```
//!
//! All of it, as a table for `docs/results/results.md`:
//!
//! ```text
//! cargo test --release --test suite -- --ignored --nocapture every_scheme_on_every_task
//! ```

use super::{LEARNING, accuracy_on, learn};
use lookback::data::TaskConfig;
use lookback::experiment::Config;
use lookback::layers::mixer::MixerKind;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Up to eight symbols, backwards.
const REVERSE: &str = "kind = \"reverse\"\nn_symbols = 8\nmin_len = 1\nmax_len = 8";
/// Backwards, too long for what lies between the steps to carry a word past the window.
const LONG_REVERSE: &str = "kind = \"reverse\"\nn_symbols = 8\nmin_len = 1\nmax_len = 16";
/// The long ones of these.
const ONLY_LONG: &str = "kind = \"reverse\"\nn_symbols = 8\nmin_len = 12\nmax_len = 16";
/// Up to three pairs.
const RECALL: &str = "kind = \"recall\"\nn_keys = 6\nn_values = 6\nmin_len = 1\nmax_len = 3";
/// More than one vector holds.
const LONG_RECALL: &str = "kind = \"recall\"\nn_keys = 12\nn_values = 8\nmin_len = 4\nmax_len = 8";

/// Part of the sequences that have to be right for a task to count as learnt.
const LEARNT: f64 = 0.95;

/// A model that cannot do a task stays below this.
const NOT_LEARNT: f64 = 0.8;

#[derive(Clone, Copy, PartialEq)]
enum Expected {
    /// At least [`LEARNT`] of the sequences are right.
    Learns,
    /// At most [`NOT_LEARNT`] are, and why.
    Fails(&'static str),
}

struct Scheme {
    name: String,
    model: String,
    /// Updates for reverse and for recall, which takes longer: nothing is learnt until keys and values are bound.
    updates: [u64; 2],
    reverse: Expected,
    recall: Expected,
}

fn recurrent(name: String, attention: &str, directions: &str) -> Scheme {
    // Scores that compare states element by element need an encoder as wide as the decoder.
    let d_hidden = if directions == "both" { 48 } else { 64 };
    let model = format!(
        "[model]\nkind = \"rnn\"\nd_embedding = 32\nd_hidden = {d_hidden}\ndirections = \"{directions}\"\n\
         attention = {attention}\nreadout = {{ kind = \"deep-output\", d_maxout = 32 }}\ndropout_rate = 0.0\n"
    );
    Scheme { name, model, updates: [800, 2500], reverse: Expected::Learns, recall: Expected::Learns }
}

/// What the table calls a placement.
fn name_of(placement: &str) -> &'static str {
    match placement {
        "kind = \"bahdanau\"" => "between steps (Bahdanau)",
        "kind = \"luong\"" => "after the step (Luong), input feeding",
        _ => "after the step (Luong)",
    }
}

/// Every score in every placement.
fn scores(placement: &str) -> Vec<Scheme> {
    let scores = [
        ("dot", "", "forward"),
        ("scaled-dot", "", "forward"),
        ("general", "", "both"),
        ("additive", ", d_attention = 48", "both"),
        ("concat", ", d_attention = 48", "both"),
        ("cosine", "", "forward"),
        // It sees no content: an encoder that reads in both directions would bring the answer to it.
        ("location", ", max_source_len = 19", "forward"),
    ];
    let scheme = |(score, options, directions): (&str, &str, &str)| {
        let attention = format!("{{ {placement}, score = {{ kind = \"{score}\"{options} }} }}");
        let mut scheme = recurrent(format!("{}, {score}", name_of(placement)), &attention, directions);
        if score == "location" {
            scheme.recall = Expected::Fails("it sees no content, and one vector does not hold all pairs");
        }
        scheme
    };
    scores.into_iter().map(scheme).collect()
}

fn windows() -> Vec<Scheme> {
    let mut all = Vec::new();
    for placement in ["kind = \"bahdanau\"", "kind = \"luong\""] {
        for window in ["local-m", "local-p"] {
            let attention = format!("{{ {placement}, window = {{ kind = \"{window}\", half_width = 2 }} }}");
            let mut scheme = recurrent(format!("{}, {window}", name_of(placement)), &attention, "both");
            if window == "local-m" {
                scheme.reverse = Expected::Fails("the window runs forwards, what is needed lies ever further back");
                scheme.recall = Expected::Fails("the window stands at the first positions");
            }
            all.push(scheme);
        }
    }
    all
}

fn positions() -> Vec<Scheme> {
    let transformer = |encoder: &str, decoder: &str| {
        let table = |kind: &str| match kind {
            "learned" => "{ kind = \"learned\", max_len = 18 }".to_string(),
            kind => format!("{{ kind = \"{kind}\" }}"),
        };
        let model = format!(
            "[model]\nkind = \"transformer\"\nd_model = 48\nd_feed_forward = 96\nn_heads = 4\nn_encoder_layers = 2\n\
             n_decoder_layers = 2\ndropout_rate = 0.0\ntied_embeddings = \"all\"\npositions = {}\ndecoder_positions = {}\n\
             [training]\nlearning_rate = 0.002\nwarmup_updates = 200\n",
            table(encoder),
            table(decoder)
        );
        let name = if encoder == decoder {
            format!("Transformer, {encoder}")
        } else {
            format!("Transformer, {encoder}, decoder {decoder}")
        };
        Scheme { name, model, updates: [1200, 3000], reverse: Expected::Learns, recall: Expected::Learns }
    };
    let mut all: Vec<Scheme> = ["sinusoidal", "learned", "rotary", "alibi", "t5", "shaw", "none"]
        .into_iter()
        .map(|kind| transformer(kind, kind))
        .collect();
    all.push(transformer("none", "sinusoidal"));
    all.push(transformer("sinusoidal", "none"));
    // Its slopes are the same to both sides: a value is as near to the next key as to its own, and only the distance to the end
    // could tell which is which.
    let alibi = all.iter_mut().find(|scheme| scheme.name == "Transformer, alibi").expect("it is in the list");
    alibi.recall = Expected::Fails("a value is as near to the next key as to its own");
    for scheme in all.iter_mut().filter(|scheme| scheme.name.starts_with("Transformer, none")) {
        scheme.reverse = Expected::Fails("an encoder without positions sees no order");
        scheme.recall = Expected::Fails("without order no value belongs to a key");
    }
    all
}

/// A Transformer with each mixer in place of self-attention, and decoder-only models.
fn mixers() -> Vec<Scheme> {
    let scheme = |name: &str, kind: &str, layers: &str, choice: &str| Scheme {
        name: name.to_string(),
        model: format!(
            "[model]\nkind = \"{kind}\"\nd_model = 48\nd_feed_forward = 96\nn_heads = 4\n{layers}\ndropout_rate = 0.0\n\
             tied_embeddings = \"all\"\n{choice}\n[training]\nlearning_rate = 0.002\nwarmup_updates = 100\n"
        ),
        updates: [800, 3000],
        reverse: Expected::Learns,
        recall: Expected::Learns,
    };
    let mut all: Vec<Scheme> = MixerKind::RECURRENT
        .into_iter()
        .map(|kind| {
            let kind = kind.name();
            let choice = format!("mixer = {{ kind = \"{kind}\" }}\npositions = {{ kind = \"none\" }}");
            let layers = "n_encoder_layers = 1\nn_decoder_layers = 1";
            scheme(&format!("Transformer of {kind}"), "transformer", layers, &choice)
        })
        .collect();
    for (name, choice) in [
        ("decoder-only, rotary", ""),
        (
            "decoder-only, hybrid",
            "mixer = [{ kind = \"min-gru\" }, { kind = \"attention\" }]\npositions = { kind = \"none\" }",
        ),
    ] {
        // What an encoder has for nothing, the whole source before the first word, has to be learnt here.
        all.push(Scheme { updates: [1400, 3000], ..scheme(name, "decoder-only", "n_layers = 3", choice) });
    }
    all
}

/// Trains `scheme` on a task and compares with what is expected of it.
fn check(scheme: &Scheme, recall: bool) -> (f64, Result<(), String>) {
    let expected = if recall { scheme.recall } else { scheme.reverse };
    let tasks = match (recall, expected) {
        // What attention cannot bring, a state may carry as long as it is little.
        (true, Expected::Fails(_)) if scheme.model.contains("rnn") => [LONG_RECALL, LONG_RECALL],
        (true, _) => [RECALL, RECALL],
        // Short sequences would be carried by the recurrent states alone.
        (false, Expected::Fails(_)) if scheme.name.contains("local-m") => [LONG_REVERSE, ONLY_LONG],
        (false, _) => [REVERSE, REVERSE],
    };
    let mut table: toml::Table = toml::from_str(LEARNING).expect("the keys are right");
    let own: toml::Table = toml::from_str(&scheme.model).expect("the keys are right");
    for (section, values) in own {
        let place = table.entry(section).or_insert_with(|| toml::Table::new().into());
        place.as_table_mut().expect("a section").extend(values.as_table().expect("a section").clone());
    }
    let mut config: Config = table.try_into().expect("the keys are right");
    // Binding values to keys takes more examples than learning an order.
    config.data.n_train = 20_000;
    let [trained, tested] = tasks.map(|task| -> TaskConfig { toml::from_str(task).expect("the keys are right") });
    let right = accuracy_on(&learn(config, trained, scheme.updates[usize::from(recall)]), &tested);
    let task = if recall { "recall" } else { "reverse" };
    let verdict = match expected {
        Expected::Learns if right < LEARNT => Err(format!("{}: {task} is not learnt: {right}", scheme.name)),
        Expected::Fails(why) if right > NOT_LEARNT => {
            Err(format!("{}: {task} cannot be learnt ({why}), but {right} is right", scheme.name))
        }
        _ => Ok(()),
    };
    (right, verdict)
}

/// One task for each scheme.
fn check_one_task_each(schemes: Vec<Scheme>) {
    let faults: Vec<String> = schemes.iter().filter_map(|scheme| check(scheme, false).1.err()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
#[ignore = "minutes; CI runs it as a step of its own"]
fn every_score_between_steps_learns_what_it_can() {
    check_one_task_each(scores("kind = \"bahdanau\""));
}

#[test]
#[ignore = "minutes; CI runs it as a step of its own"]
fn every_score_after_the_step_learns_what_it_can() {
    check_one_task_each(scores("kind = \"luong\", input_feeding = false"));
}

#[test]
#[ignore = "minutes; CI runs it as a step of its own"]
fn every_window_learns_what_it_can() {
    check_one_task_each(windows());
}

#[test]
#[ignore = "minutes; CI runs it as a step of its own"]
fn every_position_scheme_learns_what_it_can() {
    check_one_task_each(positions());
}

#[test]
#[ignore = "minutes; CI runs it as a step of its own"]
fn every_mixer_learns_what_it_can() {
    check_one_task_each(mixers());
}

#[test]
#[ignore = "most of an hour on two cores; its output is the table in docs/results/results.md"]
fn every_scheme_on_every_task() {
    let placements = ["kind = \"bahdanau\"", "kind = \"luong\", input_feeding = false", "kind = \"luong\""];
    let schemes: Vec<Scheme> = positions()
        .into_iter()
        .chain(mixers())
        .chain(windows())
        .chain(placements.into_iter().flat_map(scores))
        .collect();
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(BTreeMap::new());
    let faults = Mutex::new(Vec::new());
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::SeqCst);
            let Some(scheme) = schemes.get(i) else { break };
            let [reverse, recall] = [false, true].map(|recall| {
                let (right, verdict) = check(scheme, recall);
                faults.lock().unwrap().extend(verdict.err());
                right
            });
            let row = format!("| {} | {:.1} % | {:.1} % |", scheme.name, 100.0 * reverse, 100.0 * recall);
            eprintln!("{row}");
            rows.lock().unwrap().insert(i, row);
        }
    };
    let n_workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| (0..n_workers).for_each(|_| drop(scope.spawn(work))));
    println!("| scheme | reverse | recall |\n| --- | ---: | ---: |");
    rows.lock().unwrap().values().for_each(|row| println!("{row}"));
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
