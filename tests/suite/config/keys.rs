//! Keys: `--set` reaches each, the schema describes each.

use super::{complete, shipped};
use crate::training::{BAHDANAU, TRANSFORMER, assert_says, succeed, tiny};
use lookback::backend::Backend;
use lookback::experiment::{Config, differences};
use lookback::models::ModelConfig;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tempfile::TempDir;

/// Every key that leads to a value, dotted, with the value.
fn leaves(prefix: &str, table: &toml::Table, found: &mut BTreeMap<String, toml::Value>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(table) => leaves(&path, table, found),
            value => drop(found.insert(path, value.clone())),
        }
    }
}

/// Another value of the same type that no rule refuses here.
fn another(key: &str, value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::Integer(n) => [n * 2, n + 1, n - 1].iter().filter(|m| *m != n).map(i64::to_string).collect(),
        toml::Value::Float(x) => [x / 2.0, x + 0.25].iter().filter(|y| *y != x).map(|y| format!("{y:?}")).collect(),
        toml::Value::Boolean(is_so) => vec![(!is_so).to_string()],
        toml::Value::String(old) => match key.rsplit('.').next().unwrap() {
            "backend" => vec!["ndarray".into()],
            "kind" if key == "model.mixer.kind" => vec!["min-gru".into()],
            "kind" => ["reverse", "char", "learned", "none", "state", "rnn", "transformer"]
                .iter()
                .filter(|kind| **kind != old.as_str())
                .map(|kind| kind.to_string())
                .collect(),
            "norm" => vec!["rms".into()],
            "norm_position" => vec!["post".into()],
            "activation" => vec!["gelu".into()],
            "tied_embeddings" => vec!["all".into()],
            "cell" => vec!["lstm".into()],
            "directions" => vec!["forward".into()],
            "context" => vec!["initial".into()],
            "bridge" => vec!["zeros".into()],
            "output" => vec!["projection".into()],
            "schedule" => vec!["cosine".into()],
            "score" => vec!["bleu".into()],
            "criterion" => vec!["score".into()],
            "dir" | "source" | "target" | "tsv" => vec!["another/path".into()],
            _ => panic!("{key} is new: give it another value here"),
        },
        _ => panic!("{key} = {value}: what else can it be?"),
    }
}

/// The keys of `config` that lead to a value and are `wanted`, each with the config in which it has another one.
pub fn changes(config: &Config, wanted: impl Fn(&str) -> bool) -> Vec<(String, Config)> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("my.toml");
    fs::write(&path, config.to_toml()).unwrap();
    let mut all = BTreeMap::new();
    leaves("", &toml::from_str(&config.to_toml()).unwrap(), &mut all);
    all.retain(|key, _| wanted(key));
    // A task is not filtered.
    all.retain(|key, _| config.data.task.is_none() || !key.starts_with("data.filter."));
    // Scheduled sampling is for recurrent models.
    all.retain(|key, _| matches!(config.model, ModelConfig::Rnn(_)) || !key.starts_with("training.scheduled_sampling"));
    let change = |(key, value): (String, toml::Value)| {
        let changed = another(&key, &value).into_iter().find_map(|new| {
            let settings = match (key.as_str(), new.as_str()) {
                // Kinds bring keys of their own.
                ("model.attention.score.kind", _) => vec!["model.attention.score={ kind = \"general\" }".into()],
                ("model.attention.window.kind", _) => {
                    vec!["model.attention.window={ kind = \"local-m\", half_width = 2 }".into()]
                }
                ("model.residual", _) => vec!["model.residual=true".into(), "model.n_layers=2".into()],
                ("training.scheduled_sampling.kind", _) => {
                    vec!["training.scheduled_sampling={ kind = \"exponential\", k = 0.99 }".into()]
                }
                (
                    "model.attention.kind"
                    | "model.readout.kind"
                    | "tokenizer.kind"
                    | "model.kind"
                    | "model.positions.kind"
                    | "model.decoder_positions.kind",
                    _,
                ) => {
                    let section = key.strip_suffix(".kind").unwrap();
                    vec![format!("{section}={{ kind = \"{new}\" }}")]
                }
                ("model.share_layers", _) => {
                    vec!["model.share_layers=true".into(), "model.n_encoder_layers=2".into()]
                }
                ("model.mixer.kind", _) => vec![
                    "model.mixer={ kind = \"min-gru\" }".into(),
                    "model.positions={ kind = \"sinusoidal\" }".into(),
                    "model.decoder_positions={ kind = \"none\" }".into(),
                ],
                ("model.context", _) => vec![format!("{key}={new}"), "model.attention={ kind = \"none\" }".into()],
                // It is for a TSV alone.
                ("data.test.ignore_extra_columns", _) => {
                    vec![format!("data.test={{ tsv = \"x\", ignore_extra_columns = {new} }}")]
                }
                _ => vec![format!("{key}={new}")],
            };
            Config::load(Some(&path), &settings).ok()
        });
        let changed = changed.unwrap_or_else(|| panic!("no other value of {key} = {value} is accepted"));
        (key, changed)
    };
    all.into_iter().map(change).collect()
}

