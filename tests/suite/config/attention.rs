//! The attention of recurrent models: what is refused, and that every nested field does something.

use crate::models::fields;
use crate::training::{BAHDANAU, TRANSFORMER, assert_says, write_tiny};
use lookback::experiment::Config;
use tempfile::TempDir;

/// What a model with this `[model]` is told apart by.
fn behaviour(model: &toml::Table) -> Result<(usize, Vec<f32>, Vec<f32>), String> {
    fields::behaviour(&serde_json::to_value(model).unwrap())
}

/// The error of `[model]` with these lines.
#[track_caller]
fn refusal(lines: &str) -> String {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("my.toml");
    let text = format!("[data]\ntask = {{ kind = \"copy\" }}\n[model]\nkind = \"rnn\"\n{lines}\n");
    std::fs::write(&path, text).unwrap();
    let message = Config::load(Some(&path), &[]).map(|_| ()).expect_err(lines).to_string();
    assert_eq!(message.lines().count(), 1, "{message:?}");
    // Without the file and its line.
    let own = message.split_once("my.toml:").and_then(|(_, rest)| rest.split_once(": "));
    own.map_or(message.clone(), |(_, message)| message.to_string())
}

#[test]
fn scores_that_need_equal_widths_refuse_an_encoder_of_both_directions() {
    for placement in ["bahdanau", "luong"] {
        for score in ["dot", "scaled-dot", "cosine"] {
            let attention = format!("attention = {{ kind = \"{placement}\", score = {{ kind = \"{score}\" }} }}");
            let message = refusal(&format!("d_hidden = 6\n{attention}"));
            assert_eq!(
                message,
                "model.attention.score: compares states of equal width, but decoder states have 6 elements and those of an \
                 encoder that reads in both directions 12; set model.directions = \"forward\", or use the score \"general\""
            );
            let forward = toml::from_str(&format!("kind = \"rnn\"\n{attention}\ndirections = \"forward\"")).unwrap();
            assert!(behaviour(&forward).is_ok(), "{placement}, {score}");
        }
        for keys in [
            "kind = \"general\"",
            "kind = \"additive\", d_attention = 3",
            "kind = \"concat\", d_attention = 3",
            "kind = \"location\", max_source_len = 9",
        ] {
            let both = format!("kind = \"rnn\"\nattention = {{ kind = \"{placement}\", score = {{ {keys} }} }}");
            assert!(behaviour(&toml::from_str(&both).unwrap()).is_ok(), "{both}");
        }
    }
}

#[test]
fn sizes_of_zero_are_refused_with_their_keys() {
    let zero = "must be at least 1, got 0";
    for (placement, part, key, message) in [
        ("luong", "score = { kind = \"concat\", d_attention = 0 }", "score.d_attention", zero),
        ("luong", "score = { kind = \"additive\", d_attention = 0 }", "score.d_attention", zero),
        ("bahdanau", "score = { kind = \"location\", max_source_len = 0 }", "score.max_source_len", zero),
        (
            "luong",
            "window = { kind = \"local-m\", half_width = 0 }",
            "window.half_width",
            "must be at least 1, got 0: a window of one position leaves the softmax nothing to choose",
        ),
        ("bahdanau", "window = { kind = \"local-p\", half_width = 0 }", "window.half_width", zero),
    ] {
        let found = refusal(&format!("attention = {{ kind = \"{placement}\", {part} }}"));
        assert_says(&found, &[&format!("model.attention.{key}: {message}")]);
    }
}

#[test]
fn a_residual_connection_needs_a_second_layer() {
    assert_eq!(
        refusal("residual = true"),
        "model.residual: connects the second layer and those above it, but model.n_layers is 1; raise it or leave this out"
    );
    assert_says(&refusal("residual = true\nn_layers = 0"), &["model.n_layers: must be at least 1, got 0"]);
    assert!(behaviour(&toml::from_str("kind = \"rnn\"\nresidual = true\nn_layers = 2").unwrap()).is_ok());
}

#[test]
fn an_initial_context_goes_with_no_attention() {
    for attention in ["bahdanau", "luong"] {
        let message = refusal(&format!("context = \"initial\"\nattention = {{ kind = \"{attention}\" }}"));
        assert_says(&message, &["model.context: ", "attention makes a new context at every step"]);
    }
}

