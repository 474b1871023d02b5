//! Several ranks train as one process with as many times the `accumulation`: the same bytes. Threads of this process here; processes
//! of MPI in `mpi.rs`.

use super::*;
use lookback::backend::Backend;
use lookback::data::TokenStream;
use lookback::data::masking::Masking;
use lookback::decoding::score_masked;
use lookback::experiment::{Run, train_on};
use lookback::ranks::{Alone, Local, Ranks, within_process};
use lookback::training::Stop;
use tempfile::TempDir;

/// Trains with so many ranks, which are threads, all on the CPU.
fn train_with(n: usize, run: &Path, config: &Config) -> Result<Outcome> {
    let adapters: Vec<_> = (0..n).map(|_| config.backend.open().unwrap()).collect();
    train_on(config, &adapters, &TrainOptions { command: "test".into(), ..TrainOptions::new(run) })
}

/// The tiny experiment, of which each rank works on so many parts of an update.
fn with_parts(model: &str, accumulation: usize) -> Config {
    let mut config = tiny(model);
    config.training.accumulation = accumulation;
    config
}

/// What `assert_same_end` says, and of what people read.
#[track_caller]
fn assert_same_run(expected: &Path, found: &Path, what: &str) {
    assert_same_end(expected, found, what);
    assert_eq!(read(expected.join("config.toml")), read(found.join("config.toml")), "{what}: config.toml");
    assert_eq!(checkpoints(expected), checkpoints(found), "{what}: checkpoints");
    for sample in ["000004.txt", "000012.txt"] {
        let [ours, theirs] = [expected, found].map(|run| read(run.join("samples").join(sample)));
        assert_eq!(ours, theirs, "{what}: {sample}");
    }
}

#[test]
fn ranks_end_with_the_bytes_of_one_process_with_as_many_times_the_accumulation() {
    for (model, of_what) in [(TRANSFORMER, "Transformer"), (BAHDANAU, "Bahdanau")] {
        for (n, accumulation) in [(2, 1), (3, 1), (2, 2)] {
            let dir = TempDir::new().unwrap();
            let (one, several) = (dir.path().join("one"), dir.path().join("several"));
            train_in(&one, &with_parts(model, n * accumulation)).unwrap();
            let outcome = train_with(n, &several, &with_parts(model, accumulation)).unwrap();
            assert_eq!((outcome.stop, outcome.state.update), (Stop::Updates, 12));
            assert_same_run(&one, &several, &format!("{of_what}, {n} ranks with {accumulation} parts"));
        }
    }
}

#[test]
fn masked_words_series_and_text_are_measured_among_ranks_with_the_same_result() {
    let dir = TempDir::new().unwrap();
    ["text.txt", "verse.txt"].iter().for_each(|name| std::fs::write(dir.path().join(name), masked::turns()).unwrap());
    for (name, text) in [("masked", masked::CONFIG), ("series", series::FORECAST), ("text", text::TEXT)] {
        let [one, several] = ["one", "several"].map(|run| dir.path().join(format!("{name}-{run}")));
        let config = |accumulation| {
            let mut config: Config = toml::from_str(text).unwrap();
            config.data.dir = Some(dir.path().to_path_buf());
            // Several batches of validation data, for each rank another.
            (config.training.batch_tokens, config.training.accumulation) = (80, accumulation);
            (config.training.max_updates, config.training.validate_every, config.training.save_every) = (6, 3, 3);
            config.data.n_train = config.data.n_train.min(200);
            config
        };
        train_in(&one, &config(3)).unwrap();
        train_with(3, &several, &config(1)).unwrap();
        assert_same_end(&one, &several, name);
        let sample = |run: &Path| read(run.join("samples/000003.txt"));
        assert_eq!(sample(&one), sample(&several), "{name}");
    }
}

