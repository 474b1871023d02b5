//! Pairs of series: from lines to numbers, and from a fault to the file and line that it stands in.

use crate::data::series::SeriesFault;
use crate::data::{DataConfig, Pair, Scaling, Series, SeriesPair, Split, Tokenizers, read_pairs};
use crate::error::{Error, Result};
use crate::models::LengthLimit;

/// The scales of source and target.
///
/// # Panics
/// If these are tokenizers of words: a config that is valid gives models of numbers none.
pub fn scalings(tokenizers: &Tokenizers) -> (&Scaling, &Scaling) {
    const HAS_SCALE: &str = "a model of numbers has a scale for both sides";
    (tokenizers.source().scaling().expect(HAS_SCALE), tokenizers.target().scaling().expect(HAS_SCALE))
}

/// The series of `pairs`, which are those of `split`; blank pairs are left out. Channels have to be those of `tokenizers`, or of
/// the first pair.
///
/// # Errors
/// Names the file, the line and the step.
pub fn series_of(
    config: &DataConfig,
    split: Split,
    pairs: &[Pair],
    tokenizers: Option<&Tokenizers>,
) -> Result<Vec<SeriesPair>> {
    let scalings = tokenizers.map(scalings);
    let mut n_channels = scalings.map_or([None; 2], |(source, target)| [source, target].map(|s| Some(s.n_channels())));
    let mut found = Vec::new();
    for (i, pair) in pairs.iter().enumerate() {
        if is_without_series(pair) {
            continue;
        }
        let series = SeriesPair::parse(pair, n_channels)
            .and_then(|series| match scalings {
                Some((source, target)) => series.check(source, target).map(|()| series),
                None => Ok(series),
            })
            .map_err(|fault| located(config, split, i, pair, fault))?;
        n_channels = [Some(series.source.n_channels()), Some(series.target.n_channels())];
        found.push(series);
    }
    Ok(found)
}

/// Whether a pair is a blank line, which has no series.
pub fn is_without_series(pair: &Pair) -> bool {
    pair.source.is_empty() && pair.target.is_empty()
}

/// A fault of pair `i` of a split, as an error that says where it stands.
fn located(config: &DataConfig, split: Split, i: usize, pair: &Pair, fault: SeriesFault) -> Error {
    let named = match split {
        Split::Train => &config.train,
        Split::Valid => &config.valid,
        Split::Test => &config.test,
    };
    // What no file is named for was held out of the training files.
    let files = named.as_ref().or(config.train.as_ref()).map(|files| config.resolve(files));
    let place = files.and_then(|files| {
        let line = read_pairs(&files).ok()?.iter().position(|other| other == pair)? + 1;
        let (first, second) = if files.swap { (files.target, files.source) } else { (files.source, files.target) };
        Some((files.tsv.or(if fault.is_target { second } else { first })?, line))
    });
    match place {
        Some((path, line)) => Error::line(path, line, fault.message),
        None => Error::config(format!("data.{split}"), format!("pair {}: {}", i + 1, fault.message)),
    }
}

/// The series of a line that a model shall answer.
///
/// # Errors
/// Says what is wrong with it: its numbers, its channels, or that it is longer than `limit`.
pub fn source_of(line: &str, source: &Scaling, limit: Option<LengthLimit>) -> Result<Series, String> {
    let series = Series::parse(line, Some(source.n_channels()))?;
    source.check(&series)?;
    length_fault(series.n_steps(), limit).map_or(Ok(series), Err)
}

/// Says what is wrong with a series of so many steps, if it is longer than a model can take.
pub fn length_fault(n_steps: usize, limit: Option<LengthLimit>) -> Option<String> {
    let limit = limit.filter(|limit| n_steps > limit.len)?;
    Some(format!(
        "has {n_steps} steps, more than {} = {}; split it, or train a model that takes more",
        limit.key, limit.len
    ))
}