#[test]
fn unknown_kinds_and_fields_are_named() {
    for (attention, parts) in [
        ("kind = \"lung\"", &["`lung`", "did you mean `luong`?"][..]),
        ("kind = \"luong\", input_feding = true", &["`input_feding`", "`input_feeding`"]),
        // Input feeding is what a step after which attention is made hands to the next.
        ("kind = \"bahdanau\", input_feeding = true", &["`input_feeding`", "`window`"]),
        ("kind = \"none\", score = { kind = \"dot\" }", &["`score`"]),
        ("kind = \"luong\", score = { kind = \"dto\" }", &["`dto`", "`scaled-dot`"]),
        ("kind = \"luong\", score = { kind = \"dot\", d_attention = 3 }", &["`d_attention`"]),
        ("kind = \"luong\", score = { kind = \"location\" }", &["max_source_len"]),
        ("kind = \"luong\", window = { kind = \"local_p\", half_width = 3 }", &["`local_p`", "`local-p`"]),
        ("kind = \"luong\", window = { kind = \"global\", half_width = 3 }", &["`half_width`"]),
        ("kind = \"luong\", window = { kind = \"local-m\" }", &["half_width"]),
    ] {
        assert_says(&refusal(&format!("attention = {{ {attention} }}")), parts);
    }
}

#[test]
fn a_key_beside_a_kind_that_has_none_is_not_passed_over() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("my.toml");
    let text = |model: &str| format!("[data]\ntask = {{ kind = \"copy\" }}\n# max_len\n{model}\n[decoding]\n");
    for (model, line, key, section) in [
        (
            "[model]\nkind = \"transformer\"\n[model.positions]\nkind = \"sinusoidal\"\nmax_len = 9",
            8,
            "max_len",
            "model.positions",
        ),
        ("[model]\nkind = \"rnn\"\nreadout = { kind = \"state\", d_maxout = 9 }", 6, "d_maxout", "model.readout"),
        ("[training.scheduled_sampling]\nkind = \"none\"\nk = 9.0", 6, "k", "training.scheduled_sampling"),
    ] {
        std::fs::write(&path, text(model)).unwrap();
        let message = Config::load(Some(&path), &[]).map(|_| ()).expect_err(section).to_string();
        assert_says(&message, &[&format!("my.toml:{line}: {section}.{key}: unknown field `{key}`")]);
    }
}

#[test]
fn scheduled_sampling_is_for_recurrent_models_and_its_numbers_have_rules() {
    let dir = TempDir::new().unwrap();
    let set = |path: &std::path::Path, value: &str| {
        let setting = format!("training.scheduled_sampling={{ {value} }}");
        Config::load(Some(path), &[setting]).map(|_| ()).map_err(|error| error.to_string())
    };
    let transformer = write_tiny(dir.path(), TRANSFORMER);
    for value in ["kind = \"exponential\", k = 0.9", "kind = \"linear\", updates = 9, floor = 0.5"] {
        let message = set(&transformer, value).unwrap_err();
        assert_says(&message, &["training.scheduled_sampling: is for recurrent decoders", "a Transformer reads all"]);
    }
    assert_eq!(set(&transformer, "kind = \"none\""), Ok(()));
    let rnn = write_tiny(dir.path(), BAHDANAU);
    for (value, parts) in [
        ("kind = \"linear\", updates = 0, floor = 0.5", &["scheduled_sampling.updates: must be at least 1, got 0"][..]),
        (
            "kind = \"linear\", updates = 9, floor = 1.5",
            &["scheduled_sampling.floor: must be between 0 and 1, got 1.5"],
        ),
        ("kind = \"linear\", updates = 9, floor = nan", &["scheduled_sampling.floor: ", "got NaN"]),
        ("kind = \"exponential\", k = 1.0", &["scheduled_sampling.k: must be above 0 and below 1, got 1"]),
        ("kind = \"exponential\", k = 0.0", &["scheduled_sampling.k: must be above 0 and below 1, got 0"]),
        ("kind = \"exponential\", k = nan", &["scheduled_sampling.k: ", "got NaN"]),
        ("kind = \"inverse-sigmoid\", k = 0.5", &["scheduled_sampling.k: must be at least 1 and finite, got 0.5"]),
        ("kind = \"inverse-sigmoid\", k = inf", &["scheduled_sampling.k: must be at least 1 and finite, got inf"]),
        ("kind = \"linear\", updates = 9", &["floor"]),
        ("kind = \"exponential\", k = 0.9, floor = 0.1", &["`floor`"]),
        ("kind = \"sigmoid\", k = 9.0", &["`sigmoid`", "`inverse-sigmoid`"]),
    ] {
        assert_says(&set(&rnn, value).unwrap_err(), parts);
    }
    for value in ["kind = \"linear\", updates = 1, floor = 0.0", "kind = \"inverse-sigmoid\", k = 1.0"] {
        assert_eq!(set(&rnn, value), Ok(()));
    }
}

