//! From a model to its attention maps.

use super::{AttentionMap, Part, SentenceMaps, memory};
use crate::data::batch::Padded;
use crate::data::text::line_ids;
use crate::data::tokenizer::{BOS, EOS};
use crate::data::{Scaling, Series, Tokenizers};
use crate::decoding::{DecodingConfig, Request, decode, fixed_answer};
use crate::error::{Error, Result};
use crate::kernels::vectors::highest;
use crate::layers::{Pass, Trace, TraceEntry};
use crate::models::Seq2Seq;
use burn::tensor::activation;
use std::collections::BTreeMap;

/// A source and the target that was, or is to be, written for it; or a text that has no source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of the sentence in its file, counted from 1.
    pub number: usize,
    /// The source as text.
    pub source_text: String,
    /// The source, without the end symbol.
    pub source: Vec<u32>,
    /// Of a text without a source, the token that it begins with, which is not predicted.
    pub first: Option<u32>,
    /// The target, with the end symbol unless the model was cut short.
    pub target: Vec<u32>,
}

impl Written {
    /// A given target.
    pub fn given(number: usize, source: &str, target: &str, tokenizers: &Tokenizers) -> Self {
        let end = [EOS];
        Self {
            number,
            source_text: source.to_string(),
            source: tokenizers.source().encode(source),
            first: None,
            target: tokenizers.target().encode(target).into_iter().chain(end).collect(),
        }
    }

    /// A line of a text without a source, its end included; nothing if there is no token to predict.
    pub fn of_text(number: usize, line: &str, tokenizers: &Tokenizers) -> Option<Self> {
        let ids = line_ids(line, tokenizers.target());
        let (first, target) = ids.split_first().filter(|(_, rest)| !rest.is_empty())?;
        Some(Self { number, first: Some(*first), target: target.to_vec(), ..Self::default() })
    }

    /// What the decoder is given: the start symbol, or the first token of a text, and every target word but the last.
    pub fn input(&self) -> Vec<u32> {
        let before_last = self.target.split_last().map_or(&[][..], |(_, before)| before);
        [self.first.unwrap_or(BOS)].into_iter().chain(before_last.iter().copied()).collect()
    }

    /// What the encoder reads: the source with its end; nothing where there is no source.
    fn read(&self) -> Vec<u32> {
        let end = self.first.is_none().then_some(EOS);
        self.source.iter().copied().chain(end).collect()
    }

    /// The target without the end symbol.
    pub fn words(&self) -> Vec<u32> {
        self.target.iter().copied().filter(|id| *id != EOS).collect()
    }

    /// The target as text.
    pub fn target_text(&self, tokenizers: &Tokenizers) -> String {
        tokenizers.target().decode(&self.target)
    }
}

/// The model's own targets for `sources`, as (number, text).
pub fn write<M: Seq2Seq>(
    model: &M,
    tokenizers: &Tokenizers,
    sources: &[(usize, String)],
    config: &DecodingConfig,
    seed: u64,
    progress: impl FnMut(usize) + Send,
) -> Vec<Written> {
    let fixed = |(number, text): &(usize, String)| {
        let source = tokenizers.source().encode(text);
        let target = fixed_answer(model, &source)?;
        Some(Written { number: *number, source_text: text.clone(), source, first: None, target })
    };
    if let Some(answered) = sources.iter().map(fixed).collect::<Option<Vec<Written>>>() {
        return answered;
    }
    let requests: Vec<Request> =
        sources.iter().map(|(_, text)| Request::new(tokenizers.source().encode(text))).collect();
    let found = decode(model, &requests, config, seed, progress);
    let written = sources.iter().zip(requests).zip(found).map(|(((number, text), request), mut hypotheses)| {
        let best = hypotheses.swap_remove(0);
        let mut target = best.tokens;
        // A target that was cut has no end; one that was cut before its first word is shown its end all the same.
        if best.is_complete || target.is_empty() {
            target.push(EOS);
        }
        Written { number: *number, source_text: text.clone(), source: request.source, first: None, target }
    });
    written.collect()
}

