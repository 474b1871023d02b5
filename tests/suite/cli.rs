//! The program: results on standard output, everything else on standard error, exit codes, and what bad input gets.

mod attend;
mod bad_input;
mod evaluate;
mod explain;
mod export;
mod flags;
mod generate;
mod inspect;
mod manners;
mod silence;
mod translate;

use crate::support::shared_dir;
use crate::training::{
    BAHDANAU, TRANSFORMER, assert_same_end, assert_says, fail, finish, lookback, named, read, succeed, write_tiny,
};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;
use tempfile::TempDir;

/// A folder with the run `run`: a small Transformer that copies up to five symbols well, though not always. It is trained
/// once for all tests, which must not write into it.
static TRAINED: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = shared_dir();
    write_tiny(dir.path(), &TRANSFORMER.replace("dropout_rate = 0.2", "dropout_rate = 0.0"));
    let settings = [
        "data.n_train=400",
        "training.max_updates=150",
        "training.batch_tokens=200",
        "training.validate_every=150",
        "training.save_every=150",
        "training.accumulation=1",
    ];
    let mut arguments = vec!["train", "tiny.toml", "--run", "run"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    succeed(dir.path(), &arguments);
    dir
});

/// The folder of the trained run.
pub fn trained() -> &'static Path {
    TRAINED.path()
}

/// The program in the folder of the trained run, with `input` on standard input; what it writes to standard output.
#[track_caller]
fn pipe(arguments: &[&str], input: &str) -> String {
    let mut child = lookback(trained(), arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let finished = crate::training::Finished::from(child.wait_with_output().unwrap());
    assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
    finished.stdout
}

#[test]
fn a_new_model_is_trained_translates_and_is_scored() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let finished = finish(dir.path(), &["train", "tiny.toml", "--set", "training.max_updates=2"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    // Standard output: the result, examples, and where it is. Standard error: the rest.
    assert_says(&finished.stdout, &["held-out test: ", " % of 3 sequences right", "  ->  ", "the run is in runs/tiny"]);
    assert_says(
        &finished.stderr,
        &[
            "data     50 training pairs",
            "tokens   9 source",
            "model    ",
            "device   flex",
            "update      1/2",
            "sequence accuracy ",
            "all updates made: 2 updates",
        ],
    );
    for line in finished.stdout.lines() {
        assert!(!finished.stderr.contains(line), "{line:?} stands in both");
    }
    std::fs::write(dir.path().join("in"), "a b\nc\n").unwrap();
    let translated = finish(dir.path(), &["translate", "--run", "runs/tiny", "--input", "in"]);
    assert_eq!((translated.code, translated.stdout.lines().count()), (Some(0), 2), "{}", translated.stderr);
    let scored = finish(dir.path(), &["evaluate", "--run", "runs/tiny"]);
    assert_eq!((scored.code, scored.stderr.as_str()), (Some(0), ""));
    assert_says(
        &scored.stdout,
        &["sentences                            3", "BLEU", "chrF", "sequence accuracy", "perplexity", "source length"],
    );
}

#[test]
fn without_a_config_the_quick_start_runs() {
    let dir = TempDir::new().unwrap();
    let finished = finish(
        dir.path(),
        &[
            "train",
            "--set",
            "training.max_updates=1",
            "--set",
            "data.n_train=50",
            "--set",
            "data.n_valid=2",
            "--set",
            "data.n_test=2",
            "--set",
            "training.batch_tokens=100",
        ],
    );
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(
        &finished.stderr,
        &["The quick start: a small Transformer learns to write sequences of letters backwards."],
    );
    assert_says(&finished.stdout, &["the run is in runs/quick-start", "lookback translate --run runs/quick-start"]);
    assert!(dir.path().join("runs/quick-start/config.toml").is_file());
}

#[test]
fn a_silent_dashboard_shows_no_updates() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let arguments = ["train", "tiny.toml", "--set", "training.max_updates=2", "--dashboard", "none"];
    let finished = finish(dir.path(), &arguments);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!finished.stderr.lines().any(|line| line.starts_with("update ")), "{}", finished.stderr);
}

