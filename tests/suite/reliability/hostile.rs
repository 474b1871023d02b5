//! Text that nobody expects, and numbers that no machine has room for.

use crate::cli::trained;
use crate::support::page::PageView;
use crate::training::{
    BAHDANAU, TRANSFORMER, assert_says, fail, finish, finish_in_memory, sealed, succeed, tiny_text_of, write_tiny,
};
use std::fs;
use tempfile::TempDir;

/// Lines to translate, none of which is what the model was trained on.
fn lines() -> Vec<String> {
    [
        "",
        " ",
        "\t\t",
        "a\u{0}b \u{1}\u{7f}",
        "\u{202e}b a\u{202c} \u{200f}",
        "a\u{301}\u{301}\u{301} e\u{308}",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{1f3f4}\u{e0067}",
        "<script>document.title='hit'</script> \"><img src=x onerror=alert(1)>",
        "&lt;b&gt; &#60;i&#62; ]]> --> </style></script>",
        "\u{feff}a \u{2028} b \u{85} c",
        "{{a}} ${b} %s %n \\\\ \\\" ' ;--",
        "zzz qqq \u{4e2d}\u{6587} \u{0e20}\u{0e32}",
    ]
    .map(String::from)
    .into()
}

fn input(dir: &std::path::Path) -> usize {
    let lines = lines();
    fs::write(dir.join("hostile"), lines.join("\n") + "\n").unwrap();
    lines.len()
}

#[test]
fn a_line_out_for_every_line_in_whatever_stands_in_it() {
    let n = input(trained());
    for options in [&[][..], &["--beam", "3"], &["--sample"], &["--beam", "2", "--json"], &["--int8"]] {
        let arguments = [&["translate", "--run", "run", "--input", "hostile"][..], options].concat();
        let finished = finish(trained(), &arguments);
        assert_eq!(
            (finished.code, finished.stdout.matches('\n').count()),
            (Some(0), n),
            "{options:?}: {}",
            finished.stderr
        );
        if options.contains(&"--json") {
            for (line, source) in finished.stdout.lines().zip(lines()) {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(line["source"], source.trim());
            }
        }
    }
}

