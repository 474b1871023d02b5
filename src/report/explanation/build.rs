//! From a model and a sentence to an [`Explanation`].

use super::encoder::{encoder, sequence};
use super::recurrences::recurrences;
use super::rows::{attentions, is_self};
use super::vectors::word_vectors;
use super::{AttentionMemory, Choice, Detail, Explanation, Mechanism, Stage, Step, Tokens};
use crate::data::Tokenizers;
use crate::data::batch::Padded;
use crate::data::tokenizer::{BOS, EOS, PAD, Tokenizer};
use crate::decoding::{DecodingConfig, Request, decode, fixed_answer};
use crate::layers::{Pass, Trace};
use crate::models::weights::{self, Weight, Weights};
use crate::models::{Answers, ModelConfig, Seq2Seq};
use crate::report::attribution::{Contrast, contrasts_times_input};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

/// Neighbours of a word, and words of a distribution, that are worth showing.
pub(super) const N_NEIGHBOURS: usize = 4;
const N_TOP: usize = 5;

/// What a model is given to explain, instead of writing it itself.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// A text, which is cut into tokens.
    Text(&'a str),
    /// The tokens that a model has written, the end symbol included: their text might be cut in another way.
    Tokens(&'a [u32]),
}

/// What is to be explained.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The source as it was given.
    pub source_text: &'a str,
    /// The target, if it is given; else the model chooses it.
    pub target: Option<Given<'a>>,
    /// How the model chooses.
    pub decoding: &'a DecodingConfig,
    /// The seed of sampling.
    pub seed: u64,
    /// How much is computed.
    pub detail: Detail,
}

/// Decodes the source (or takes the given target), and goes through it once more, step by step, with a traced pass.
/// `progress` is told the stage, what is done of it, and of how much; a total of zero is unknown.
///
/// Callers have checked that the source has tokens and that neither side is longer than the model can take.
pub fn explain<M: Module + Seq2Seq>(
    model: &M,
    config: &ModelConfig,
    tokenizers: &Tokenizers,
    question: &Question,
    mut progress: impl FnMut(Stage, usize, usize),
) -> Explanation {
    let source = tokenizers.source().encode(question.source_text);
    progress(Stage::Translation, 0, 0);
    let target = target_of(model, tokenizers, question, &source);
    let with_end: Vec<u32> = source.iter().copied().chain([EOS]).collect();
    let words = Words {
        source: labels(tokenizers.source(), &with_end).into(),
        first: BOS,
        written: labels(tokenizers.target(), &[&[BOS], &target[..]].concat()),
        is_text: false,
    };
    let mechanism = Mechanism::new(config);
    let tables = weights::collect(model);
    let detail = question.detail;

    let mut trace = trace_of_reading(detail);
    let memory = model.encode(&Padded::sources([&source], &model.device()), &mut Pass::traced(&mut trace));
    let mut source_words = word_vectors(table(&tables, "source"), tokenizers.source(), &with_end, N_NEIGHBOURS);
    for (word, embedded) in source_words.iter_mut().zip(sequence(&trace, "encoder.embedded")) {
        word.embedded = embedded;
    }
    let encoder = encoder(&trace, &mechanism, &words.source);
    let mut memories: Vec<_> = attentions(&trace).iter().flat_map(|attention| attention.memories()).collect();

    let Walk { mut steps, memories: seen } =
        walk(model, &memory, &target, &words, tokenizers.target(), detail, |done, total| {
            progress(Stage::Steps, done, total);
        });
    memories.extend(seen);
    fill_memories(&mut memories, &trace);
    influences(&mut steps, detail, target.len(), &mechanism, |asked| {
        contrasts_times_input(model, &source, &target, asked, |done, total| progress(Stage::Gradients, done, total))
    });
    let target_words = match detail {
        Detail::Overview => Vec::new(),
        // No answer is read again.
        _ if mechanism.answers.is_some() => Vec::new(),
        Detail::Everything | Detail::Step(_) => {
            let mut words = word_vectors(table(&tables, "target"), tokenizers.target(), &target, N_NEIGHBOURS);
            // A step reads the word that the step before it has written.
            for step in steps.iter().filter(|step| step.step > 1) {
                words[step.step - 2].embedded = step.input.clone();
            }
            words
        }
    };
    if let (Some(answers), Some(last)) = (mechanism.answers, words.source.len().checked_sub(1)) {
        for step in &mut steps {
            let asked = if answers != Answers::Class { last.min(step.step - 1) } else { last };
            step.previous.clone_from(&words.source[asked]);
        }
    }
    Explanation {
        model: mechanism.title.clone(),
        mechanism,
        source_text: question.source_text.to_owned(),
        target_text: tokenizers.target().decode(&target),
        forced: question.target.is_some(),
        notes: Vec::new(),
        source: words.source.to_vec(),
        target: words.written[1..].to_vec(),
        source_words,
        target_words,
        encoder,
        memories,
        steps,
    }
}

