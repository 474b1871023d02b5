//! What all contestants are tested on: the test set proper, and sentences made for single lengths.

use super::options::Options;
use super::plan::Entrant;
use crate::data::{DataConfig, Pair, Sentence, Split, TaskConfig, TokenizerConfig};
use crate::error::{Error, Result};
use crate::experiment::{Config, dataset, differences};
use crate::report::comparison::{Group, GroupKind};
use crate::scoring::LengthUnit;
use std::collections::HashSet;

/// Buckets that the lengths of a generated task, or of words in letters, are cut into.
const N_BUCKETS: usize = 5;
/// The width of a bucket of text, in words.
const TEXT_BUCKET: usize = 10;
/// Times the longest source of training at which generated tasks are tested, unless lengths are asked for.
const FACTORS: [f64; 4] = [1.0, 1.5, 2.0, 4.0];

/// Sentences of each single length, unless another number is asked for.
pub const PER_LENGTH: usize = 100;

/// The test sentences and their groups.
pub struct TestSet {
    /// First the test set proper, then the sentences of single lengths; each with its first reference.
    pub pairs: Vec<Pair>,
    /// All references of each of them.
    pub references: Vec<Vec<String>>,
    /// Sentences of the test set proper.
    pub n_proper: usize,
    /// The groups and the places of their sentences in `pairs`.
    pub groups: Vec<(Group, Vec<usize>)>,
    /// What lengths of sources are counted in.
    pub unit: LengthUnit,
    /// The longest source of training, of all contestants.
    pub trained_length: usize,
    /// Training pairs; those of the contestant that has most.
    pub train_pairs: usize,
    /// Of all of `pairs`.
    pub sha256: String,
    /// Lengths that the task cannot make.
    pub notes: Vec<String>,
}

/// Words of a source.
pub fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The test data of `entrants`.
///
/// Generated test data depend on a seed. All contestants are tested with that of the first, whatever seeds they were trained
/// with: which sources belong to the test data depends on their text alone, so none of them has been trained on.
///
/// # Errors
/// If the contestants were trained for different test data, or there are none.
pub fn test_set(entrants: &[Entrant], options: &Options) -> Result<TestSet> {
    let first = &entrants[0];
    let seed = first.config.seed;
    let mut sentences = dataset::sentences_of(&first.config.data, Split::Test, seed)?;
    for other in &entrants[1..] {
        if dataset::sentences_of(&other.config.data, Split::Test, seed)? != sentences {
            return Err(different(first, other, &sentences));
        }
    }
    sentences = sentences.into_iter().filter_map(Sentence::without_blanks).collect();
    let n_proper = sentences.len();
    let unit = unit(entrants);
    let Trained { longest: trained_length, least: least_trained, pairs: train_pairs } = trained(entrants, unit)?;
    let lengths: Vec<usize> = sentences.iter().map(|sentence| unit.count(&sentence.source)).collect();
    let mut groups = vec![group("all".into(), GroupKind::All, (0..n_proper).collect(), &lengths, trained_length)];
    for (from, to) in bounds(first.config.data.task.is_some() || unit == LengthUnit::Letters, &lengths, trained_length)
    {
        let indices: Vec<usize> = (0..n_proper).filter(|i| (from..=to).contains(&lengths[*i])).collect();
        if !indices.is_empty() {
            groups.push(group(format!("{from}-{to}"), GroupKind::Bucket, indices, &lengths, trained_length));
        }
    }
    let mut notes = Vec::new();
    if least_trained < trained_length {
        notes.push(format!(
            "The longest source that a model has learnt from has {least_trained} to {trained_length} {}: a length counts as seen where one \
             of the models has seen it.",
            unit.name()
        ));
    }
    for (length, made) in single_lengths(&first.config, options, seed, &mut notes)? {
        let start = sentences.len();
        sentences.extend(made.into_iter().map(Sentence::from));
        let lengths: Vec<usize> = sentences.iter().map(|sentence| unit.count(&sentence.source)).collect();
        let indices = (start..sentences.len()).collect();
        groups.push(group(format!("length-{length}"), GroupKind::Length, indices, &lengths, trained_length));
    }
    let pairs_of = |sentence: &Sentence| {
        sentence.references.iter().map(|reference| Pair::new(&sentence.source, reference)).collect::<Vec<_>>()
    };
    if let Some(task) = &first.config.data.task {
        for (group, indices) in &mut groups {
            let of_sentence = |i: &usize| task.chance(&sentences[*i].references[0]);
            let sum: Option<f64> = indices.iter().map(of_sentence).sum();
            group.chance = sum.map(|sum| sum / indices.len().max(1) as f64);
        }
    }
    let sha256 = dataset::hash_of(&sentences.iter().flat_map(pairs_of).collect::<Vec<_>>());
    let pairs = sentences.iter().map(|sentence| pairs_of(sentence).swap_remove(0)).collect();
    let references = sentences.into_iter().map(|sentence| sentence.references).collect();
    Ok(TestSet { pairs, references, n_proper, groups, unit, trained_length, train_pairs, sha256, notes })
}

