//! The continuation of a text by a language model, as an [`Explanation`].

use super::build::{N_NEIGHBOURS, Walk, Words, influences, labels, table, trace_of_reading, walk};
use super::encoder::{encoder, sequence};
use super::vectors::word_vectors;
use super::{Detail, Explanation, Given, Mechanism, Stage};
use crate::data::batch::Padded;
use crate::data::text::{continuation_ids, prompt_ids, text_of};
use crate::data::tokenizer::Tokenizer;
use crate::decoding::{Continuation, SamplingConfig};
use crate::layers::Pass;
use crate::models::{ModelConfig, Seq2Seq, weights};
use crate::report::attribution::contrasts_times_text;
use burn::module::Module;

/// What is to be explained of a language model.
#[derive(Clone, Debug)]
pub struct TextQuestion<'a> {
    /// The beginning of the text.
    pub beginning: &'a str,
    /// The continuation, if it is given; otherwise the model writes it.
    pub continuation: Option<Given<'a>>,
    /// Tokens that the model writes at most; it stops at the end of a line.
    pub max_tokens: usize,
    /// Tokens that it has in sight; nothing where there is no end to them.
    pub context: Option<usize>,
    /// How the model chooses; without it the likeliest token each time.
    pub sampling: Option<&'a SamplingConfig>,
    /// The seed of sampling.
    pub seed: u64,
    /// How much is computed.
    pub detail: Detail,
}

impl TextQuestion<'_> {
    /// The tokens of the beginning and those of the continuation that is given.
    pub fn ids(&self, tokenizer: &Tokenizer) -> (Vec<u32>, Option<Vec<u32>>) {
        let continuation = self.continuation.map(|given| match given {
            Given::Text(text) => continuation_ids(self.beginning, text, tokenizer),
            Given::Tokens(tokens) => tokens.to_vec(),
        });
        (prompt_ids(self.beginning, tokenizer), continuation)
    }
}

/// Continues a text (or takes the given continuation) and traces it step by step. The given text is in
/// the explanation as the source, what follows as the target, which has an end symbol only where a line ends; each layer has one
/// attention over both. `progress` is told as in [`explain`](super::explain).
///
/// Callers have checked that the beginning and a given continuation, all but its last token, are no longer than the context and
/// that a given continuation has tokens.
pub fn explain_text<M: Module + Seq2Seq>(
    model: &M,
    config: &ModelConfig,
    tokenizer: &Tokenizer,
    question: &TextQuestion,
    mut progress: impl FnMut(Stage, usize, usize),
) -> Explanation {
    let (beginning, given) = question.ids(tokenizer);
    progress(Stage::Writing, 0, 0);
    let target = given.unwrap_or_else(|| {
        let TextQuestion { context, max_tokens, sampling, seed, .. } = *question;
        let words = Continuation::new(model, &beginning, context, sampling, seed);
        words.line(tokenizer, max_tokens)
    });
    let (last, before) = beginning.split_last().expect("a beginning has a token");
    let words = Words {
        source: labels(tokenizer, &beginning).into(),
        first: *last,
        written: labels(tokenizer, &[&[*last], &target[..]].concat()),
        is_text: true,
    };
    let (mechanism, tables, detail) = (Mechanism::new(config), weights::collect(model), question.detail);
    let padded = |ids: &[u32]| Padded::new(&[ids.to_vec()], 0, &model.device());
    // All of the beginning is looked at; the steps go on from all but its last token, which the first step reads.
    let mut trace = trace_of_reading(detail);
    model.encode(&padded(&beginning), &mut Pass::traced(&mut trace));
    let memory = model.encode(&padded(before), &mut Pass::inference());
    let mut source_words = word_vectors(table(&tables, "target"), tokenizer, &beginning, N_NEIGHBOURS);
    for (word, embedded) in source_words.iter_mut().zip(sequence(&trace, "encoder.embedded")) {
        word.embedded = embedded;
    }
    let encoder = encoder(&trace, &mechanism, &words.source);
    let Walk { mut steps, memories } = walk(model, &memory, &target, &words, tokenizer, detail, |done, total| {
        progress(Stage::Steps, done, total);
    });
    influences(&mut steps, detail, target.len(), &mechanism, |asked| {
        contrasts_times_text(model, &beginning, &target, asked, |done, total| progress(Stage::Gradients, done, total))
    });
    let mut target_words = Vec::new();
    if detail != Detail::Overview {
        target_words = word_vectors(table(&tables, "target"), tokenizer, &target, N_NEIGHBOURS);
        // A step reads the word that the step before it has written.
        for step in steps.iter().filter(|step| step.step > 1) {
            target_words[step.step - 2].embedded.clone_from(&step.input);
        }
    }
    Explanation {
        model: mechanism.title.clone(),
        mechanism,
        source_text: question.beginning.to_owned(),
        target_text: text_of(&target, tokenizer),
        forced: question.continuation.is_some(),
        source: words.source.to_vec(),
        target: words.written[1..].to_vec(),
        source_words,
        target_words,
        encoder,
        memories,
        steps,
        ..Explanation::default()
    }
}
