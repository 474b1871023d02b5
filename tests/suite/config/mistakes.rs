//! Mistakes in configs: what is said of them.

use crate::training::{BAHDANAU, TRANSFORMER, assert_says, succeed, write_tiny};
use lookback::experiment::Config;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// What is said of a config with this text; one line.
#[track_caller]
fn fault(text: &str) -> String {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("my.toml");
    fs::write(&path, text).unwrap();
    let message = Config::load(Some(&path), &[]).unwrap_err().to_string();
    assert_eq!(message.lines().count(), 1, "{message:?}");
    message.replace(&format!("{}/", dir.path().display()), "")
}

/// Sections, a misspelt line in them, the misspelt word, the nearest right one and another that is allowed.
const MISSPELT: [(&str, &str, &str, &str, &str); 22] = [
    ("", "sead = 2", "sead", "seed", "backend"),
    ("[dat]", "n_train = 2", "dat", "data", "model"),
    ("[data]", "n_trian = 2", "n_trian", "n_train", "hold_out_per_mille"),
    ("[data.task]\nkind = \"copy\"", "n_symbol = 2", "n_symbol", "n_symbols", "max_len"),
    ("[data.train]", "sorce = \"x\"", "sorce", "source", "ignore_extra_columns"),
    ("[data.filter]", "max_lenght = 2", "max_lenght", "max_len", "max_ratio"),
    ("[tokenizer]\nkind = \"bpe\"", "vocabsize = 2", "vocabsize", "vocab_size", "lowercase"),
    ("[tokenizer]", "kind = \"wrod\"", "wrod", "word", "unigram"),
    ("[model]\nkind = \"transformer\"", "d_modle = 2", "d_modle", "d_model", "tied_embeddings"),
    ("[model.positions]\nkind = \"learned\"", "max_length = 2", "max_length", "max_len", "max_len"),
    ("[model]\nkind = \"transformer\"", "n_key_values_heads = 2", "n_key_values_heads", "n_key_value_heads", "n_heads"),
    ("[model]\nkind = \"transformer\"", "norm = \"rmss\"", "rmss", "rms", "layer"),
    ("[model.positions]", "kind = \"rotarry\"", "rotarry", "rotary", "alibi"),
    ("[model.positions]\nkind = \"t5\"", "buckets = 8", "buckets", "n_buckets", "max_distance"),
    ("[model.decoder_positions]\nkind = \"shaw\"", "distance = 8", "distance", "max_distance", "max_distance"),
    ("[model]\nkind = \"rnn\"", "hidden = 2", "hidden", "d_hidden", "reverse_source"),
    ("[model]\nkind = \"rnn\"", "attention = { kind = \"bahdanou\" }", "bahdanou", "bahdanau", "none"),
    ("[model]\nkind = \"rnn\"", "cell = \"gro\"", "gro", "gru", "lstm"),
    ("[training]", "max_update = 2", "max_update", "max_updates", "patience"),
    ("[training.optimizer]", "beta1 = 0.9", "beta1", "beta_1", "epsilon"),
    ("[decoding]", "beamsize = 2", "beamsize", "beam_size", "length_penalty"),
    ("[decoding.sampling]", "temprature = 2.0", "temprature", "temperature", "top_k"),
];

#[test]
fn sizes_that_no_machine_holds_are_refused() {
    for (text, key) in [
        (
            "kind = \"transformer\"\npositions = { kind = \"learned\", max_len = 9223372036854775807 }",
            "model.positions.max_len",
        ),
        ("kind = \"transformer\"\nmixer = [{ kind = \"min-gru\", convolution = 1000000001 }]", "convolution"),
        ("kind = \"rnn\"\nd_hidden = 9223372036854775807", "model.d_hidden"),
    ] {
        assert_says(
            &fault(&format!("[data.task]\nkind = \"copy\"\n[model]\n{text}\n")),
            &[key, "must be at most 1000000000, got "],
        );
    }
    // Each layer is made before the memory of all of them is counted.
    let message = fault("[data.task]\nkind = \"copy\"\n[model]\nkind = \"transformer\"\nn_encoder_layers = 3000000\n");
    assert_says(&message, &["model.n_encoder_layers", "must be at most 1000, got 3000000"]);
}

