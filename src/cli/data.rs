//! `lookback data`.

use super::{print, progress};
use crate::data::{Split, TaskConfig, fetch};
use crate::error::{Error, Result};
use crate::experiment::{self, Config, PrepareOptions, Preparing, SHARD_TOKENS};
use crate::{files, memory};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(super) enum DataCommand {
    /// List the generated tasks and the public corpora.
    List,
    /// Generate a task's pairs into train.tsv, valid.tsv and test.tsv.
    #[command(after_help = "Example:
  lookback data generate numbers --out datasets/numbers --pairs 20000 --max-len 4 --seed 7")]
    Generate(GenerateArgs),
    /// Tokenize the training data of a config once, on all cores; training then reads them from disk. For data
    /// larger than memory. After an interruption the same command continues.
    #[command(after_help = "Example:
  lookback data prepare config/multi30k-de-en-transformer.toml --out prepared/multi30k
  lookback train config/multi30k-de-en-transformer.toml --set data.prepared=prepared/multi30k")]
    Prepare(PrepareArgs),
    /// Fetch a public corpus; continues an interrupted download, and verifies checksums.
    #[command(after_help = "Example:\n  lookback data fetch multi30k --out datasets/multi30k")]
    Fetch(FetchArgs),
}

#[derive(Args, Debug)]
pub(super) struct GenerateArgs {
    /// The task; `data list` names them.
    task: String,
    /// Folder to write into.
    #[arg(short, long)]
    out: PathBuf,
    /// Training pairs; a tenth as many, at most 1000, for each of validation and test.
    #[arg(long, default_value_t = 10_000)]
    pairs: usize,
    /// Shortest source, in the task's own unit.
    #[arg(long)]
    min_len: Option<usize>,
    /// Longest source, in the task's own unit.
    #[arg(long)]
    max_len: Option<usize>,
    /// Seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replace existing files.
    #[arg(long)]
    force: bool,
}

#[derive(Args, Debug)]
pub(super) struct FetchArgs {
    /// The corpus; `data list` names them.
    name: String,
    /// Folder to write into.
    #[arg(short, long)]
    out: PathBuf,
    /// Fetch from here instead of the corpus's own address, a mirror with the same paths below it: https://..., http://... or
    /// file:///folder
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Replace files of the same names that have other content.
    #[arg(long)]
    force: bool,
}

#[derive(Args, Debug)]
pub(super) struct PrepareArgs {
    /// The experiment whose training data are prepared.
    config: PathBuf,
    /// Folder to write into [default: data.prepared of the config].
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Override a key of the config: --set data.filter.max_len=100
    #[arg(short, long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
    /// Take the tokenizer of this run, for training with the same --init-from.
    #[arg(long, value_name = "RUN")]
    init_from: Option<PathBuf>,
    /// Tokens in a file: the most work that an interruption can lose.
    #[arg(long, value_name = "N", default_value_t = SHARD_TOKENS)]
    shard_tokens: usize,
}

pub(super) fn run(command: DataCommand) -> Result<()> {
    match command {
        DataCommand::Prepare(args) => prepare(args),
        DataCommand::List => list(),
        DataCommand::Generate(args) => generate(args),
        DataCommand::Fetch(args) => fetch(args),
    }
}

fn list() -> Result<()> {
    let mut text = String::from("generated tasks (lookback data generate NAME --out DIR):\n");
    let names =
        TaskConfig::TASKS.iter().map(|(name, _)| *name).chain(fetch::DATASETS.iter().map(|dataset| dataset.name));
    let width = names.map(str::len).max().unwrap_or_default();
    for (name, about) in TaskConfig::TASKS {
        text += &format!("  {name:<width$} {about}\n");
    }
    text += "\npublic corpora (lookback data fetch NAME --out DIR):\n";
    for dataset in &fetch::DATASETS {
        text += &format!("  {:<width$} {} [{}]\n", dataset.name, dataset.about, dataset.licence);
    }
    print(&text)
}