/// What contestants learn from.
struct Trained {
    /// The longest source of all.
    longest: usize,
    /// That of the contestant whose longest is the shortest.
    least: usize,
    /// The pairs of the contestant that has most.
    pairs: usize,
}

/// Looks at the training data of every contestant: what none has seen is longer than the longest source of all of them.
fn trained(entrants: &[Entrant], unit: LengthUnit) -> Result<Trained> {
    let mut found = Trained { longest: 0, least: usize::MAX, pairs: 0 };
    /// Data and their seed, the longest source in them, and the number of pairs.
    type Looked<'a> = (&'a DataConfig, Option<u64>, [usize; 2]);
    let mut looked: Vec<Looked> = Vec::new();
    for entrant in entrants {
        let data = &entrant.config.data;
        let mut longest = 0;
        for run in &entrant.runs {
            // Files are the same whatever the seed.
            let seed = data.task.is_some().then_some(run.seed);
            let known =
                looked.iter().find(|(own, other, _)| (*own, *other) == (data, seed)).map(|(_, _, known)| *known);
            let [own, pairs] = match known {
                Some(known) => known,
                None => {
                    let train = dataset::load(data, run.seed)?.train;
                    let own = train.iter().map(|pair| unit.count(&pair.source)).max().unwrap_or(0);
                    looked.push((data, seed, [own, train.len()]));
                    [own, train.len()]
                }
            };
            longest = longest.max(own);
            found.pairs = found.pairs.max(pairs);
        }
        found.longest = found.longest.max(longest);
        found.least = found.least.min(longest);
    }
    Ok(found)
}

/// Letters where every model reads text letter by letter. Generated tasks know the lengths that they make in words.
fn unit(entrants: &[Entrant]) -> LengthUnit {
    let reads_letters = |entrant: &Entrant| {
        let config = &entrant.config;
        config.data.task.is_none() && matches!(config.tokenizer.source(), TokenizerConfig::Char(_))
    };
    if entrants.iter().all(reads_letters) { LengthUnit::Letters } else { LengthUnit::Words }
}

/// Names the keys that change the test data of `first` when they alone are taken from `other`; all keys of the data if it
/// takes several at once.
fn different(first: &Entrant, other: &Entrant, sentences: &[Sentence]) -> Error {
    let keys = differences(&first.config, &other.config);
    let of_data: Vec<_> = keys.iter().filter(|(key, _, _)| key.starts_with("data.")).collect();
    let matters = |key: &str| match first.config.with_key_of(&other.config, key) {
        Ok(config) => {
            let found = dataset::sentences_of(&config.data, Split::Test, first.config.seed);
            found.map_or(true, |found| found != sentences)
        }
        Err(_) => true,
    };
    let decisive: Vec<_> = of_data.iter().copied().filter(|(key, _, _)| matters(key)).collect();
    let named = if decisive.is_empty() { of_data } else { decisive };
    let texts: Vec<String> =
        named.iter().map(|(key, left, right)| format!("{key} is {left} in the one and {right} in the other")).collect();
    let why = if texts.is_empty() { String::new() } else { format!(": {}", texts.join(", ")) };
    Error::message(format!(
        "{} and {} have different test data{why}; only models tested on the same sentences can be compared",
        first.name, other.name
    ))
}