#[test]
fn a_misspelt_word_in_any_section_names_line_word_allowed_ones_and_the_nearest() {
    for (section, line, wrong, nearest, other) in MISSPELT {
        let model = if section.starts_with("[model.") { "[model]\nkind = \"transformer\"\n" } else { "" };
        let text = format!("# a comment that mentions {wrong}\n{model}{section}\n{line}\n");
        let place = text.lines().position(|l| !l.starts_with('#') && l.contains(wrong)).unwrap() + 1;
        let message = fault(&text);
        let expected =
            [format!("my.toml:{place}: "), format!("`{wrong}`"), format!("`{nearest}`"), format!("`{other}`")];
        assert_says(&message, &expected.each_ref().map(String::as_str));
        // Of a single allowed word the reader needs not be told which is the nearest.
        assert_says(&message, &[&format!("did you mean `{nearest}`?")]);
    }
}

#[test]
fn a_misspelt_word_that_is_right_elsewhere_is_found_in_its_own_section() {
    for (section, model, place) in
        [("model", "[model]\nkind = \"rnn\"\npatience = 2\n", 3), ("decoding", "[decoding]\npatience = 2\n", 2)]
    {
        let training = "[training]\npatience = 4\n";
        let says = |line: usize| format!("my.toml:{line}: {section}.patience: unknown field `patience`");
        assert_says(&fault(&format!("{model}{training}")), &[&says(place)]);
        assert_says(&fault(&format!("{training}{model}")), &[&says(place + 2)]);
    }
}

/// Values of the wrong type: a config, the line of the value, its key, and what is said.
const TYPES: [(&str, usize, &str, &str); 14] = [
    ("\nseed = \"one\"\n", 2, "seed", "must be a whole number of at least 0, got the text \"one\""),
    ("seed = 1.5\n", 1, "seed", "must be a whole number of at least 0, got 1.5"),
    ("[training]\nmax_updates = -1\n", 2, "training.max_updates", "must be a whole number of at least 0, got -1"),
    ("[training]\n\nlearning_rate = \"\"\n", 3, "training.learning_rate", "must be a number, got the text \"\""),
    ("[training.learning_rate]\nmax = 1\n", 1, "training.learning_rate", "must be a number, got a table"),
    ("[training]\nfused = 1\n", 2, "training.fused", "must be true or false, got 1"),
    ("[data.train]\ntsv = 3\n", 2, "data.train.tsv", "must be a path in quotes, got 3"),
    ("model = 3\n", 1, "model", "must be a table with a `kind`, got 3"),
    // Sections with a kind, where serde forgets the place.
    ("[model]\nkind = \"rnn\"\n\nn_layers = 2\nd_hidden = \"x\"\n", 5, "model.d_hidden", "got the text \"x\""),
    ("[model]\nkind = \"transformer\"\nd_model = 8\nnorm = 3\n", 4, "model.norm", "got 3"),
    (
        "[model]\nkind = \"transformer\"\n[model.positions]\nkind = \"learned\"\nmax_len = \"x\"\n",
        5,
        "model.positions.max_len",
        "must be a whole number of at least 0, got the text \"x\"",
    ),
    (
        "[model]\nkind = \"transformer\"\npositions = { kind = \"learned\", max_len = 9 }\n[training]\nfused = 1\n",
        5,
        "training.fused",
        "must be true or false",
    ),
    ("[data.task]\nkind = \"copy\"\nmin_len = 1\nmax_len = []\n", 4, "data.task.max_len", "got a list"),
    // Two of one kind: either is right to name.
    ("[model]\nkind = \"rnn\"\nd_hidden = \"x\"\nn_layers = \"x\"\n", 4, "model.n_layers", "got the text \"x\""),
];

#[test]
fn a_value_of_the_wrong_type_names_its_line_its_key_and_the_type() {
    for (text, line, key, part) in TYPES {
        assert_says(&fault(text), &[&format!("my.toml:{line}: {key}: "), part]);
    }
    for (text, parts) in
        [("seed = 1\nseed = 2\n", ["my.toml:2: ", "duplicate key"]), ("[training\n", ["my.toml:1: ", "unclosed table"])]
    {
        assert_says(&fault(text), &parts);
    }
}