/// A trace that keeps what is shown of reading the source.
pub(super) fn trace_of_reading(detail: Detail) -> Trace {
    match detail {
        // No page of all steps shows what the source's tokens make of each other.
        Detail::Overview => Trace::of(|name| !is_of_self_attention(name)),
        Detail::Everything | Detail::Step(_) => Trace::default(),
    }
}

/// What the decoder did, step by step.
#[derive(Default)]
pub(super) struct Walk {
    pub steps: Vec<Step>,
    /// Keys and values after the last step that is shown in full.
    pub memories: Vec<AttentionMemory>,
}

/// Runs the decoder along `target`, up to the last step that is shown.
pub(super) fn walk<M: Seq2Seq>(
    model: &M,
    memory: &M::Memory,
    target: &[u32],
    words: &Words,
    tokenizer: &Tokenizer,
    detail: Detail,
    mut progress: impl FnMut(usize, usize),
) -> Walk {
    let n_steps = target.len();
    let n_run = if let Detail::Step(step) = detail { step.min(n_steps) } else { n_steps };
    let last_full = (1..=n_run).rev().find(|step| detail.is_full(*step, n_steps));
    let mut state = model.start(memory, 1);
    let mut found = Walk::default();
    for t in 0..n_run {
        progress(t, n_run);
        let (is_kept, is_full) = (detail.has(t + 1), detail.is_full(t + 1, n_steps));
        let is_last = last_full == Some(t + 1);
        let mut seen = match (is_full, is_last) {
            (_, true) => Trace::default(),
            (true, false) => Trace::of(|name| !name.ends_with(".keys") && !name.ends_with(".values")),
            (false, false) => Trace::of(|name| name.ends_with(".weights")),
        };
        let mut pass = if is_kept { Pass::traced(&mut seen) } else { Pass::inference() };
        let previous = if t == 0 { words.first } else { target[t - 1] };
        let input = Tensor::from_data(TensorData::new(vec![previous as i32], [1]), &model.device());
        let (logits, next) = model.step(input, state, memory, &mut pass);
        state = next;
        if !is_kept {
            continue;
        }
        let mut step = words.step(&seen, t);
        weigh(&mut step, weights::to_vec(logits), target[t], tokenizer);
        if !is_full {
            step.logits.clear();
        }
        if is_last {
            // The source's memory is in the encoder's trace for some models, in each step's for others.
            found.memories.extend(attentions(&seen).iter().flat_map(|attention| attention.memories()));
        }
        found.steps.push(step);
    }
    found
}

/// Whether a trace's entry is of an attention of a sequence to itself.
fn is_of_self_attention(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(name, _)| is_self(name))
}

/// Gradients of the steps that show them; `of` takes them.
pub(super) fn influences(
    steps: &mut [Step],
    detail: Detail,
    n_steps: usize,
    mechanism: &Mechanism,
    of: impl FnOnce(&[Contrast]) -> Vec<Vec<f32>>,
) {
    // Without attention, the table of all steps shows them too.
    let is_shown = |step: &Step| detail.is_full(step.step, n_steps) || !mechanism.has_attention;
    let mut shown: Vec<&mut Step> = steps.iter_mut().filter(|step| is_shown(step)).collect();
    let asked: Vec<Contrast> =
        shown.iter().map(|step| Contrast { place: step.step - 1, other: step.contrast.id }).collect();
    for (step, influence) in shown.iter_mut().zip(of(&asked)) {
        step.influence = influence;
    }
}

/// An explanation of one query of a traced attention: an example that fits on paper.
pub fn explain_trace(trace: &Trace, source: &[String], mechanism: Mechanism) -> Explanation {
    let attentions = attentions(trace);
    let tokens = Tokens::from(source);
    let rows = attentions.iter().flat_map(|attention| attention.rows(&tokens, |_| (1, String::new())));
    let step = Step { step: 1, attention: rows.collect(), ..Step::default() };
    Explanation {
        mechanism,
        source: source.to_vec(),
        memories: attentions.iter().flat_map(|attention| attention.memories()).collect(),
        steps: vec![step],
        ..Explanation::default()
    }
}