/// Runs `model` over a sentence pair, or a text, and keeps every attention map, and of recurrences what they keep.
///
/// One traced whole-sentence pass, which every model keeps equal to stepping; the logits are those of an untraced pass.
///
/// # Errors
/// If the model has neither attention nor a recurrence to look at.
pub fn collect<M: Seq2Seq>(model: &M, tokenizers: &Tokenizers, written: &Written) -> Result<SentenceMaps> {
    let found = look(model, tokenizers, written, is_wanted).maps;
    if !found.maps.is_empty() {
        return Ok(found);
    }
    Err(Error::message(match written.first {
        None => {
            "this model has no attention: one fixed vector, or a state of fixed size in each layer, carries what was read, so \
             there is no map to draw; --faithfulness says what each source word matters, and `lookback inspect states` draws the vectors"
        }
        Some(_) => {
            "this model has no attention, and its recurrences have no factor by which a token fades: cells have gates that \
             see the state, delta rules replace, linear attention forgets nothing; so there is no map to draw. \
             `lookback inspect states` draws the states, and `lookback explain` says what each step depends on"
        }
    }))
}

/// The same of attention alone, which may have no map.
pub fn collect_attention<M: Seq2Seq>(model: &M, tokenizers: &Tokenizers, written: &Written) -> SentenceMaps {
    look(model, tokenizers, written, is_weights).maps
}

/// What a pass over a sentence pair, or a text, has shown: its maps, of which there may be none, and the distribution over all
/// words at each step.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The maps.
    pub maps: SentenceMaps,
    probabilities: Vec<f32>,
    vocab_size: usize,
}

impl Reading {
    /// The `n` likeliest words at a step, counted from 0, with their probabilities, best first; padding and the start symbol, which
    /// never follow, are not among them.
    pub fn candidates(&self, step: usize, n: usize) -> Vec<(u32, f32)> {
        let first = BOS as usize + 1;
        let words = &self.probabilities[step * self.vocab_size..][first..self.vocab_size];
        highest(words, n).into_iter().map(|(place, probability)| ((first + place) as u32, probability)).collect()
    }
}

/// The same as [`collect`], of any model, with the distribution at each step.
pub fn read<M: Seq2Seq>(model: &M, tokenizers: &Tokenizers, written: &Written) -> Reading {
    look(model, tokenizers, written, is_wanted)
}

fn look<M: Seq2Seq>(model: &M, tokenizers: &Tokenizers, written: &Written, is_wanted: fn(&str) -> bool) -> Reading {
    let device = model.device();
    let mut written = written.clone();
    // An answer that was cut at the longest length that a model can number has no room for an end symbol.
    written.target.truncate(model.limits().target.map_or(usize::MAX, |limit| limit.len));
    let source_ids = written.read();
    let source = Padded::new(std::slice::from_ref(&source_ids), 0, &device);
    let input = Padded::new(&[written.input()], 0, &device);
    let mut trace = Trace::of(is_wanted);
    let logits = model.forward(&source, &input, &mut Pass::traced(&mut trace));
    let maps = all_maps(trace, model.has_causal_encoder());
    let (n_words, vocab_size) = (written.target.len(), logits.dims()[2]);
    let probabilities = crate::models::weights::to_vec(activation::softmax(logits, 2));
    let label = |tokens: &[u32], tokenizer: &crate::data::Tokenizer| {
        tokens.iter().map(|id| tokenizer.label(*id)).collect::<Vec<_>>()
    };
    let maps = SentenceMaps {
        number: written.number,
        source_text: written.source_text.clone(),
        target_text: written.target_text(tokenizers),
        source: label(&source_ids, tokenizers.source()),
        input: label(&written.input(), tokenizers.target()),
        target: label(&written.target, tokenizers.target()),
        probabilities: (0..n_words).map(|t| probabilities[t * vocab_size + written.target[t] as usize]).collect(),
        maps,
    };
    Reading { maps, probabilities, vocab_size }
}