#[test]
fn wrong_usage_is_exit_code_2_and_says_what_is_allowed() {
    let dir = TempDir::new().unwrap();
    for (arguments, parts) in [
        (
            &["train", "--backend", "tpu"][..],
            &[
                "invalid value 'tpu' for '--backend <BACKEND>'",
                "[possible values: auto, flex, ndarray, wgpu, vulkan, metal, cuda]",
            ][..],
        ),
        (&["train", "--dashboard", "loud"], &["invalid value 'loud'", "[possible values: auto, tui, plain, none]"]),
        (&["trian"], &["unrecognized subcommand 'trian'", "train"]),
        (&["translate"], &["--run <RUN>"]),
        (&["translate", "--run", "x", "--beem", "3"], &["unexpected argument '--beem'", "--beam"]),
        (&["translate", "--run", "x", "--top-k", "3"], &["--sample"]),
        (&["translate", "--run", "x", "--targets", "y", "--n-best", "2"], &["--targets", "--n-best"]),
        (&["evaluate"], &["--run <RUN>"]),
        (&["evaluate", "--run", "x", "--hypotheses", "y", "--references", "z"], &["cannot be used with"]),
        (&["evaluate", "--hypotheses", "y"], &["--references <REFERENCES>"]),
        (&["data", "generate", "copy"], &["--out <OUT>"]),
        (&[], &["Usage: lookback"]),
    ] {
        let finished = finish(dir.path(), arguments);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert_says(&finished.stderr, parts);
    }
}

#[test]
fn help_has_examples_and_the_version_is_the_crate_s() {
    let dir = TempDir::new().unwrap();
    for command in [
        &["--help"][..],
        &["train", "--help"],
        &["translate", "--help"],
        &["evaluate", "--help"],
        &["data", "generate", "--help"],
        &["data", "fetch", "--help"],
    ] {
        assert_says(&succeed(dir.path(), command), &["Example", "lookback "]);
    }
    let number = format!("lookback {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(succeed(dir.path(), &["-V"]), number);
    let long = succeed(dir.path(), &["--version"]);
    assert_says(&long, &[&number, "\nfeatures      flex ", "\nplatform      ", "\ninstructions  "]);
    assert_eq!(long.contains(" mpi "), cfg!(feature = "mpi"), "{long}");
}

#[test]
fn completions_for_every_shell_name_every_command() {
    let dir = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = succeed(dir.path(), &["completions", shell]);
        assert_says(&script, &["lookback", "train", "translate", "evaluate", "devices", "init-from"]);
    }
}

#[test]
fn devices_lists_every_backend_and_what_auto_is() {
    let dir = TempDir::new().unwrap();
    let text = succeed(dir.path(), &["devices"]);
    let has = |backend: &str| text.lines().any(|line| line.starts_with(&format!("{backend:<8}  ")));
    assert!(["flex", "ndarray", "wgpu", "vulkan", "metal", "cuda"].into_iter().all(has), "{text}");
    assert_says(&text, &["flex      0  CPU, ", "auto         is "]);
    if cfg!(not(feature = "cuda")) {
        assert_says(&text, &["cuda         not in this build; build with --features cuda"]);
    }
}

#[test]
fn a_named_backend_that_cannot_be_checked_is_an_error() {
    let dir = TempDir::new().unwrap();
    let flex = fail(dir.path(), &["devices", "--check", "--backend", "flex"]);
    assert_says(&flex, &["--check: flex is what the other backends are compared with"]);
    if cfg!(not(feature = "cuda")) {
        let absent = fail(dir.path(), &["devices", "--check", "--backend", "cuda"]);
        assert_says(&absent, &["backend \"cuda\" is not in this build"]);
    }
    assert_says(&succeed(dir.path(), &["devices", "--backend", "flex"]), &["flex      0  CPU, "]);
}

