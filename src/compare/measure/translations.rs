//! What a model writes for the test sentences, and how often it is right when the words before are given.

use crate::compare::progress::check_stop;
use crate::data::batch::{Batch, Example, plan_by_length};
use crate::data::{EOS, Pair, UNK};
use crate::decoding::{DecodingConfig, Request, decode};
use crate::error::{Error, Result};
use crate::experiment::{LoadedModel, dataset};
use crate::layers::Pass;
use crate::models::{Autoregressive, PreparedModel};
use crate::training::Observer;
use burn::tensor::Int;
use serde::{Deserialize, Serialize};

/// Sentences that are decoded between two looks at the signals.
const CHUNK: usize = 128;

/// What a model wrote for one source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Translation {
    /// The text.
    pub text: String,
    /// Whether the model ended it itself.
    pub is_complete: bool,
    /// For every target token, the end symbol last, whether it had the highest probability after the right ones before it:
    /// `1` or `0`.
    pub forced: String,
}

/// Writes all of `pairs`; `progress` is told the part that is done.
///
/// # Errors
/// If a sentence is too long for the model, or the observer stops it.
pub fn translations(
    loaded: &LoadedModel,
    pairs: &[Pair],
    decoding: &DecodingConfig,
    observer: &dyn Observer,
    mut progress: impl FnMut(f64),
) -> Result<Vec<Translation>> {
    let examples = dataset::encode(pairs, &loaded.tokenizers);
    check_limits(loaded, &examples)?;
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|i| (examples[*i].source.len(), *i));
    let mut found = vec![Translation::default(); pairs.len()];
    let model = PreparedModel::new(loaded.model.clone());
    for (n, chunk) in order.chunks(CHUNK).enumerate() {
        check_stop(observer)?;
        progress((n * CHUNK) as f64 / pairs.len() as f64);
        let requests: Vec<Request> = chunk
            .iter()
            // What is drawn for a sentence depends on its place in the test set, and not in the chunk.
            .map(|i| Request { number: Some(*i as u64), ..Request::new(examples[*i].source.clone()) })
            .collect();
        let written = decode(&model, &requests, decoding, loaded.config.seed, |_| ());
        for (i, mut hypotheses) in chunk.iter().zip(written) {
            let best = hypotheses.swap_remove(0);
            found[*i].text = loaded.tokenizers.target().decode(&best.tokens);
            found[*i].is_complete = best.is_complete;
        }
    }
    for (i, forced) in forced(loaded, &examples, decoding.batch_tokens, observer)?.into_iter().enumerate() {
        found[i].forced = forced;
    }
    Ok(found)
}

/// For every target token whether it is the likeliest. An unknown word is never right.
fn forced(
    loaded: &LoadedModel,
    examples: &[Example],
    batch_tokens: usize,
    observer: &dyn Observer,
) -> Result<Vec<String>> {
    let lengths: Vec<(usize, usize)> = examples.iter().map(|e| (e.source.len(), e.target.len())).collect();
    let device = loaded.model.device();
    let mut found = vec![String::new(); examples.len()];
    for indices in plan_by_length(&lengths, batch_tokens) {
        check_stop(observer)?;
        let batch = Batch::new(&indices.iter().map(|i| &examples[*i]).collect::<Vec<_>>(), &device);
        let logits = loaded.model.forward_batch(&batch, &mut Pass::inference().fused(true));
        let [_, len, _] = logits.dims();
        let best: burn::tensor::Tensor<2, Int> = logits.argmax(2).squeeze_dim(2);
        let best: Vec<i64> = best.into_data().try_into_vec_as::<i64>().expect("ids are whole numbers");
        for (row, i) in indices.iter().enumerate() {
            let target = examples[*i].target.iter().chain([&EOS]);
            let verdict = |(t, id): (usize, &u32)| {
                let is_right = best[row * len + t] == i64::from(*id) && *id != UNK;
                if is_right { '1' } else { '0' }
            };
            found[*i] = target.enumerate().map(verdict).collect();
        }
    }
    Ok(found)
}

/// Learned positions and location scores end somewhere.
fn check_limits(loaded: &LoadedModel, examples: &[Example]) -> Result<()> {
    let limits = loaded.model.limits();
    let longest_source = examples.iter().map(|e| e.source.len() + 1).max().unwrap_or(0);
    let longest_target = examples.iter().map(|e| e.target.len() + 1).max().unwrap_or(0);
    for (limit, longest) in [(limits.source, longest_source), (limits.target, longest_target)] {
        if let Some(limit) = limit.filter(|limit| limit.len < longest) {
            return Err(Error::config(
                limit.key,
                format!(
                    "is {}, but a test sentence has {longest} tokens; test shorter ones with --lengths, or train a model without \
                     that limit",
                    limit.len
                ),
            ));
        }
    }
    Ok(())
}