/// Each rank reads its share, and all come to the scores of the whole.
#[test]
fn hidden_words_are_shared_out_among_ranks() {
    let run = Run::open(&masked_model().join("run")).unwrap();
    let loaded = run.load_model(&Backend::Flex.open().unwrap(), None, |fault: String| panic!("{fault}")).unwrap();
    let masking = Masking::new(loaded.tokenizers.source(), 0.3).unwrap();
    let text = TokenStream::new(&masked::turns().lines().collect::<Vec<_>>(), loaded.tokenizers.source());
    let scores = |ranks: &dyn Ranks| {
        let mut n_read = 0;
        let scores = score_masked(&loaded.model, &text, &masking, (18, 40), 1, ranks, |n| n_read = n);
        (n_read, scores)
    };
    let (n_whole, expected) = scores(&Alone);
    let shares: Vec<usize> = std::thread::scope(|scope| {
        let measure = |ranks: Local| {
            let (n_read, found) = scores(&ranks);
            assert_eq!((found.loss.to_bits(), found.masked), (expected.loss.to_bits(), expected.masked));
            n_read
        };
        let threads: Vec<_> = within_process(2).into_iter().map(|rank| scope.spawn(move || measure(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(shares.iter().sum::<usize>(), n_whole);
    assert!(shares.iter().all(|share| *share * 3 > n_whole), "{shares:?} of {n_whole}");
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let dir = TempDir::new().unwrap();
    let (one, several) = (dir.path().join("one"), dir.path().join("several"));
    train_in(&one, &with_parts(TRANSFORMER, 4)).unwrap();
    let mut config = with_parts(TRANSFORMER, 2);
    // Begun with two ranks of two parts; then more ranks than parts; then one, which says how many parts there are.
    for (n, max_updates) in [(2, 4), (5, 8)] {
        config.training.max_updates = max_updates;
        assert_eq!(train_with(n, &several, &config).unwrap().state.update, max_updates);
    }
    let config = with_parts(TRANSFORMER, 4);
    train_in(&several, &config).unwrap();
    assert_same_end(&one, &several, "two ranks, five and one");
}

/// The config of a run names the parts of all ranks, also where it has no checkpoint yet.
#[test]
fn a_run_that_is_named_alone_keeps_its_parts_before_its_first_checkpoint() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let train = |arguments: &[&str]| {
        finish(dir.path(), &[&["train", "--run", "run", "--dashboard", "none"], arguments].concat())
    };
    let ranks = ["--backend", "flex", "--device", "0,0"];
    let first = train(&[&["tiny.toml", "--set", "training.max_updates=1"], &ranks[..]].concat());
    assert_says(&first.stderr, &["an update has 4 parts"]);
    std::fs::remove_dir_all(dir.path().join("run/checkpoints")).unwrap();
    ["best", "last"].iter().for_each(|name| std::fs::remove_file(dir.path().join("run").join(name)).unwrap());
    let again = train(&ranks);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_says(&again.stderr, &["an update has 4 parts"]);
    assert_says(&read(dir.path().join("run/config.toml")), &["accumulation = 4"]);
}

#[test]
fn averaged_checkpoints_and_patience_are_the_same() {
    let dir = TempDir::new().unwrap();
    let (one, several) = (dir.path().join("one"), dir.path().join("several"));
    let config = |accumulation| {
        let mut config = with_parts(BAHDANAU, accumulation);
        config.training.average_checkpoints = 2;
        config.training.patience = 1;
        config.training.max_updates = 40;
        config
    };
    let expected = train_in(&one, &config(2)).unwrap();
    let found = train_with(2, &several, &config(1)).unwrap();
    assert_eq!((expected.stop, expected.state.update), (found.stop, found.state.update));
    assert_same_end(&one, &several, "with patience");
    assert_eq!(checkpoints(&one), checkpoints(&several));
    assert_eq!(read(one.join("log.txt")), read(several.join("log.txt")));
}

#[test]
fn a_fault_of_one_rank_is_said_once_and_ends_all() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    train_with(2, &run, &with_parts(TRANSFORMER, 1)).unwrap();
    let mut other = with_parts(TRANSFORMER, 1);
    other.seed = 6;
    let error = train_with(2, &run, &other).unwrap_err().to_string();
    assert_says(&error, &["seed: is 6 here, but the run was begun with 5"]);
}

#[test]
fn several_devices_on_the_command_line_are_ranks() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let train = |run, set: &[&str], devices: &[&str]| {
        let base = ["train", "tiny.toml", "--run", run, "--dashboard", "none", "--backend", "flex"];
        finish(dir.path(), &[&base[..], set, devices].concat())
    };
    assert_eq!(train("one", &["--set", "training.accumulation=4"], &[]).code, Some(0));
    let finished = train("two", &[], &["--device", "0,0"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["ranks    2; an update has 4 parts, each rank at most 2 of them"]);
    assert_same_end(&dir.path().join("one"), &dir.path().join("two"), "--device 0,0");
    let fault = train("three", &[], &["--device", "0,7"]);
    assert_says(fault.fault(), &["7"]);
}