fn generate(args: GenerateArgs) -> Result<()> {
    let mut task = TaskConfig::from_name(&args.task)?;
    task.set_lengths(args.min_len, args.max_len)?;
    if args.pairs == 0 {
        return Err(Error::message("--pairs must be at least 1, got 0"));
    }
    memory::check_pairs("--pairs", args.pairs)?;
    std::fs::create_dir_all(&args.out).map_err(Error::io(&args.out))?;
    let n_held_out = (args.pairs / 10).clamp(1, 1000);
    let names = Split::ALL.map(|split| args.out.join(format!("{split}.tsv")));
    let readme = args.out.join("README.md");
    let places = || names.iter().chain([&readme]);
    if let Some(path) = places().find(|path| path.exists() && !args.force) {
        return Err(Error::file(path, "is there already; give another --out, or --force to replace it"));
    }
    places().try_for_each(|path| files::check_writable(path))?;
    let counts = Split::ALL.map(|split| if split == Split::Train { args.pairs } else { n_held_out });
    // A task may have fewer pairs than are asked for; until that is known, nothing of an older set is replaced.
    let splits = Split::ALL.into_iter().zip(counts);
    let splits = splits.map(|(split, n)| task.generate(split, n, args.seed)).collect::<Result<Vec<_>>>()?;
    let mut written = Written(places().filter(|path| !path.exists()).cloned().collect());
    for (pairs, path) in splits.iter().zip(&names) {
        let text: String = pairs.iter().map(|pair| format!("{}\t{}\n", pair.source, pair.target)).collect();
        files::replace(path, text.as_bytes())?;
    }
    let counts = Split::ALL.iter().zip(counts).map(|(split, n)| format!("| {split}.tsv | {n} |"));
    let counts: Vec<String> = counts.collect();
    let settings = toml::to_string(&task).expect("a task is plain data");
    let lengths = [("--min-len", args.min_len), ("--max-len", args.max_len)];
    let lengths: String = lengths.iter().filter_map(|(flag, n)| n.map(|n| format!(" {flag} {n}"))).collect();
    let text = format!(
        "# {}\n\nGenerated by lookback {}; source TAB target, one pair a line. No source of valid.tsv or test.tsv is in train.tsv.\n\n\
         | file | pairs |\n| --- | ---: |\n{}\n\nSeed {}, command:\n\n```\nlookback data generate {} --out {} --pairs {}{lengths} --seed {}\n```\n\n\
         Settings:\n\n```toml\n{settings}```\n",
        args.task,
        env!("CARGO_PKG_VERSION"),
        counts.join("\n"),
        args.seed,
        args.task,
        args.out.display(),
        args.pairs,
        args.seed
    );
    files::replace(&readme, text.as_bytes())?;
    written.0.clear();
    let pairs = args.pairs;
    print(&format!("{}: {pairs} training pairs, {n_held_out} each for validation and test\n", args.out.display()))
}

/// New files of a set that is useless while incomplete: those still listed at the end are removed. Files that were
/// there before are not among them.
struct Written(Vec<PathBuf>);

impl Drop for Written {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn fetch(args: FetchArgs) -> Result<()> {
    let mut current: Option<(usize, indicatif::ProgressBar)> = None;
    let mut show = |at: fetch::Progress| {
        if current.as_ref().is_none_or(|(number, _)| *number != at.file_number) {
            let what = format!("{} ({}/{})", at.file, at.file_number, at.n_files);
            current = Some((at.file_number, progress::bytes(at.total_bytes.unwrap_or(0), &what)));
        }
        if let Some((_, bar)) = &current {
            bar.set_position(at.bytes);
        }
    };
    let paths = fetch::fetch(&args.name, &args.out, args.base_url.as_deref(), args.force, &mut show)?;
    drop(current);
    let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
    print(&lines)
}

fn prepare(args: PrepareArgs) -> Result<()> {
    let config = Config::load(Some(&args.config), &args.set)?;
    let mut current: Option<(&'static str, indicatif::ProgressBar)> = None;
    let mut show = |at: Preparing| {
        if current.as_ref().is_none_or(|(what, _)| *what != at.what) {
            let bar = if at.is_bytes { progress::bytes } else { progress::bar };
            current = Some((at.what, bar(at.total, at.what)));
        }
        if let Some((_, bar)) = &current {
            bar.set_position(at.done);
        }
        Ok(())
    };
    let options = PrepareOptions { out: args.out, init_from: args.init_from, shard_tokens: args.shard_tokens };
    let made = experiment::prepare(&config, &options, &mut show)?;
    drop(current);
    let what = match (config.data.text.is_some(), made.dropped) {
        (true, _) => format!("{} lines", made.lines),
        (false, 0) => format!("{} pairs", made.counts.units),
        (false, n) => format!("{} pairs, {n} left out by the filter", made.counts.units),
    };
    let kept = if made.n_kept > 0 { format!(", {} of them from before", made.n_kept) } else { String::new() };
    let unknown = 100.0 * (made.counts.unknown_source + made.counts.unknown_target) as f64 / made.counts.ids as f64;
    let folder = made.folder.display();
    print(&format!(
        "{folder}: {what}, {} tokens ({unknown:.2} % unknown) in {} files of {} MiB together{kept}\n\
         train with --set data.prepared={folder}\n",
        made.counts.ids,
        made.n_shards,
        made.bytes.div_ceil(1 << 20)
    ))
}