#[test]
fn the_number_of_threads_is_as_asked_and_changes_nothing_that_is_learnt() {
    let wide = ["model.d_model=64", "model.d_feed_forward=300"];
    let wide_rnn = ["model.d_hidden=70", "model.d_embedding=40"];
    let gated_delta = TRANSFORMER
        .replace("dropout_rate = 0.2", "mixer = { kind = \"gated-delta\", convolution = 3 }\ndropout_rate = 0.2");
    // Heads are shared out where a batch has few sentences.
    let few = ["model.d_model=128", "training.batch_tokens=20"];
    for (model, wide) in
        [(TRANSFORMER, wide), (BAHDANAU, wide_rnn), (gated_delta.as_str(), wide), (gated_delta.as_str(), few)]
    {
        let dir = TempDir::new().unwrap();
        write_tiny(dir.path(), model);
        // Enough sentences that work is shared out.
        let mut arguments =
            vec!["train", "tiny.toml", "--set", "training.batch_tokens=1500", "--set", "data.n_train=600"];
        arguments
            .extend(["--set", "training.max_updates=4"].into_iter().chain(wide.iter().flat_map(|set| ["--set", set])));
        for (threads, run) in [("1", "one"), ("3", "three")] {
            succeed(dir.path(), &[&arguments[..], &["--threads", threads, "--run", run]].concat());
        }
        assert_same_end(&dir.path().join("one"), &dir.path().join("three"), "one thread and three");
    }
    let dir = TempDir::new().unwrap();
    assert_says(&succeed(dir.path(), &["devices", "--threads", "1"]), &["flex      0  CPU, 1 thread, "]);
    assert_says(&succeed(dir.path(), &["--threads", "3", "devices"]), &["flex      0  CPU, 3 threads, "]);
    assert_says(&succeed(dir.path(), &["devices", "--simd", "scalar"]), &["no vector instructions"]);
    let refused = finish(dir.path(), &["devices", "--simd", "v5"]);
    assert_eq!(refused.code, Some(2));
    let refused = finish(dir.path(), &["devices", "--threads", "0"]);
    assert_eq!(refused.code, Some(2));
    assert_says(&refused.stderr, &["invalid value '0' for '--threads <N>'"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let long = "a b c\n".repeat(30_000);
    std::fs::write(trained().join("long"), &long).unwrap();
    std::fs::write(trained().join("empty"), "\n".repeat(200_000)).unwrap();
    for arguments in [
        &["config", "schema"][..],
        &["config", "show"],
        &["completions", "zsh"],
        &["data", "list"],
        &["translate", "--run", "run", "--input", "empty"],
        &["evaluate", "--hypotheses", "long", "--references", "long"],
    ] {
        let mut child = lookback(trained(), arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Nobody reads: the pipe breaks at the first write, or when it is full.
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn the_run_folder_has_the_files_that_are_promised() {
    let run = trained().join("run");
    for file in
        ["config.toml", "tokenizer.json", "environment.json", "metrics.jsonl", "best", "last", "samples/000150.txt"]
    {
        assert!(run.join(file).is_file(), "{file} is missing");
    }
    let checkpoint = run.join("checkpoints").join(named(&run, "last"));
    for file in ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"] {
        assert!(checkpoint.join(file).is_file(), "{file} is missing");
    }
    let environment: serde_json::Value = serde_json::from_str(&read(run.join("environment.json"))).unwrap();
    assert_eq!(environment["backend"], "flex");
    assert_eq!(environment["version"], env!("CARGO_PKG_VERSION"));
    assert_says(
        environment["command"].as_str().unwrap(),
        &["lookback train tiny.toml --run run --set data.n_train=400"],
    );
    assert_says(&read(run.join("samples/000150.txt")), &["source     ", "reference  ", "model      "]);
    let lines = read(run.join("metrics.jsonl"));
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        for key in ["split", "update", "epoch", "loss", "perplexity", "token_accuracy", "tokens", "seconds"] {
            assert!(!line[key].is_null(), "{key} is missing in {line}");
        }
    }
    assert_eq!(lines.lines().count(), 151);
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = TempDir::new().unwrap();
    assert_says(&succeed(dir.path(), &["man", "--out", "man/man1"]), &["man/man1"]);
    let page = read(dir.path().join("man/man1/lookback-translate.1"));
    assert_says(&page, &["\\-\\-alignments", "Pharaoh", "Examples:"]);
    for command in ["lookback", "lookback-import-marian", "lookback-inspect-attention", "lookback-serve"] {
        assert!(dir.path().join(format!("man/man1/{command}.1")).is_file(), "{command}");
    }
}

/// The names of all fields in a value.
fn field_names(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(object) => object.iter().for_each(|(name, value)| {
            found.push(name.clone());
            field_names(value, found);
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| field_names(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_of_json_stands_in_the_documents() {
    let dir = TRAINED.path();
    let scratch = TempDir::new().unwrap();
    std::fs::write(scratch.path().join("in.txt"), "a b\n").unwrap();
    let input = scratch.path().join("in.txt");
    let input = input.to_str().unwrap();
    let text_model = crate::training::language_model();
    let outputs = [
        ("metrics", read(dir.join("run/metrics.jsonl"))),
        ("translate", succeed(dir, &["translate", "--run", "run", "--input", input, "--json"])),
        (
            "translate-targets",
            succeed(dir, &["translate", "--run", "run", "--input", input, "--targets", input, "--json"]),
        ),
        ("evaluate", succeed(dir, &["evaluate", "--run", "run", "--json"])),
        ("generate", succeed(text_model, &["generate", "--run", "run", "a", "--max-tokens", "2", "--json"])),
        ("metrics", read(text_model.join("run/metrics.jsonl"))),
        ("attend", succeed(dir, &["attend", "--query", "1,0", "--keys", "1,0;0,1", "--json"])),
        ("devices", succeed(dir, &["devices", "--json"])),
        ("explain", succeed(dir, &["explain", "--run", "run", "a b", "--json"])),
        ("inspect-attention", succeed(dir, &["inspect", "attention", "--run", "run", "--input", input, "--json"])),
    ];
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let document = read(docs.join("reference/files.md"));
    for (name, text) in outputs {
        let schema: serde_json::Value =
            serde_json::from_str(&read(docs.join(format!("schemas/{name}.schema.json")))).unwrap();
        // Properties are fields of the schema, as are its own words.
        let (mut known, mut found) = (Vec::new(), Vec::new());
        field_names(&schema, &mut known);
        text.lines().for_each(|line| field_names(&serde_json::from_str(line).unwrap(), &mut found));
        assert!(found.len() >= 5, "{name}: {found:?}");
        for field in found {
            assert!(known.contains(&field), "docs/schemas/{name}.schema.json does not name {field}");
            // Those of a page of their own.
            if !["explain", "inspect-attention"].contains(&name) {
                assert!(document.contains(&format!("`{field}`")), "docs/reference/files.md does not name {field}");
            }
        }
    }
}

#[test]
fn the_schemas_in_the_documents_are_those_of_the_program() {
    let dir = TempDir::new().unwrap();
    assert_says(&succeed(dir.path(), &["schemas", "--out", "new"]), &["new: ", " schemas"]);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas");
    let names = |dir: &Path| -> Vec<_> {
        let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&docs), names(&dir.path().join("new")), "write them anew: lookback schemas --out docs/schemas");
    for name in names(&docs) {
        let [stored, new] = [docs.join(&name), dir.path().join("new").join(&name)].map(read);
        let differs = stored.lines().zip(new.lines()).find(|(stored, new)| stored != new);
        assert!(stored == new, "{name:?} differs, at {differs:?}; write it anew: lookback schemas --out docs/schemas");
    }
}

#[test]
fn the_reference_in_the_book_is_that_of_the_program() {
    let dir = TempDir::new().unwrap();
    succeed(dir.path(), &["reference", "--out", "new"]);
    for name in ["commands.md", "config.md"] {
        let new = read(dir.path().join("new").join(name));
        let stored = read(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(name));
        assert_eq!(stored, new, "{name} differs; write it anew: lookback reference --out docs/reference");
    }
    // Every key that a config may have is in it.
    let page = read(dir.path().join("new/config.md"));
    let schema: serde_json::Value = serde_json::from_str(&succeed(dir.path(), &["config", "schema"])).unwrap();
    fn keys(schema: &serde_json::Value, found: &mut Vec<String>) {
        match schema {
            serde_json::Value::Object(fields) => {
                if let Some(serde_json::Value::Object(properties)) = fields.get("properties") {
                    found.extend(properties.keys().filter(|key| *key != "kind").cloned());
                }
                fields.values().for_each(|field| keys(field, found));
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    keys(&schema, &mut found);
    assert!(found.len() > 150, "{} keys", found.len());
    for key in found {
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
    }
}

#[test]
fn what_stands_behind_the_options_fits_into_the_columns_of_help() {
    fn check(command: &clap::Command, path: &str) -> usize {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{path}: {line}");
        }
        let each = command.get_subcommands().map(|inner| check(inner, &format!("{path} {}", inner.get_name())));
        usize::from(!text.is_empty()) + each.sum::<usize>()
    }
    let n = check(&<lookback::cli::Cli as clap::CommandFactory>::command(), "lookback");
    assert!(n > 20, "only {n} commands say more");
}
