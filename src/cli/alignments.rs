//! Which source word each word of a translation comes from, as `translate --alignments` writes it.

use crate::data::Tokenizers;
use crate::data::tokenizer::EOS;
use crate::decoding::Hypothesis;
use crate::error::{Error, Result};
use crate::models::Seq2Seq;
use crate::report::alignment::{Link, links, words_of_ids, words_of_tokens};
use crate::report::attention::collect::{Written, collect_attention};
use crate::report::attention::select::average;
use crate::report::attention::{AttentionMap, Part};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file in Pharaoh format: a line for each translation, `SOURCE-TARGET` for each of its words, words counted from 0.
pub(super) struct Alignments {
    path: PathBuf,
    output: Box<dyn Write>,
}

impl Alignments {
    pub(super) fn new(path: &Path, output: Box<dyn Write>) -> Self {
        Self { path: path.to_path_buf(), output }
    }

    /// Writes the lines of a sentence's translations, by what all `models` together looked at.
    ///
    /// # Errors
    /// If one of them does not look from target to source, or the file cannot be written.
    pub(super) fn write<M: Seq2Seq>(
        &mut self,
        models: &[M],
        tokenizers: &Tokenizers,
        line: &str,
        source: &[u32],
        hypotheses: &[Hypothesis],
    ) -> Result<()> {
        for hypothesis in hypotheses {
            let pairs = pairs(models, tokenizers, line, source, &hypothesis.tokens)?;
            let text: Vec<String> = pairs.iter().map(|(source, target)| format!("{source}-{target}")).collect();
            writeln!(self.output, "{}", text.join(" ")).map_err(Error::io(&self.path))?;
        }
        self.output.flush().map_err(Error::io(&self.path))
    }
}

/// For each target word the source word with the most weight in the mean of all cross-attention, each model counting as much as another,
/// in the order of the target.
fn pairs<M: Seq2Seq>(
    models: &[M],
    tokenizers: &Tokenizers,
    line: &str,
    source: &[u32],
    target: &[u32],
) -> Result<Vec<Link>> {
    if source.is_empty() {
        return Ok(Vec::new());
    }
    let target_words = words_of_ids(target, tokenizers.target());
    let target = target.iter().copied().chain([EOS]).collect();
    let written = Written { source_text: line.to_owned(), source: source.to_vec(), target, ..Written::default() };
    let mean_of = |model: &M| collect_attention(model, tokenizers, &written).average(Part::Cross);
    let means: Option<Vec<AttentionMap>> = models.iter().map(mean_of).collect();
    let mean = means.and_then(|means| average(&means.iter().collect::<Vec<_>>())).ok_or_else(|| {
        let message = "--alignments: this model does not look from its target at its source word by word, so that it aligns nothing; \
                       leave it out, or take a model with cross-attention";
        Error::message(message)
    })?;
    let source_words = words_of_tokens(line, tokenizers.source());
    let mut pairs: Vec<Link> = links(&mean, &source_words, &target_words).into_iter().collect();
    pairs.sort_unstable_by_key(|(source, target)| (*target, *source));
    Ok(pairs)
}