#[test]
fn a_setting_of_the_wrong_type_is_named_with_its_value_and_a_right_file_is_not() {
    let dir = TempDir::new().unwrap();
    let path = write_tiny(dir.path(), TRANSFORMER);
    for (setting, part) in [
        ("training.learning_rate=", "must be a number, got the text \"\""),
        ("model.d_model=big", "must be a whole number of at least 0, got the text \"big\""),
        ("model.positions.kind=rotarry", "did you mean `rotary`?"),
        ("model.positions={ kind = \"learned\" }", "missing field `max_len`"),
        ("model.d_modle=8", "did you mean `d_model`?"),
        ("dat.n_train=8", "did you mean `data`?"),
        ("seed.x=8", "`seed` is a value, not a section"),
        ("=8", "the key is empty"),
        ("seed", "write key.path=value"),
    ] {
        let message = Config::load(Some(&path), &["training.clip_norm=2".into(), setting.into()]).unwrap_err();
        assert_says(&message.to_string(), &[&format!("--set {setting}: "), part]);
    }
    // The fault of the file is not that of a setting beside it.
    let broken = dir.path().join("broken.toml");
    fs::write(&broken, "[training]\nmax_updates = 5\nclip_norm = \"x\"\n").unwrap();
    let message = Config::load(Some(&broken), &["training.max_updates=6".into()]).unwrap_err().to_string();
    assert_says(&message, &["broken.toml:3: training.clip_norm: must be a number"]);
}

#[test]
fn whole_numbers_end_where_those_of_toml_do() {
    let dir = TempDir::new().unwrap();
    let path = write_tiny(dir.path(), TRANSFORMER);
    for too_large in ["9223372036854775808", "18446744073709551615", "99999999999999999999999999"] {
        let message = Config::load(Some(&path), &[format!("seed={too_large}")]).unwrap_err().to_string();
        let says = "is too large; the largest whole number of a config is 9223372036854775807";
        assert_says(&message, &[&format!("--set seed={too_large}: "), says]);
        assert_says(&fault(&format!("\n[data]\nn_train = {too_large}\n")), &["my.toml:3: data.n_train: ", says]);
    }
    let config = Config::load(Some(&path), &["seed=9223372036854775807".into()]).unwrap();
    assert_eq!(toml::from_str::<Config>(&config.to_toml()).unwrap().seed, i64::MAX as u64);
    let message = Config { seed: u64::MAX, ..config }.validate().unwrap_err().to_string();
    assert_says(&message, &["seed: must be at most 9223372036854775807, got 18446744073709551615"]);
    let schema: serde_json::Value = serde_json::from_str(&succeed(dir.path(), &["config", "schema"])).unwrap();
    assert_eq!(schema["properties"]["seed"]["maximum"], i64::MAX);
}

#[test]
fn a_value_that_breaks_a_rule_is_found_in_its_line() {
    let text = "[data]\ntask = { kind = \"copy\" }\n[training]\nmax_updates = 5\n\nlearning_rate = inf\n";
    assert_says(&fault(text), &["my.toml:6: training.learning_rate: must be above 0 and finite, got inf"]);
    let text = "[data]\ntask.kind = \"copy\"\ntask.max_len = 0\n";
    assert_says(&fault(text), &["my.toml:3: data.task.max_len: "]);
}

#[test]
fn a_section_without_its_kind_names_the_kinds() {
    for (text, parts) in [
        ("[model]\nd_model = 8\n", ["my.toml:1: model: missing field `kind`, which is one of `rnn`", "`encoder-only`"]),
        (
            "[data]\ntask = { n_symbols = 4 }\n",
            ["my.toml:2: data.task: missing field `kind`, which is one of `copy`", "`recall`"],
        ),
        (
            "[model]\nkind = \"decoder-only\"\nmixer = [{ kind = \"attention\" }, { convolution = 4 }]\n",
            ["my.toml:3: model.mixer[1]: missing field `kind`, which is one of `attention`", "`min-gru`"],
        ),
    ] {
        assert_says(&fault(text), &parts);
    }
}

#[test]
fn a_missing_config_is_named() {
    let message = Config::load(Some(Path::new("nowhere/my.toml")), &[]).unwrap_err().to_string();
    assert_says(&message, &["nowhere/my.toml: No such file"]);
}