/// Runs a model of numbers over a series and keeps every map of what its steps look at; the target is what it answers. `source` and
/// `target` are the scales that it was trained with.
///
/// # Errors
/// If the model has no attention to look at.
pub fn collect_series<M: Seq2Seq>(
    model: &M,
    number: usize,
    series: &Series,
    source: &Scaling,
    target: &Scaling,
) -> Result<SentenceMaps> {
    let read = Padded::series([series], source, &model.device());
    let mut trace = Trace::of(is_wanted);
    let answers = model.forward(&read, &read, &mut Pass::traced(&mut trace));
    let maps = all_maps(trace, model.has_causal_encoder());
    if maps.is_empty() {
        let message = "this model has no attention, and its recurrences have no factor by which a step fades, so that there is \
                       no map to draw";
        return Err(Error::message(message));
    }
    let answers = target.rounded(&target.restore(&crate::models::weights::to_vec(answers)));
    Ok(SentenceMaps {
        number,
        source_text: series.to_string(),
        target_text: answers.to_string(),
        source: series.to_string().split(' ').map(str::to_owned).collect(),
        input: Vec::new(),
        target: Vec::new(),
        probabilities: Vec::new(),
        maps,
    })
}

/// Whether a trace entry is needed for a map.
fn is_wanted(name: &str) -> bool {
    is_weights(name) || name.ends_with(".kept") || name.ends_with(".replaced")
}

/// Whether a trace entry holds attention weights.
pub fn is_weights(name: &str) -> bool {
    name.rsplit('.').next() == Some("weights") && name.contains("attention")
}

/// The maps of attention, and after them those of what recurrences keep.
fn all_maps(mut trace: Trace, has_causal_encoder: bool) -> Vec<AttentionMap> {
    let memories = memory::maps(&trace.entries);
    trace.entries.retain(|entry| is_weights(&entry.name));
    let mut maps = maps_of(trace.entries);
    maps.iter_mut().for_each(|map| map.is_causal = has_causal_encoder && map.part == Part::Encoder);
    maps.extend(memories);
    maps
}

/// The maps of attention in a trace of one sentence.
///
/// Entries are named `[encoder|decoder.]LAYER.(self|cross)_attention.weights`, or `attention.weights` for recurrent models;
/// their last two axes are the positions that look and those that are looked at, an axis before them the heads. Entries of
/// one name, such as those of single steps, are put one below the other; a later one may see more positions.
fn maps_of(entries: Vec<TraceEntry>) -> Vec<AttentionMap> {
    type Place = (Part, Option<usize>, Option<usize>);
    let mut rows: BTreeMap<Place, Vec<Vec<f32>>> = BTreeMap::new();
    for entry in entries {
        let (part, layer) = place_of(&entry.name);
        let [.., n_rows, n_columns] = entry.shape[..] else { continue };
        // Of a recurrent decoder's `[batch, beams, source_len]` the beams are the rows.
        let heads = if entry.shape.len() == 4 { Some(entry.shape[1]) } else { None };
        for (i, block) in entry.values.chunks((n_rows * n_columns).max(1)).enumerate() {
            let head = heads.map(|n| i % n + 1);
            rows.entry((part, layer, head)).or_default().extend(block.chunks(n_columns).map(<[f32]>::to_vec));
        }
    }
    rows.into_iter()
        .map(|((part, layer, head), rows)| {
            let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
            let mut weights = Vec::with_capacity(rows.len() * n_columns);
            for row in &rows {
                weights.extend(row);
                weights.resize(weights.len() + n_columns - row.len(), 0.0);
            }
            AttentionMap { part, layer, head, n_rows: rows.len(), n_columns, weights, is_causal: false }
        })
        .collect()
}

/// What the name of a trace entry says of its place; layers are counted from 1.
fn place_of(name: &str) -> (Part, Option<usize>) {
    let parts: Vec<&str> = name.split('.').collect();
    let layer = parts.iter().find_map(|part| part.parse::<usize>().ok()).map(|layer| layer + 1);
    let is_self = parts.contains(&"self_attention");
    match (parts[0], is_self) {
        ("encoder", _) => (Part::Encoder, layer),
        ("decoder", true) => (Part::Decoder, layer),
        _ => (Part::Cross, layer),
    }
}
