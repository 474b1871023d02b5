//! From a model and a sentence to an [`Explanation`].

use super::encoder::{encoder, sequence};
use super::rows::{attentions, is_self};
use super::vectors::word_vectors;
use super::{Choice, Explanation, Mechanism, Step};
use crate::data::Tokenizers;
use crate::data::batch::Padded;
use crate::data::tokenizer::{BOS, EOS, PAD, Tokenizer};
use crate::decoding::{DecodingConfig, Request, decode};
use crate::layers::{Pass, Trace};
use crate::models::weights::{self, Weight, Weights};
use crate::models::{ModelConfig, Seq2Seq};
use crate::report::attribution::gradient_times_input;
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

/// Neighbours of a word, and words of a distribution, that are worth showing.
const N_NEIGHBOURS: usize = 4;
const N_TOP: usize = 5;

/// What shall be explained.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The source as it was given.
    pub source_text: &'a str,
    /// The target, if it is given; else the model chooses it.
    pub target_text: Option<&'a str>,
    /// How the model chooses.
    pub decoding: &'a DecodingConfig,
    /// The seed of sampling.
    pub seed: u64,
}

/// Decodes the source (or takes the given target), and goes through it once more, step by step, with a traced pass.
///
/// Callers have seen to it that the source has tokens and that neither side is longer than the model can take.
pub fn explain<M: Module + Seq2Seq>(
    model: &M,
    config: &ModelConfig,
    tokenizers: &Tokenizers,
    question: &Question,
) -> Explanation {
    let source = tokenizers.source().encode(question.source_text);
    let target = target_of(model, tokenizers, question, &source);
    let with_end: Vec<u32> = source.iter().copied().chain([EOS]).collect();
    let words = Words { source: labels(tokenizers.source(), &with_end), target: labels(tokenizers.target(), &target) };
    let mechanism = Mechanism::new(config);
    let tables = weights::collect(model);

    let mut trace = Trace::default();
    let padded = Padded::sources([&source], &model.device());
    let memory = model.encode(&padded, &mut Pass::traced(&mut trace));
    let mut source_words = word_vectors(table(&tables, "source"), tokenizers.source(), &with_end, N_NEIGHBOURS);
    for (word, embedded) in source_words.iter_mut().zip(sequence(&trace, "encoder.embedded")) {
        word.embedded = embedded;
    }
    let encoder = encoder(&trace, &mechanism, &words.source);
    let mut memories: Vec<_> = attentions(&trace).iter().flat_map(|attention| attention.memories()).collect();

    let influence = gradient_times_input(model, &source, &target);
    let mut target_words = word_vectors(table(&tables, "target"), tokenizers.target(), &target, N_NEIGHBOURS);
    let mut state = model.start(&memory, 1);
    let mut steps = Vec::with_capacity(target.len());
    let inputs = [BOS].into_iter().chain(target.iter().copied());
    for (t, (previous, influence)) in inputs.zip(influence).enumerate() {
        let mut seen = Trace::default();
        let input = Tensor::from_data(TensorData::new(vec![previous as i32], [1]), &model.device());
        let (logits, next) = model.step(input, state, &memory, &mut Pass::traced(&mut seen));
        state = next;
        let mut step = words.step(&seen, t, tokenizers.target().label(previous));
        weigh(&mut step, weights::to_vec(logits), target[t], tokenizers.target());
        step.influence = influence;
        if t > 0
            && let Some(entry) = seen.get("decoder.embedded")
        {
            target_words[t - 1].embedded = entry.values.clone();
        }
        if t + 1 == target.len() {
            // The memory of the source stands in the encoder's trace for some models, in each step's for others.
            let late = attentions(&seen).iter().flat_map(|attention| attention.memories()).collect::<Vec<_>>();
            memories.extend(late);
        }
        steps.push(step);
    }
    fill_memories(&mut memories, &trace);
    Explanation {
        model: mechanism.title.clone(),
        mechanism,
        source_text: question.source_text.to_owned(),
        target_text: tokenizers.target().decode(&target),
        forced: question.target_text.is_some(),
        notes: Vec::new(),
        source: words.source,
        target: words.target,
        source_words,
        target_words,
        encoder,
        memories,
        steps,
    }
}

/// An explanation of one query of an attention that somebody has traced: an example that fits on paper.
pub fn explain_trace(trace: &Trace, source: &[String], mechanism: Mechanism) -> Explanation {
    let attentions = attentions(trace);
    let rows = attentions.iter().flat_map(|attention| attention.rows(source, |_| (1, String::new())));
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
    if let Some(text) = question.target_text {
        return ended(tokenizers.target().encode(text));
    }
    let request = Request::new(source.to_vec());
    let mut found = decode(model, &[request], question.decoding, question.seed, |_| ());
    let best = found.swap_remove(0).swap_remove(0);
    if best.is_complete { ended(best.tokens) } else { best.tokens }
}

fn labels(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|id| tokenizer.label(*id)).collect()
}

/// The word table of one side; models that share one call it the target's.
fn table<'a>(tables: &'a Weights, side: &str) -> &'a Weight {
    let own = tables.get(&format!("{side}_embedding.weight"));
    own.or(tables.get("target_embedding.weight")).expect("a model has word vectors")
}

/// The entry `name`, or nothing.
fn vector(trace: &Trace, name: &str) -> Vec<f32> {
    trace.get(name).map(|entry| entry.values.clone()).unwrap_or_default()
}

/// The tokens of both sides.
struct Words {
    source: Vec<String>,
    target: Vec<String>,
}

impl Words {
    /// What a step's trace says; the distribution comes from [`weigh`].
    fn step(&self, trace: &Trace, t: usize, previous: String) -> Step {
        let asked = |_: usize| (t + 1, self.target[t].clone());
        let written: Vec<String> =
            [super::START.to_owned()].into_iter().chain(self.target[..t].iter().cloned()).collect();
        let (own, other): (Vec<_>, Vec<_>) = attentions(trace).into_iter().partition(|a| is_self(a.name));
        let is_state = |name: &str| name.starts_with("decoder.") && name.ends_with(".states");
        let last_layer = trace.entries.iter().rev().find(|entry| is_state(&entry.name));
        let state = trace.get("decoder.state").or(last_layer);
        Step {
            step: t + 1,
            previous,
            previous_state: vector(trace, "decoder.previous_state"),
            state: state.map(|entry| entry.values.clone()).unwrap_or_default(),
            readout: vector(trace, "decoder.readout"),
            attention: other.iter().flat_map(|attention| attention.rows(&self.source, asked)).collect(),
            self_attention: own.iter().flat_map(|attention| attention.rows(&written, asked)).collect(),
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
    step.chosen = choice(chosen);
    step.logits = logits;
}

/// Gives memories whose keys and values were computed with the source what the encoder's trace has of them.
fn fill_memories(memories: &mut [super::AttentionMemory], trace: &Trace) {
    for memory in memories.iter_mut().filter(|memory| memory.values.is_empty()) {
        memory.keys = sequence(trace, &format!("{}.keys", memory.name));
        memory.values = sequence(trace, &format!("{}.values", memory.name));
    }
}
