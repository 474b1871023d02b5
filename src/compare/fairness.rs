//! What is the same for all contestants and what is not.

use super::plan::{Entrant, EntrantRun};
use super::training::Finished;
use crate::experiment::{Config, Run};
use crate::report::comparison::{Contestant, Difference, Fact};

/// What a comparison of equals holds equal: a name for readers, and the keys of the config.
const EQUAL: [(&str, &[&str]); 10] = [
    (
        "training data",
        &["data.task", "data.n_train", "data.train", "data.filter", "data.hold_out_per_mille", "data.hold_out_seed"],
    ),
    // They choose the checkpoint that is tested, and may end training.
    ("validation data", &["data.valid", "data.n_valid", "data.several_references", "training.sample_size"]),
    ("tokenizer", &["tokenizer"]),
    ("tokens in a batch", &["training.batch_tokens", "training.accumulation"]),
    ("planned updates", &["training.max_updates"]),
    ("planned minutes", &["training.max_minutes"]),
    ("score in training", &["training.score"]),
    ("early stopping", &["training.patience", "training.validate_every", "training.criterion"]),
    ("schedule", &["training.schedule", "training.warmup_updates", "training.final_fraction"]),
    (
        "regularization and optimizer",
        &[
            "training.label_smoothing",
            "training.clip_norm",
            "training.optimizer",
            "training.average_checkpoints",
            "training.scheduled_sampling",
        ],
    ),
];

/// What is equal and what differs, besides the models themselves.
pub fn compare(
    entrants: &[Entrant],
    contestants: &[Contestant],
    finished: &[Vec<Finished>],
) -> (Vec<Fact>, Vec<Difference>) {
    let (mut same, mut different) = (Vec::new(), Vec::new());
    let mut put = |what: &str, values: Vec<String>| {
        if values.iter().all(|value| *value == values[0]) {
            same.push(Fact { what: what.into(), value: values[0].clone() });
        } else {
            different.push(Difference { what: what.into(), values });
        }
    };
    for (what, keys) in EQUAL {
        put(what, entrants.iter().map(|entrant| values(&entrant.config, keys)).collect());
    }
    let vocabularies = entrants.iter().map(|entrant| {
        let tokenizers = Run::open(&entrant.runs[0].folder).and_then(|run| run.tokenizers());
        tokenizers.map_or("unknown".into(), |tokenizers| {
            format!("{} source, {} target", tokenizers.source().vocab_size(), tokenizers.target().vocab_size())
        })
    });
    put("vocabulary", vocabularies.collect());
    let start = |run: &EntrantRun| {
        let environment = Run::open(&run.folder).and_then(|run| run.environment());
        let start = environment.ok().and_then(|environment| environment.init_from);
        start.map_or("random parameters".into(), |run| format!("parameters of {run}"))
    };
    let starts = entrants.iter().map(|entrant| list::<String>(&entrant.runs.iter().map(start).collect::<Vec<_>>()));
    put("start of training", starts.collect());
    put("seeds", contestants.iter().map(|c| list(&c.seeds)).collect());
    put("order of the batches", entrants.iter().map(batches).collect());
    put("updates made", contestants.iter().map(|c| list(&c.updates)).collect());
    put("target tokens learnt from", contestants.iter().map(|c| list(&c.train_tokens)).collect());
    put(
        "end of training",
        finished.iter().map(|all| list(&all.iter().map(|f| f.why.clone()).collect::<Vec<_>>())).collect(),
    );
    put("parameters", contestants.iter().map(|c| c.parameters.to_string()).collect());
    put("learning rate", contestants.iter().map(|c| c.learning_rate.to_string()).collect());
    put("dropout", contestants.iter().map(|c| c.dropout_rate.to_string()).collect());
    let seconds = |c: &Contestant| list(&c.train_seconds.iter().map(|s| format!("{s:.0}")).collect::<Vec<_>>());
    put("seconds of training", contestants.iter().map(seconds).collect());
    let device = |run: &EntrantRun| {
        let environment = Run::open(&run.folder).and_then(|run| run.environment());
        environment.map_or("unknown".into(), |e| format!("{} ({}), version {}", e.backend, e.device, e.version))
    };
    let devices = entrants.iter().map(|entrant| list::<String>(&entrant.runs.iter().map(device).collect::<Vec<_>>()));
    put("device", devices.collect());
    (same, different)
}

/// The order of the batches follows from the data, the tokenizer, the size of a batch and the seed.
fn batches(entrant: &Entrant) -> String {
    let config = &entrant.config;
    let runs = entrant.runs.iter().map(|run| Run::open(&run.folder).and_then(|run| run.environment()));
    let hashes: Vec<String> = runs
        .map(|environment| {
            environment.map_or("unknown".into(), |e| {
                e.data_sha256
                    .iter()
                    .filter(|(name, _)| name.starts_with("train"))
                    .map(|(_, hash)| hash[..8.min(hash.len())].to_string())
                    .collect::<Vec<_>>()
                    .join("+")
            })
        })
        .collect();
    let tokenizer = Run::open(&entrant.runs[0].folder).and_then(|run| run.tokenizers());
    let tokenizer = tokenizer.map_or("unknown".into(), |tokenizers| tokenizers.fingerprint()[..8].to_string());
    let seeds = list(&entrant.runs.iter().map(|run| run.seed).collect::<Vec<_>>());
    let n_tokens = config.training.batch_tokens * config.training.accumulation;
    format!("{n_tokens} tokens, data {}, tokenizer {tokenizer}, seed {seeds}", hashes.join(", "))
}

fn list<T: std::fmt::Display>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(T::to_string).collect();
    if texts.iter().all(|text| *text == texts[0]) {
        texts.into_iter().next().unwrap_or_default()
    } else {
        texts.join(", ")
    }
}

/// The values of some keys, as in a config file; keys of a section together.
fn values(config: &Config, keys: &[&str]) -> String {
    let table = toml::Table::try_from(config).expect("every field of a config is a TOML value");
    let found = keys.iter().filter_map(|key| {
        let mut value = toml::Value::Table(table.clone());
        for part in key.split('.') {
            value = value.get(part)?.clone();
        }
        let last = key.rsplit('.').next().unwrap_or(key);
        Some(if keys.len() == 1 { inline(&value) } else { format!("{last} = {}", inline(&value)) })
    });
    let text = found.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".into() } else { text }
}

fn inline(value: &toml::Value) -> String {
    value.to_string().replace('"', "")
}