/// The tokens of the target, with the end symbol unless the model was cut short.
fn target_of<M: Seq2Seq>(model: &M, tokenizers: &Tokenizers, question: &Question, source: &[u32]) -> Vec<u32> {
    let ended = |mut tokens: Vec<u32>| {
        tokens.push(EOS);
        tokens
    };
    // Of a model that does not learn where an answer ends, an answer has no end to be shown.
    if let Some(answer) = fixed_answer(model, source) {
        return match question.target {
            None => answer,
            Some(Given::Text(text)) => tokenizers.target().encode(text),
            Some(Given::Tokens(tokens)) => tokens.iter().copied().filter(|id| *id != EOS).collect(),
        };
    }
    match question.target {
        None => {}
        Some(Given::Text(text)) => return ended(tokenizers.target().encode(text)),
        Some(Given::Tokens(tokens)) => return tokens.to_vec(),
    }
    let request = Request::new(source.to_vec());
    let mut found = decode(model, &[request], question.decoding, question.seed, |_| ());
    let best = found.swap_remove(0).swap_remove(0);
    if best.is_complete { ended(best.tokens) } else { best.tokens }
}

pub(super) fn labels(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|id| tokenizer.label(*id)).collect()
}

/// The word table of one side; models that share one call it the target's.
pub(super) fn table<'a>(tables: &'a Weights, side: &str) -> &'a Weight {
    let own = tables.get(&format!("{side}_embedding.weight"));
    own.or(tables.get("target_embedding.weight")).expect("a model has word vectors")
}

/// The entry `name`, or nothing.
fn vector(trace: &Trace, name: &str) -> Vec<f32> {
    trace.get(name).map(|entry| entry.values.clone()).unwrap_or_default()
}

/// The tokens of both sides.
pub(super) struct Words {
    /// The source, or the beginning of a text.
    pub source: Tokens,
    /// What the first step reads: the start symbol, or the last token of the beginning.
    pub first: u32,
    /// The target after that token.
    pub written: Vec<String>,
    /// Whether the target continues the source as one text.
    pub is_text: bool,
}

impl Words {
    /// What a step's trace says; the distribution comes from [`weigh`].
    fn step(&self, trace: &Trace, t: usize) -> Step {
        let query = |_: usize| (t + 1, self.written[t + 1].clone());
        let (own, other): (Vec<_>, Vec<_>) = attentions(trace).into_iter().partition(|a| is_self(a.name));
        let written = match (own.is_empty(), self.is_text) {
            (true, _) => Tokens::default(),
            (false, true) => self.source.iter().chain(&self.written[1..=t]).cloned().collect(),
            (false, false) => Tokens::from(&self.written[..=t]),
        };
        let layers: Vec<Vec<f32>> = (0..)
            .map_while(|layer| trace.get(&format!("decoder.{layer}.states")))
            .map(|entry| entry.values.clone())
            .collect();
        let state = trace.get("decoder.state").map(|entry| entry.values.clone());
        Step {
            step: t + 1,
            previous: self.written[t].clone(),
            input: vector(trace, "decoder.embedded"),
            previous_state: vector(trace, "decoder.previous_state"),
            state: state.or(layers.last().cloned()).unwrap_or_default(),
            layers,
            attentional: vector(trace, "attention.attentional"),
            readout: vector(trace, "decoder.readout"),
            attention: other.iter().flat_map(|attention| attention.rows(&self.source, query)).collect(),
            self_attention: own.iter().flat_map(|attention| attention.rows(&written, query)).collect(),
            gates: (0..)
                .map_while(|layer| trace.get(&format!("decoder.{layer}.gate")))
                .map(|entry| entry.values.clone())
                .collect(),
            recurrences: recurrences(trace),
            ..Step::default()
        }
    }
}

/// The distribution over the next word, in which `chosen` was taken.
fn weigh(step: &mut Step, logits: Vec<f32>, chosen: u32, tokenizer: &Tokenizer) {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| ((logit - max) as f64).exp()).sum();
    let choice = |id: u32| Choice {
        token: tokenizer.label(id),
        id,
        probability: (((logits[id as usize] - max) as f64).exp() / sum) as f32,
    };
    // Padding and the start symbol are never written.
    let mut ids: Vec<u32> = (0..logits.len() as u32).filter(|id| ![PAD, BOS].contains(id)).collect();
    ids.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b)));
    step.top = ids.iter().take(N_TOP).map(|id| choice(*id)).collect();
    step.preferred = step.top[0].clone();
    step.contrast = choice(*ids.iter().find(|id| **id != chosen).unwrap_or(&chosen));
    step.chosen = choice(chosen);
    step.logits = logits;
}

/// Takes keys and values that were computed with the source from the encoder's trace.
fn fill_memories(memories: &mut [AttentionMemory], trace: &Trace) {
    for memory in memories.iter_mut().filter(|memory| memory.values.is_empty()) {
        memory.keys = sequence(trace, &format!("{}.keys", memory.name));
        memory.values = sequence(trace, &format!("{}.values", memory.name));
    }
}
