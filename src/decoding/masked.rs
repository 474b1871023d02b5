//! Hidden words: how well a model predicts them.

use super::score::losses;
use crate::data::batch::Batch;
use crate::data::masking::{Masked, Masking, without_end};
use crate::data::{PAD, TokenStream};
use crate::layers::Pass;
use crate::models::Seq2Seq;
use crate::pool::in_pool;
use crate::random::{Purpose, Stream};
use crate::scoring::MaskedScores;

/// How well `model` predicts the tokens of a text that are hidden, `masking.rate` of them, chosen by `seed` alone.
///
/// The text is read in pieces of `context` tokens. Unlike in training all chosen tokens are hidden: that is what a model is asked.
/// `progress` is called with the number of tokens that have been read.
pub fn score_masked<M: Seq2Seq>(
    model: &M,
    text: &TokenStream,
    masking: &Masking,
    (context, batch_tokens): (usize, usize),
    seed: u64,
    mut progress: impl FnMut(usize),
) -> MaskedScores {
    // The first token is the end of a line that is not there.
    let pieces = text.ids[1..].chunks(context).map(without_end).filter(|piece| !piece.is_empty());
    let pieces: Vec<(usize, &[u32])> = pieces.enumerate().collect();
    let device = model.device();
    let (mut loss, mut n_correct, mut n_masked, mut n_read) = (0.0, 0, 0, 0);
    for pieces in pieces.chunks((batch_tokens / context).max(1)) {
        let masked: Vec<Masked> = pieces
            .iter()
            .map(|(i, piece)| masking.measured(piece, &Stream::new(seed, Purpose::Masking, &[*i as u64])))
            .collect();
        let batch = Batch::of_masked(&masked, &device);
        let losses = in_pool(&device, || {
            let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::inference().fused(true));
            losses(logits, &batch)
        });
        for (token, _) in losses.iter().zip(&batch.target_ids).filter(|(_, id)| **id != PAD) {
            loss += token.0;
            n_correct += usize::from(token.1);
            n_masked += 1;
        }
        n_read += pieces.iter().map(|(_, piece)| piece.len() + 1).sum::<usize>();
        progress(n_read);
    }
    let n = f64::from(n_masked.max(1));
    let loss = loss / n;
    MaskedScores {
        loss,
        perplexity: loss.exp(),
        masked_accuracy: n_correct as f64 / n,
        masked: n_masked as usize,
        tokens: text.n_tokens(),
        unknown: text.n_unknown(),
        masked_rate: masking.rate,
        context,
    }
}
