//! Configs: every shipped file trains, every mistake is named, `--set` reaches every key, every key means something.

mod attention;
pub mod keys;
mod mistakes;

use crate::reliability::sampled;
use crate::training::{
    BAHDANAU, TRANSFORMER, assert_says, fail, finish, succeed, tiny, tiny_text, train_in, write_tiny,
};
use lookback::backend::Backend;
use lookback::data::{Split, SplitFiles, TaskConfig};
use lookback::experiment::{Config, QUICK_START};
use lookback::layers::position::PositionConfig;
use lookback::models::ModelConfig;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn shipped() -> Vec<PathBuf> {
    let folder = |name: &str| fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let entries = folder("config").chain(folder("config/compare"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| !path.is_dir()).collect();
    files.sort();
    assert!(files.len() >= 16 && files.iter().all(|path| path.extension().is_some_and(|e| e == "toml")), "{files:?}");
    files
}

/// Both tiny configs with every optional key set, one with a task and one with files.
fn complete() -> Vec<Config> {
    [TRANSFORMER, BAHDANAU]
        .map(|model| {
            let mut config = tiny(model);
            config.training.max_minutes = Some(8.0);
            config.decoding.sampling = Some(Default::default());
            config.data.dir = Some("some/where".into());
            config.data.test = Some(SplitFiles::parallel("test.src", "test.tgt"));
            if let ModelConfig::Transformer(model) = &mut config.model {
                model.n_key_value_heads = Some(1);
                model.embedding_dropout_rate = Some(0.1);
                model.positions = PositionConfig::T5 { n_buckets: 8, max_distance: 20 };
                model.decoder_positions = Some(PositionConfig::Rotary { base: 100.0 });
            }
            if model == BAHDANAU {
                config.data.task = None;
                config.data.train = Some(SplitFiles::tsv("train.tsv"));
                config.data.hold_out_per_mille = Some(100);
                config.data.hold_out_seed = 2;
                config.data.filter.max_len = Some(9);
                config.data.filter.max_ratio = Some(3.0);
            }
            config
        })
        .to_vec()
}

/// Writes a small corpus at every path that `config` names, under `dir`.
fn substitute_corpus(config: &mut Config, dir: &Path) {
    config.data.dir = Some(dir.to_path_buf());
    let task = TaskConfig::from_name("numbers").unwrap();
    if let Some(text) = &mut config.data.text {
        text.context = 20;
        for (file, split) in
            Split::ALL.iter().flat_map(|split| text.files(*split).iter().map(move |file| (file, *split)))
        {
            let pairs = task.generate(split, 40, 1).unwrap();
            fs::write(dir.join(file), pairs.iter().map(|pair| format!("{}\n", pair.source)).collect::<String>())
                .unwrap();
        }
    }
    for (split, files) in
        [(Split::Train, &config.data.train), (Split::Valid, &config.data.valid), (Split::Test, &config.data.test)]
    {
        let Some(files) = files.as_ref().map(|files| config.data.resolve(files)) else { continue };
        let pairs = task.generate(split, 40, 1).unwrap();
        let side =
            |pick: fn(&lookback::data::Pair) -> String| pairs.iter().map(|pair| pick(pair) + "\n").collect::<String>();
        for (path, text) in [
            (&files.source, side(|pair| pair.source.clone())),
            (&files.target, side(|pair| pair.target.clone())),
            (&files.tsv, side(|pair| format!("{}\t{}", pair.source, pair.target))),
        ] {
            path.iter().for_each(|path| fs::write(path, &text).unwrap());
        }
    }
}

#[test]
fn every_shipped_config_is_valid_builds_its_model_and_makes_an_update() {
    for path in sampled(shipped(), 3) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut config = Config::load(Some(&path), &[]).unwrap_or_else(|error| panic!("{error}"));
        let dir = TempDir::new().unwrap();
        if config.data.task.is_none() {
            substitute_corpus(&mut config, dir.path());
        }
        if let ModelConfig::Transformer(model) = &mut config.model {
            // One layer is like another, and those of an unscaled model make a checkpoint of gigabytes.
            (model.n_encoder_layers, model.n_decoder_layers) = (1, 1);
        }
        config.backend = Backend::Flex;
        (config.data.n_train, config.data.n_valid, config.data.n_test) = (300, 3, 3);
        // Of a few pairs.
        config.data.hold_out_per_mille = config.data.hold_out_per_mille.map(|_| 300);
        config.training.batch_tokens = 60;
        config.training.sample_size = 1;
        config.training.max_updates = 1;
        let run = dir.path().join("run");
        let outcome = train_in(&run, &config).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(outcome.state.update, 1, "{name}");
        assert!(outcome.state.best.is_some_and(f64::is_finite), "{name}");
    }
}

