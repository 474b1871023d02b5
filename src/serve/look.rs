//! Answers to `/tokenize`, `/score` and `/explain`.

use super::attention::{check_ids, heads, ids};
use super::catalogue::Entry;
use super::fault::Fault;
use super::fields::{Fields, Texts};
use super::models::Models;
use crate::data::batch::Example;
use crate::data::tokenizer::EOS;
use crate::decoding::score_targets;
use crate::models::Model;
use crate::report::attention::ablation::{Head, without};
use crate::report::explanation::{
    Detail, Explanation, Given, Question, Selection, TextQuestion, explain, explain_text, html, notes,
};
use serde_json::{Value, json};

/// The pieces and ids of each text; blanks around a sentence do not count.
pub(super) fn tokenize(entry: &Entry, is_target: bool, texts: &Texts) -> Vec<Value> {
    let is_target = is_target || entry.is_text;
    let tokenizer = if is_target { entry.tokenizers.target() } else { entry.tokenizers.source() };
    let one = |text: &String| {
        let ids = tokenizer.encode(if entry.is_text { text } else { text.trim() });
        json!({ "tokens": ids.iter().map(|id| tokenizer.label(*id)).collect::<Vec<_>>(), "ids": ids })
    };
    texts.texts.iter().map(one).collect()
}

/// The token ids of sources and given targets.
///
/// # Errors
/// If there are not as many of both, more than `max_lines`, or one has more tokens than the model takes.
pub(super) fn examples(
    entry: &Entry,
    sources: &Texts,
    targets: &Texts,
    max_lines: usize,
) -> Result<Vec<Example>, Fault> {
    let (n_sources, n_targets) = (sources.texts.len(), targets.texts.len());
    if n_sources != n_targets || sources.is_list != targets.is_list {
        let message =
            format!("q has {n_sources} texts and translation {n_targets}; give one translation for each text");
        return Err(Fault::bad(message));
    }
    if n_sources > max_lines {
        let message = format!("q has {n_sources} texts, and a request may have {max_lines}; send several requests");
        return Err(Fault::bad(message));
    }
    let mut examples = Vec::with_capacity(n_sources);
    for (i, (source, target)) in sources.texts.iter().zip(&targets.texts).enumerate() {
        let source = entry.tokenizers.source().encode(source.trim());
        let target = entry.tokenizers.target().encode(target.trim());
        let places = (sources.place("q", i), targets.place("translation", i));
        entry.check_lengths((&places.0, source.len()), (&places.1, target.len()))?;
        entry.check_probabilities(&places.1, target.len())?;
        examples.push(Example { source, target });
    }
    Ok(examples)
}

/// The log-probabilities of given targets.
pub(super) fn score(entry: &Entry, models: &Models, examples: &[Example]) -> Vec<Value> {
    let tokenizer = entry.tokenizers.target();
    let scores = score_targets(&models.model, examples, entry.decoding.batch_tokens);
    let one = |(example, scores): (&Example, Vec<f64>)| {
        let sum: f64 = scores.iter().sum();
        let tokens: Vec<String> = example.target.iter().chain([&EOS]).map(|id| tokenizer.label(*id)).collect();
        json!({
            "log_probability": sum,
            "perplexity": (-sum / scores.len().max(1) as f64).exp(),
            "tokens": tokens,
            "token_log_probabilities": scores,
        })
    };
    examples.iter().zip(scores).map(one).collect()
}

/// What is to be explained.
pub(super) struct Asked {
    source: String,
    target: Option<String>,
    /// The tokens of the target, where those are given.
    ids: Vec<u32>,
    selection: Selection,
    /// Heads that are switched off.
    heads: Vec<Head>,
    /// Tokens that a language model writes at most.
    max_tokens: usize,
    /// Whether the answer is a page.
    pub(super) is_page: bool,
}