/// What is drawn of such lines is text in the page, and no part of it.
#[test]
fn pages_and_pictures_show_markup_as_text() {
    input(trained());
    for (arguments, output) in [
        (&["inspect", "attention", "--run", "run", "--input", "hostile", "--out", "hostile.html"][..], "hostile.html"),
        (
            &["inspect", "attention", "--run", "run", "--input", "hostile", "--sentence", "8", "--out", "hostile.svg"],
            "hostile.svg",
        ),
        (
            &["inspect", "attention", "--run", "run", "--input", "hostile", "--sentence", "7", "--out", "hostile.png"],
            "hostile.png",
        ),
        (
            &["inspect", "attention", "--run", "run", "--input", "hostile", "--sentence", "4", "--out", "control.png"],
            "control.png",
        ),
        (&["inspect", "states", "--run", "run", "--input", "hostile", "--out", "states.html"], "states.html"),
        (
            &["explain", "--run", "run", "<script>document.title='hit'</script>", "--html", "explain.html"],
            "explain.html",
        ),
    ] {
        let finished = finish(trained(), arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
        let bytes = fs::read(trained().join(output)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("<script>document.title") && !text.contains("<img src=x"), "{output}");
    }
    for text in lines().iter().filter(|line| !line.trim().is_empty() && !line.contains('\0')) {
        let finished = finish(trained(), &["explain", "--run", "run", "--", text]);
        assert_eq!(finished.code, Some(0), "{text:?}: {}", finished.stderr);
        assert!(!finished.stdout.contains('\u{1b}'), "no escape of the text reaches a terminal");
    }
}

#[test]
fn training_takes_such_lines_too() {
    let dir = TempDir::new().unwrap();
    let pairs: String = lines().iter().map(|line| format!("{0}\t{0}\n", line.replace('\t', " "))).collect();
    fs::write(dir.path().join("pairs.tsv"), pairs).unwrap();
    let files = ["data.train.tsv", "data.valid.tsv", "data.test.tsv"].map(|key| format!("{key}=pairs.tsv"));
    for kind in ["word", "char", "bpe", "unigram"] {
        let text = tiny_text_of(TRANSFORMER, "").replace("kind = \"word\"", &format!("kind = \"{kind}\""));
        fs::write(dir.path().join("files.toml"), text).unwrap();
        let mut arguments = vec!["train", "files.toml", "--run", kind, "--set", "training.max_updates=2"];
        if ["bpe", "unigram"].contains(&kind) {
            arguments.extend(["--set", "tokenizer.vocab_size=200"]);
        }
        files.iter().for_each(|file| arguments.extend(["--set", file]));
        let finished = finish(dir.path(), &arguments);
        assert_eq!(finished.code, Some(0), "{kind}: {}", finished.stderr);
        let finished = finish(dir.path(), &["evaluate", "--run", kind]);
        assert_eq!(finished.code, Some(0), "{kind}: {}", finished.stderr);
    }
}

#[test]
fn a_million_blank_lines_are_a_million_blank_lines() {
    fs::write(trained().join("blank"), "\n".repeat(1_000_000)).unwrap();
    let finished = finish(trained(), &["translate", "--run", "run", "--input", "blank"]);
    assert_eq!((finished.code, finished.stdout.len()), (Some(0), 1_000_000), "{}", finished.stderr);
}

#[test]
fn a_line_or_a_word_of_a_hundred_thousand_letters_is_answered_at_once() {
    fs::write(trained().join("word"), "x".repeat(100_000) + "\n").unwrap();
    fs::write(trained().join("line"), "a ".repeat(100_000) + "\na\n").unwrap();
    let start = std::time::Instant::now();
    let finished = finish(trained(), &["translate", "--run", "run", "--input", "word"]);
    assert_eq!((finished.code, finished.stdout.lines().count()), (Some(0), 1));
    assert!(finished.stderr.len() < 300, "the warning shows the beginning of the word");
    assert_says(&finished.stderr, &["\"xxxx", "xxxx...\" in line 1"]);
    for command in [&["translate", "--input", "line"][..], &["inspect", "states", "--input", "line"]] {
        let message = fail(trained(), &[command, &["--run", "run"]].concat());
        assert_says(
            &message,
            &["line:1: has 100001 tokens", "more than decoding.max_source_len = 10000", "--max-source-len"],
        );
    }
    let message = fail(trained(), &["explain", "--run", "run", &"a ".repeat(50_000)]);
    assert_says(&message, &["the source has 50001 tokens", "decoding.max_source_len"]);
    // It is a limit that can be moved.
    let short = ["translate", "--run", "run", "--input", "short", "--max-source-len", "3"];
    fs::write(trained().join("short"), "a b\nb\na b c\n").unwrap();
    assert_says(&fail(trained(), &short), &["short:3: has 4 tokens", "more than decoding.max_source_len = 3"]);
    assert_eq!(succeed(trained(), &short[..5]).lines().count(), 3);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// More than a small model takes; a list of all columns of a wide one is larger.
const GIBIBYTES: u64 = 2;

#[test]
fn what_no_machine_has_room_for_is_refused_before_it_is_begun() {
    let dir = TempDir::new().unwrap();
    for (model, wide) in [(TRANSFORMER, "model.d_model=100000000"), (BAHDANAU, "model.d_hidden=100000000")] {
        write_tiny(dir.path(), model);
        let arguments = ["train", "tiny.toml", "--run", "wide", "--set", wide];
        assert_says(
            &finish_in_memory(dir.path(), GIBIBYTES, &arguments).failure(&arguments),
            &["model: has ", " parameters, whose training takes at least ", "GiB", "make it smaller"],
        );
    }
    for n in ["18446744073709551615", "9000000000000000000"] {
        let message = fail(dir.path(), &["data", "generate", "copy", "--out", "many", "--pairs", n]);
        assert_says(&message, &["--pairs: is ", n, "GiB of memory", "fewer"]);
    }
    assert!(!dir.path().join("many").exists());
    let message = fail(dir.path(), &["train", "tiny.toml", "--set", "data.n_train=9000000000000000000"]);
    assert_says(&message, &["data.n_train: is 9000000000000000000", "fewer"]);
}

/// A stranger's folder says what it likes; what counts is what its parameters are.
#[test]
fn a_config_that_does_not_fit_its_parameters_is_refused_without_memory_for_it() {
    let dir = TempDir::new().unwrap();
    for (name, model, narrow, wide) in [
        ("transformer", TRANSFORMER, "d_model = 16", "d_model = 100000000"),
        ("rnn", BAHDANAU, "d_hidden = 12", "d_hidden = 100000000"),
    ] {
        write_tiny(dir.path(), model);
        succeed(dir.path(), &["train", "tiny.toml", "--run", name, "--set", "training.max_updates=1"]);
        fs::write(dir.path().join("in"), "a b\n").unwrap();
        let path = dir.path().join(name).join("config.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(narrow), "{text}");
        fs::write(&path, sealed(&text.replace(narrow, wide))).unwrap();
        let start = std::time::Instant::now();
        let arguments = ["translate", "--run", name, "--input", "in"];
        let message = finish_in_memory(dir.path(), GIBIBYTES, &arguments).failure(&arguments);
        assert_says(&message, &["model.safetensors", "of shape", "where the model needs"]);
        assert!(start.elapsed().as_secs() < 30, "{name}: {:?}", start.elapsed());
    }
}

/// What models are called, what they read and what they write, on the page of a comparison.
#[test]
fn a_comparison_of_such_lines_shows_them_as_text() {
    let dir = TempDir::new().unwrap();
    let lines: Vec<String> = lines().into_iter().filter(|line| !line.trim().is_empty()).collect();
    let pairs: String = lines.iter().map(|line| format!("{0}\t{0}\n", line.replace('\t', " "))).collect();
    fs::write(dir.path().join("pairs.tsv"), pairs.repeat(4)).unwrap();
    let files = ["train", "valid", "test"].map(|split| format!("{split}.tsv = \"pairs.tsv\"")).join("\n");
    let names = ["<img src=x onerror=document.title='hit'>.toml", "\"><svg onload=document.title='hit'>.toml"];
    for (name, model) in names.iter().zip([BAHDANAU, TRANSFORMER]) {
        fs::write(dir.path().join(name), tiny_text_of(model, &files)).unwrap();
    }
    let sizes = ["--max-cost-length", "0", "--set", "training.max_updates=2"];
    succeed(dir.path(), &[&["compare", names[0], names[1], "--out", "out"][..], &sizes].concat());
    let page = fs::read_to_string(dir.path().join("out/report/index.html")).unwrap();
    assert_says(&page, &["document.title"]);
    for markup in ["<script>document.title", "<img src=x", "<svg onload"] {
        assert!(!page.contains(markup), "{markup} stands in the page");
    }
    let Some(mut view) = PageView::open(&page) else { return };
    assert!(view.faults.is_empty(), "{:?}", view.faults);
    assert!(view.requests.is_empty(), "{:?}", view.requests);
    assert_eq!(view.value("document.querySelectorAll('[onerror], [onload]').length"), 0);
    assert_ne!(view.text("document.title"), "hit");
}
