//! `lookback evaluate --hypotheses`: what has been written already.

use super::{EvaluateArgs, scorer};
use crate::data::{Sentence, read_lines};
use crate::error::{Error, Result};
use crate::scoring::{LengthUnit, Scores};

/// The scores of the lines of a file.
///
/// # Errors
/// If a file cannot be read, or lines lack their counterparts.
pub(super) fn evaluate(args: &EvaluateArgs) -> Result<Scores> {
    let Some(hypotheses) = args.hypotheses.as_ref().filter(|_| !args.references.is_empty()) else {
        return Err(Error::message("give --run, or --hypotheses and --references"));
    };
    if let Some(option) = args.decoding.first_given() {
        return Err(Error::message(format!("{option} has no effect on --hypotheses, which are written already")));
    }
    let hypotheses = read_lines(hypotheses)?;
    let sources = args.sources.as_ref().map(read_lines).transpose()?;
    let (n_pairs, what) = match &sources {
        Some(sources) if sources.len() != hypotheses.len() => (sources.len(), "source"),
        _ => (hypotheses.len(), "hypothesis"),
    };
    let mut references: Vec<Vec<String>> = vec![Vec::new(); n_pairs];
    for path in &args.references {
        let lines = read_lines(path)?;
        if lines.len() != n_pairs {
            let n = lines.len();
            let message =
                format!("there are {n_pairs} {what} lines but {n} reference lines; each line needs its counterpart");
            return Err(Error::file(path, message));
        }
        references.iter_mut().zip(lines).for_each(|(list, line)| list.push(line));
    }
    let scorer = scorer(args, args.lowercase, LengthUnit::Words);
    let Some(sources) = sources else { return scorer.score_any(&hypotheses, &references, None) };
    if n_pairs == hypotheses.len() {
        return scorer.score_any(&hypotheses, &references, Some(&sources));
    }
    // As a run with several references writes them: one hypothesis for all pairs that share a source.
    let pairs = sources.into_iter().zip(references).map(|(source, references)| Sentence { source, references });
    let sentences = Sentence::merge_by_source(pairs.collect());
    if sentences.len() != hypotheses.len() {
        return Err(Error::message(format!(
            "there are {} hypothesis lines but {n_pairs} source lines, {} of them different; give one hypothesis for each line, or \
             one for each different source",
            hypotheses.len(),
            sentences.len()
        )));
    }
    let (sources, references): (Vec<_>, Vec<_>) =
        sentences.into_iter().map(|sentence| (sentence.source, sentence.references)).unzip();
    scorer.score_any(&hypotheses, &references, Some(&sources))
}