/// Tokens that a language model writes by default: as many steps as are still readable.
const MAX_TOKENS: usize = 20;

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// If a field has no such value, the source is empty, or a text has more tokens than the model takes.
    pub(super) fn read(fields: &Fields, entry: &Entry, most_tokens: usize) -> Result<Self, Fault> {
        let source = fields.text("q")?.ok_or_else(|| Fault::bad("q is missing; give the sentence to explain"))?;
        // Blanks around a sentence do not count; in a text they do.
        let own = |text: &str| if entry.is_text { text.to_string() } else { text.trim().to_string() };
        let asked = Self {
            source: own(source),
            target: fields.text("translation")?.map(own),
            ids: ids(fields, "ids")?,
            selection: Selection {
                step: fields.count("step")?,
                layer: fields.count("layer")?,
                head: fields.count("head")?,
            },
            heads: heads(fields, entry)?,
            max_tokens: fields.count("max_tokens")?.unwrap_or(MAX_TOKENS).clamp(1, most_tokens.max(1)),
            is_page: match fields.text("format")? {
                None | Some("json") => false,
                Some("html") => true,
                Some(other) => return Err(Fault::bad(format!("format is {other}; there are json and html"))),
            },
        };
        if asked.target.is_some() && !asked.ids.is_empty() {
            return Err(Fault::bad("translation and ids are both given; give one of the two"));
        }
        check_ids(entry, "ids", &asked.ids)?;
        if entry.is_text {
            asked.check_text(entry)?
        } else {
            asked.check_sentence(entry)?
        };
        Ok(asked)
    }

    fn check_sentence(&self, entry: &Entry) -> Result<(), Fault> {
        let source = entry.tokenizers.source().encode(&self.source);
        if source.is_empty() {
            return Err(Fault::bad("q is empty; give a sentence"));
        }
        let n_words = |ids: &[u32]| ids.iter().filter(|id| **id != EOS).count();
        let (field, n_target) = match self.given() {
            None => ("translation", 0),
            Some(Given::Text(text)) => ("translation", entry.tokenizers.target().encode(text).len()),
            Some(Given::Tokens(ids)) => ("ids", n_words(ids)),
        };
        entry.check_lengths(("q", source.len()), (field, n_target))?;
        // What is yet to be written is about as long as the source.
        entry.check_maps(source.len(), if self.given().is_some() { n_target } else { source.len() })
    }

    fn check_text(&self, entry: &Entry) -> Result<(), Fault> {
        let (beginning, given) = self.text_question(entry).ids(entry.tokenizers.target());
        if given.as_ref().is_some_and(Vec::is_empty) {
            return Err(Fault::bad("translation is empty; for a language model it is how the text goes on"));
        }
        let n_more = if given.is_some() { 0 } else { self.max_tokens };
        let n_read = beginning.len() + given.map_or(0, |given| given.len() - 1);
        if let Some(most) = entry.in_sight().filter(|most| n_read > *most) {
            return Err(Fault::bad(format!(
                "the text has {n_read} tokens, and this model has {most} in sight; give a shorter one"
            )));
        }
        entry.check_text_length("the text", n_read)?;
        entry.check_maps(0, n_read + n_more)
    }

    fn given(&self) -> Option<Given<'_>> {
        match (&self.target, &self.ids[..]) {
            (Some(text), _) => Some(Given::Text(text)),
            (None, []) => None,
            (None, ids) => Some(Given::Tokens(ids)),
        }
    }

    fn detail(&self) -> Detail {
        match self.selection.step {
            Some(step) if !self.is_page => Detail::Step(step),
            _ => Detail::Everything,
        }
    }

    fn text_question<'a>(&'a self, entry: &Entry) -> TextQuestion<'a> {
        TextQuestion {
            beginning: &self.source,
            continuation: self.given(),
            max_tokens: self.max_tokens,
            context: entry.in_sight(),
            sampling: None,
            seed: entry.seed,
            detail: self.detail(),
        }
    }

    /// What `lookback explain` writes with `--json` or `--html`.
    ///
    /// # Errors
    /// If there is no such step, layer or head.
    pub(super) fn explain(&self, entry: &Entry, models: &Models) -> Result<String, Fault> {
        let config = &entry.config;
        let model = without(models.model.clone(), &self.heads, entry.n_heads);
        let mut explanation = match entry.is_text {
            true => explain_text(&model, config, entry.tokenizers.target(), &self.text_question(entry), |_, _, _| ()),
            false => self.explain_sentence(&model, entry),
        };
        explanation.model = format!("{}; {}", explanation.model, entry.name);
        if !self.heads.is_empty() {
            let names: Vec<String> = self.heads.iter().map(Head::to_string).collect();
            explanation.notes.push(format!("switched off: {}", names.join(", ")));
        }
        self.selection.check(&explanation).map_err(|error| Fault::bad(error.to_string().replace("--", "")))?;
        if self.is_page {
            return Ok(html::page(&explanation, &self.selection));
        }
        Ok(serde_json::to_string(&explanation.select(&self.selection)).expect("an explanation is plain data"))
    }

    fn explain_sentence(&self, model: &Model, entry: &Entry) -> Explanation {
        let decoding = entry.searching();
        let question = Question {
            source_text: &self.source,
            target: self.given(),
            decoding: &decoding,
            seed: entry.seed,
            detail: self.detail(),
        };
        let mut explanation = explain(model, &entry.config, &entry.tokenizers, &question, |_, _, _| ());
        explanation.notes = notes(&entry.tokenizers, &question, !entry.config.has_masks(), &explanation);
        explanation
    }
}