#[test]
fn set_reaches_every_key() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("my.toml");
    for config in complete() {
        fs::write(&path, config.to_toml()).unwrap();
        // Paths in a file are relative to it.
        let config = Config::load(Some(&path), &[]).unwrap();
        let all = changes(&config, |_| true);
        assert!(all.len() > 60, "only {} keys", all.len());
        for (key, changed) in all {
            let keys: Vec<String> = differences(&config, &changed).into_iter().map(|(key, _, _)| key).collect();
            assert!(keys.contains(&key), "{key} has not changed: {keys:?}");
            if !key.ends_with("kind")
                && !["model.context", "model.residual", "model.share_layers", "data.test.ignore_extra_columns"]
                    .contains(&key.as_str())
            {
                assert_eq!(keys, [key]);
            }
        }
    }
}

#[test]
fn set_reads_numbers_words_tables_and_unset_keys_and_refuses_the_rest() {
    let load =
        |settings: &[&str]| Config::load(None, &settings.iter().map(|setting| setting.to_string()).collect::<Vec<_>>());
    let config = load(&[
        "backend=ndarray",
        "training.learning_rate = 3e-4",
        "training.max_minutes=2",
        "training.score=\"bleu\"",
    ])
    .unwrap();
    assert_eq!((config.backend, config.training.learning_rate), (Backend::Ndarray, 3e-4));
    assert_eq!(config.training.max_minutes, Some(2.0));
    assert_eq!(load(&["seed=3", "seed=4"]).unwrap().seed, 4, "the last one counts");
    assert_eq!(load(&["data.dir=some/where"]).unwrap().data.dir, Some("some/where".into()));
    for (setting, parts) in [
        (
            "training.learning_rat=1",
            &["--set training.learning_rat=1: ", "`learning_rat`", "did you mean `learning_rate`?"][..],
        ),
        ("trianing.patience=1", &["`trianing`", "did you mean `training`?"]),
        ("model.heads=2", &["`heads`", "`n_heads`"]),
        ("seed", &["--set seed: write key.path=value, as in --set"]),
        ("=3", &["the key is empty"]),
        ("training.=3", &["the key is empty"]),
        ("backend.more=3", &["`backend` is a value, not a section"]),
        ("seed=many", &["--set seed=many: must be a whole number of at least 0, got the text \"many\""]),
        ("model.n_heads=5", &["model.n_heads: must divide model.d_model"]),
    ] {
        assert_says(&load(&[setting]).unwrap_err().to_string(), parts);
    }
}

#[test]
fn differences_names_keys_and_both_values() {
    let old = tiny(TRANSFORMER);
    assert_eq!(differences(&old, &old), []);
    let mut new = old.clone();
    new.seed = 9;
    new.training.optimizer.beta_1 = 0.5;
    new.training.max_minutes = Some(3.0);
    let found = differences(&old, &new);
    let expected = [
        ("seed", "5", "9"),
        ("training.max_minutes", "\"(unset)\"", "3.0"),
        ("training.optimizer.beta_1", "0.9", "0.5"),
    ];
    assert_eq!(found, expected.map(|(key, old, new)| (key.to_string(), old.to_string(), new.to_string())));
    let kinds: Vec<String> = differences(&old, &tiny(BAHDANAU)).into_iter().map(|(key, _, _)| key).collect();
    assert_says(&kinds.join(" "), &["model.kind", "model.d_hidden", "model.d_model"]);
}

/// Collects the dotted keys of a JSON schema; those without a description go to `bare`.
fn keys_of(schema: &Value, root: &Value, path: &str, found: &mut BTreeSet<String>, bare: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        keys_of(
            root.pointer(reference.trim_start_matches('#')).expect("a reference leads somewhere"),
            root,
            path,
            found,
            bare,
        );
    }
    for alternatives in ["oneOf", "anyOf", "allOf"] {
        for part in schema[alternatives].as_array().into_iter().flatten() {
            keys_of(part, root, path, found, bare);
        }
    }
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        // What a kind is stands at the alternative as a whole.
        let about = if key == "kind" { schema } else { property };
        if about["description"].as_str().unwrap_or_default().len() < 3 {
            bare.insert(path.clone());
        }
        found.insert(path.clone());
        keys_of(property, root, &path, found, bare);
    }
}

#[test]
fn the_schema_describes_every_key() {
    let dir = TempDir::new().unwrap();
    let schema: Value = serde_json::from_str(&succeed(dir.path(), &["config", "schema"])).unwrap();
    let (mut found, mut bare) = (BTreeSet::new(), BTreeSet::new());
    keys_of(&schema, &schema, "", &mut found, &mut bare);
    assert_eq!(bare, BTreeSet::new(), "keys without a description");
    let configs =
        shipped().iter().map(|path| Config::load(Some(path), &[]).unwrap()).chain(complete()).collect::<Vec<_>>();
    for config in configs {
        let mut keys = BTreeMap::new();
        leaves("", &toml::from_str(&config.to_toml()).unwrap(), &mut keys);
        for key in keys.keys() {
            assert!(found.contains(key), "{key} is not in the schema");
        }
    }
}