fn group(id: String, kind: GroupKind, indices: Vec<usize>, lengths: &[usize], trained: usize) -> (Group, Vec<usize>) {
    let of_group = || indices.iter().map(|i| lengths[*i]);
    let (from, to) = (of_group().min().unwrap_or(0), of_group().max().unwrap_or(0));
    let mean_length = of_group().sum::<usize>() as f64 / indices.len().max(1) as f64;
    let is_seen = to <= trained;
    let group = Group { id, kind, from, to, mean_length, sentences: indices.len(), is_seen, chance: None };
    (group, indices)
}

/// The buckets of the test set proper: a few equal ones where sources `are_short`, else tens. One ends where the training
/// data end.
fn bounds(are_short: bool, lengths: &[usize], trained: usize) -> Vec<(usize, usize)> {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let shortest = lengths.iter().copied().min().unwrap_or(0).max(1);
    let mut ends: Vec<usize> = match are_short {
        true => (1..=N_BUCKETS).map(|i| shortest - 1 + (longest + 1 - shortest) * i / N_BUCKETS).collect(),
        false => (1..=longest.div_ceil(TEXT_BUCKET)).map(|i| i * TEXT_BUCKET).collect(),
    };
    if trained < longest {
        ends.push(trained);
    }
    ends.retain(|end| *end > 0);
    ends.sort_unstable();
    ends.dedup();
    let starts = std::iter::once(1).chain(ends.iter().map(|end| end + 1));
    starts.zip(ends.iter().copied()).collect()
}

/// Sentences of single lengths, where the task can make them.
fn single_lengths(
    config: &Config,
    options: &Options,
    seed: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<(usize, Vec<Pair>)>> {
    let Some((task, longest)) = config.data.task.as_ref().and_then(|task| Some((task, longest_of(task)?))) else {
        let given = [("--lengths", options.lengths.is_some()), ("--per-length", options.per_length.is_some())];
        let given = given.into_iter().find(|(_, is_given)| *is_given);
        return given.map_or(Ok(Vec::new()), |(option, _)| {
            Err(Error::message(format!(
                "{option} is for generated tasks with lengths; these data have the lengths that they have, leave the option out"
            )))
        });
    };
    let wanted = match &options.lengths {
        Some(lengths) => lengths.clone(),
        None => FACTORS.iter().map(|factor| (factor * longest as f64).round() as usize).collect(),
    };
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for length in wanted.into_iter().filter(|length| seen.insert(*length)) {
        let mut task = task.clone();
        task.set_lengths(Some(length), Some(length))?;
        match task.generate(Split::Test, options.per_length.unwrap_or(PER_LENGTH), seed) {
            Ok(made) => found.push((length, made)),
            Err(error) if options.lengths.is_some() => return Err(error),
            Err(error) => notes.push(format!("There are no sentences of length {length}: {error}")),
        }
    }
    Ok(found)
}

/// The longest source of a task, in its own unit; none for a task without lengths.
fn longest_of(task: &TaskConfig) -> Option<usize> {
    match task {
        TaskConfig::Copy(c) | TaskConfig::Reverse(c) | TaskConfig::Sort(c) | TaskConfig::Rises(c) => Some(c.max_len),
        TaskConfig::Recall(c) => Some(c.max_len),
        TaskConfig::SelectiveCopy(c) => Some(c.max_len),
        TaskConfig::Parity(c) => Some(c.max_len),
        TaskConfig::Arithmetic(c) => Some(c.max_len),
        TaskConfig::Depth(c) => Some(c.max_len),
        TaskConfig::NextValue(c) => Some(c.max_len),
        TaskConfig::Numbers(c) => Some(c.max_len),
        TaskConfig::Dates(_) => None,
    }
}