#[test]
fn no_nested_field_of_attention_is_without_effect() {
    let model = |attention: &str| {
        let text = format!(
            "kind = \"rnn\"\nd_embedding = 6\nd_hidden = 8\nbridge = \"zeros\"\ndropout_rate = 0.0\n\
             readout = {{ kind = \"state-context\" }}\nattention = {{ {attention} }}"
        );
        behaviour(&toml::from_str(&text).unwrap()).map_err(|message| format!("{attention}: {message}"))
    };
    // Every two of a group differ in one field.
    for group in [
        &[
            "kind = \"luong\", score = { kind = \"general\" }",
            "kind = \"luong\", score = { kind = \"additive\", d_attention = 5 }",
            "kind = \"luong\", score = { kind = \"additive\", d_attention = 6 }",
            "kind = \"luong\", score = { kind = \"concat\", d_attention = 5 }",
            "kind = \"luong\", score = { kind = \"concat\", d_attention = 6 }",
            "kind = \"luong\", score = { kind = \"location\", max_source_len = 6 }",
            "kind = \"luong\", score = { kind = \"location\", max_source_len = 7 }",
            "kind = \"luong\", input_feeding = false",
        ][..],
        &[
            "kind = \"luong\"",
            "kind = \"luong\", window = { kind = \"local-m\", half_width = 1 }",
            "kind = \"luong\", window = { kind = \"local-m\", half_width = 2 }",
            "kind = \"luong\", window = { kind = \"local-p\", half_width = 1 }",
            "kind = \"luong\", window = { kind = \"local-p\", half_width = 2 }",
        ],
        &[
            "kind = \"bahdanau\", score = { kind = \"general\" }",
            "kind = \"bahdanau\"",
            "kind = \"bahdanau\", score = { kind = \"additive\", d_attention = 5 }",
            "kind = \"bahdanau\", score = { kind = \"general\" }, window = { kind = \"local-m\", half_width = 1 }",
            "kind = \"bahdanau\", score = { kind = \"general\" }, window = { kind = \"local-p\", half_width = 1 }",
        ],
    ] {
        let found: Vec<_> = group.iter().map(|attention| model(attention).unwrap()).collect();
        for i in 0..group.len() {
            for j in 0..i {
                assert_ne!(found[i], found[j], "{} and {} are the same", group[i], group[j]);
            }
        }
    }
}

#[test]
fn scores_of_equal_widths_are_told_apart() {
    let model = |score: &str| {
        let text = format!(
            "kind = \"rnn\"\nd_embedding = 6\nd_hidden = 8\ndirections = \"forward\"\n\
             attention = {{ kind = \"luong\", score = {{ kind = \"{score}\" }} }}"
        );
        behaviour(&toml::from_str(&text).unwrap()).unwrap()
    };
    let found = ["dot", "scaled-dot", "cosine", "general"].map(model);
    assert!((0..4).all(|i| (0..i).all(|j| found[i] != found[j])));
}

#[test]
fn what_is_left_out_is_the_papers() {
    let both =
        |text: &str| behaviour(&toml::from_str(&format!("kind = \"rnn\"\nd_hidden = 8\n{text}")).unwrap()).unwrap();
    assert_eq!(
        both("attention = { kind = \"luong\" }"),
        both(
            "attention = { kind = \"luong\", score = { kind = \"general\" }, window = { kind = \"global\" }, input_feeding = true }"
        )
    );
    assert_eq!(
        both("attention = { kind = \"bahdanau\" }"),
        both(
            "attention = { kind = \"bahdanau\", score = { kind = \"additive\", d_attention = 256 }, window = { kind = \"global\" } }"
        )
    );
}