/// Values that break a rule: the key, the value, and a part of what is said.
const RULES: [(&str, &str, &str); 34] = [
    ("data.n_valid", "0", "must be at least 1, got 0"),
    ("data.task.n_symbols", "1", "must lie in 2..="),
    ("data.task.max_len", "0", "must be at least min_len"),
    ("tokenizer.max_size", "4", "must be at least 5"),
    ("model.n_heads", "3", "must divide model.d_model, got 3 and 16"),
    ("model.d_feed_forward", "0", "must be at least 1, got 0"),
    ("model.dropout_rate", "1.0", "must be at least 0 and less than 1, got 1"),
    ("model.attention_dropout_rate", "-0.1", "must be at least 0"),
    ("model.activation_dropout_rate", "2.0", "must be at least 0"),
    ("model.embedding_dropout_rate", "1.5", "must be at least 0 and less than 1, got 1.5"),
    ("model.n_key_value_heads", "0", "must be at least 1, got 0"),
    ("model.n_key_value_heads", "3", "must divide model.n_heads, got 3 and 2"),
    ("training.max_updates", "0", "must be at least 1, got 0"),
    ("training.max_minutes", "0.0", "must be above 0 and finite, got 0"),
    ("training.learning_rate", "0.0", "must be above 0 and finite, got 0"),
    ("training.learning_rate", "inf", "must be above 0 and finite, got inf"),
    ("training.max_minutes", "inf", "must be above 0 and finite, got inf"),
    ("training.clip_norm", "inf", "must be at least 0 and finite, got inf"),
    ("training.optimizer.epsilon", "inf", "must be above 0 and finite, also as a 32-bit number, got inf"),
    ("training.optimizer.weight_decay", "inf", "must be at least 0 and finite, got inf"),
    ("decoding.length_penalty", "inf", "must be finite, got inf"),
    ("decoding.sampling.temperature", "inf", "must be above 0 and finite, got inf"),
    ("training.label_smoothing", "1.0", "must be at least 0 and below 1, got 1"),
    ("training.clip_norm", "-1.0", "must be at least 0 and finite, got -1"),
    ("training.clip_norm", "nan", "must be at least 0 and finite, got NaN"),
    ("training.final_fraction", "1.5", "must be between 0 and 1, got 1.5"),
    ("training.optimizer.beta_2", "1.0", "must be at least 0 and below 1, got 1"),
    ("training.optimizer.epsilon", "0.0", "must be above 0 and finite, also as a 32-bit number, got 0"),
    ("training.optimizer.epsilon", "1e-50", "must be above 0 and finite, also as a 32-bit number, got 0.000"),
    ("training.keep_checkpoints", "0", "must be at least 1, got 0"),
    ("decoding.n_best", "2", "must be at most decoding.beam_size, got 2 and 1"),
    ("decoding.max_len_factor", "-1.0", "must be a finite number of at least 0, got -1"),
    ("decoding.sampling.temperature", "0.0", "must be above 0 and finite, got 0"),
    ("decoding.sampling.top_p", "1.5", "must be above 0 and at most 1, got 1.5"),
];

#[test]
fn a_value_that_breaks_a_rule_names_key_value_and_rule() {
    let dir = TempDir::new().unwrap();
    let path = write_tiny(dir.path(), TRANSFORMER);
    for (key, value, part) in RULES {
        let message = Config::load(Some(&path), &[format!("{key}={value}")]).unwrap_err().to_string();
        assert_says(&message, &[&format!("{key}: "), part]);
    }
    let path = write_tiny(dir.path(), BAHDANAU);
    for (key, value, part) in [
        ("model.attention.score.d_attention", "0", "must be at least 1, got 0"),
        ("model.readout.d_maxout", "0", "must be at least 1, got 0"),
        ("model.context", "initial", "attention makes a new context at every step"),
    ] {
        let message = Config::load(Some(&path), &[format!("{key}={value}")]).unwrap_err().to_string();
        assert_says(&message, &[&format!("{key}: "), part]);
    }
}