#[test]
fn a_shipped_config_says_what_its_data_and_its_command_are() {
    for path in shipped() {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(text.starts_with("# "), "{name} begins with what it is");
        if name != "quick-start.toml" {
            let is_built_in = path.parent().is_some_and(|folder| folder.ends_with("compare"));
            let command = if is_built_in { "lookback compare".into() } else { format!("lookback train config/{name}") };
            assert!(text.contains(&command), "{name} gives its command");
        }
        assert!(name == "quick-start.toml" || text.lines().count() < 60, "{name} lists only what it chooses");
    }
}

#[test]
fn the_quick_start_is_the_shipped_file_and_is_used_without_a_config() {
    let file = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/quick-start.toml")).unwrap();
    assert_eq!(QUICK_START, file);
    assert_eq!(Config::load(None, &[]).unwrap(), toml::from_str(&file).unwrap());
}

#[test]
fn a_resolved_config_reads_back_as_itself() {
    for path in shipped() {
        let config = Config::load(Some(&path), &[]).unwrap();
        let again: Config = toml::from_str(&config.to_toml()).unwrap();
        assert_eq!(again, config, "{}", path.display());
        assert_eq!(again.to_toml(), config.to_toml());
    }
}

#[test]
fn config_show_prints_the_resolved_config_and_check_says_that_it_is_right() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let shown = succeed(dir.path(), &["config", "show", "tiny.toml", "--set", "seed=8"]);
    assert_eq!(toml::from_str::<Config>(&shown).unwrap(), Config { seed: 8, ..tiny(BAHDANAU) });
    assert_says(&shown, &["label_smoothing = 0.1", "beam_size = 1"]);
    assert_says(
        &succeed(dir.path(), &["config", "check", "tiny.toml"]),
        &["tiny.toml: every key and value is right; the data were not read"],
    );
    let read = succeed(dir.path(), &["config", "check", "tiny.toml", "--data"]);
    assert_says(&read, &["is right\n", "training    50 pairs\n", "validation  7 pairs\n", "test        3 pairs\n"]);
    assert_eq!(
        toml::from_str::<Config>(&succeed(dir.path(), &["config", "show"])).unwrap(),
        Config::load(None, &[]).unwrap()
    );
    let finished = finish(dir.path(), &["config", "check", "tiny.toml", "--set", "model.d_hiden=3"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
    assert_says(finished.fault(), &["--set model.d_hiden=3: ", "`d_hiden`", "did you mean `d_hidden`?"]);
}

#[test]
fn config_check_reads_the_data_when_it_is_asked_to() {
    let dir = TempDir::new().unwrap();
    let text = tiny_text(BAHDANAU);
    let (start, rest) = text.split_once("[data]").unwrap();
    let rest = &rest[rest.find("[tokenizer]").unwrap()..];
    let data = "[data]\ntrain = { tsv = \"train.tsv\" }\nvalid = { tsv = \"valid.tsv\" }\nfilter = { max_len = 2 }\n";
    fs::write(dir.path().join("my.toml"), format!("{start}{data}{rest}")).unwrap();
    let check = ["config", "check", "my.toml", "--data"];
    // Without --data nothing is said of data that are not there.
    succeed(dir.path(), &check[..3]);
    assert_says(&fail(dir.path(), &check), &["train.tsv: No such file"]);
    fs::write(dir.path().join("train.tsv"), "a b\tA B\nc\n").unwrap();
    assert_says(&fail(dir.path(), &check), &["train.tsv:2: 1 column instead of 2"]);
    fs::write(dir.path().join("train.tsv"), "a b\tA B\nc\tC\na b c\tA\n").unwrap();
    fs::write(dir.path().join("valid.tsv"), "d\tD\n").unwrap();
    let says =
        ["training    2 pairs, 1 left out by the filter (", "validation  1 pairs", "test        none; data.test"];
    assert_says(&succeed(dir.path(), &check), &says);
    let named = [&check[..], &["--set", "data.test.tsv=test.tsv"]].concat();
    assert_says(&fail(dir.path(), &named), &["test.tsv: No such file"]);
    fs::write(dir.path().join("test.tsv"), "d\tD\nd\tE\n").unwrap();
    assert_says(&succeed(dir.path(), &named), &["test        2 pairs\n"]);
    let grouped = [&named[..], &["--set", "data.several_references=true"]].concat();
    assert_says(&succeed(dir.path(), &grouped), &["test        1 sources\n"]);
}

/// A list of mixers may have more than there are layers.
#[test]
fn a_mixer_beyond_the_last_layer_is_none_of_the_model() {
    let has_attention_alone = |n_layers: usize| {
        let text = format!(
            "[data]\ntask = {{ kind = \"copy\" }}\n[model]\nkind = \"decoder-only\"\nn_layers = {n_layers}\n\
             mixer = [{{ kind = \"attention\" }}, {{ kind = \"min-gru\" }}]\n"
        );
        let config: Config = toml::from_str(&text).unwrap();
        let ModelConfig::DecoderOnly(model) = &config.model else { panic!("another kind") };
        model.has_attention_alone()
    };
    assert_eq!([1, 2].map(has_attention_alone), [true, false]);
}