/// Schemes with a value that breaks a rule, the key below the scheme's, and a part of what is said.
const SCHEMES: [(&str, &str, &str); 8] = [
    ("kind = \"alibi\", base = 2.0", "", "unknown field `base`"),
    ("kind = \"learned\"", "", "missing field `max_len`"),
    ("kind = \"learned\", max_len = 0", "max_len", "must be at least 1, got 0"),
    ("kind = \"rotary\", base = 1.0", "base", "must be above 1 and finite, got 1"),
    ("kind = \"rotary\", base = inf", "base", "must be above 1 and finite, got inf"),
    ("kind = \"t5\", n_buckets = 7", "n_buckets", "must be even and at least 4, got 7"),
    ("kind = \"t5\", max_distance = 16", "max_distance", "must be above n_buckets / 2, got 16 and 32 / 2"),
    ("kind = \"shaw\", max_distance = 0", "max_distance", "must be at least 1, got 0"),
];

#[test]
fn a_position_scheme_of_either_side_that_breaks_a_rule_names_key_value_and_rule() {
    let dir = TempDir::new().unwrap();
    let path = write_tiny(dir.path(), TRANSFORMER);
    for section in ["model.positions", "model.decoder_positions"] {
        for (scheme, key, part) in SCHEMES {
            let message = Config::load(Some(&path), &[format!("{section}={{ {scheme} }}")]).unwrap_err().to_string();
            let key = if key.is_empty() { String::new() } else { format!("{section}.{key}: ") };
            assert_says(&message, &[&key, part]);
        }
        let odd = [format!("{section}={{ kind = \"rotary\" }}"), "model.d_model=14".into()];
        let message = Config::load(Some(&path), &odd).unwrap_err().to_string();
        assert_says(&message, &[&format!("{section}: "), "must be even, got 14 / 2 = 7"]);
    }
}

#[test]
fn data_that_is_missing_or_twofold_is_refused() {
    let task = "task = { kind = \"copy\" }\n";
    let files = |split: &str| format!("{split} = {{ tsv = \"x\" }}\n");
    for (data, parts) in [
        (String::new(), ["data: ", "data.task.kind, data.train with its files, or data.text"]),
        (format!("{task}{}", files("train")), ["data: ", "has both a task and training files"]),
        (files("train"), ["data.valid: ", "hold_out_per_mille"]),
        (format!("{task}hold_out_per_mille = 9"), ["data.hold_out_per_mille: ", "is for training files"]),
        (format!("{task}hold_out_seed = 1"), ["data.hold_out_seed: ", "is for training files"]),
        (
            format!("hold_out_seed = 1\n{}", files("train")),
            ["data.hold_out_seed: ", "data.hold_out_per_mille holds out"],
        ),
        (format!("{task}filter = {{ max_len = 9 }}"), ["data.filter: ", "is for training files"]),
        (format!("{task}test = {{}}"), ["data.test: ", "no file; give source and target"]),
        (
            format!("hold_out_per_mille = 0\n{}", files("train")),
            ["data.hold_out_per_mille: ", "between 1 and 400, got 0"],
        ),
        (format!("train = {{ source = \"x\" }}\n{}", files("valid")), ["data.train: ", "target is missing"]),
    ] {
        assert_says(&fault(&format!("[data]\n{data}")), &parts);
    }
}

#[test]
fn a_mistake_inside_a_list_has_its_line() {
    let mixers = |second: &str| {
        fault(&format!(
            "[model]\nkind = \"transformer\"\nmixer = [\n  {{ kind = \"attention\" }},\n  {{ {second} }},\n]\n\
             [data]\ntask = {{ kind = \"copy\" }}\n"
        ))
    };
    let misspelt = mixers("kind = \"ssru\", expansoin = 2");
    assert_says(&misspelt, &["my.toml:5: model.mixer[1].expansoin", "did you mean `expansion`?"]);
    assert_says(&mixers("kind = \"ssur\""), &["my.toml:5: model.mixer[1].kind", "did you mean `ssru`?"]);
    assert_says(
        &mixers("kind = \"ssru\", expansion = \"x\""),
        &["my.toml:5: model.mixer[1].expansion: must be a whole number"],
    );
    assert_says(&mixers("kind = \"ssru\", expansion = 0"), &["my.toml:5: model.mixer[1].expansion"]);
}
