//! Hidden words: how well a model predicts them.

use super::score::{BATCHES_AT_ONCE, losses};
use crate::data::batch::Batch;
use crate::data::masking::{Masked, Masking, without_end};
use crate::data::{PAD, TokenStream};
use crate::layers::Pass;
use crate::models::Seq2Seq;
use crate::pool::in_pool;
use crate::random::{Purpose, Stream};
use crate::ranks::{Ranks, share};
use crate::scoring::MaskedScores;

/// How well `model` predicts the tokens of a text that are hidden, `masking.rate` of them, chosen by `seed` alone.
///
/// The text is read in pieces of `context` tokens. Unlike in training all chosen tokens are hidden: that is what a model is asked.
/// Batches are shared out among `ranks`. `progress` is called with the number of tokens that this one has read.
pub fn score_masked<M: Seq2Seq>(
    model: &M,
    text: &TokenStream,
    masking: &Masking,
    (context, batch_tokens): (usize, usize),
    seed: u64,
    ranks: &dyn Ranks,
    mut progress: impl FnMut(usize),
) -> MaskedScores {
    // The first token is the end of a line that is not there.
    let pieces = text.ids[1..].chunks(context).map(without_end).filter(|piece| !piece.is_empty());
    let pieces: Vec<(usize, &[u32])> = pieces.enumerate().collect();
    let device = model.device();
    let batches: Vec<_> = pieces.chunks((batch_tokens / context).max(1)).collect();
    let (mut loss, mut n_correct, mut n_masked, mut n_read) = (0.0, 0, 0, 0);
    for batches in batches.chunks(BATCHES_AT_ONCE) {
        let found = share(ranks, batches, |pieces| {
            let masked: Vec<Masked> = pieces
                .iter()
                .map(|(i, piece)| masking.measured(piece, &Stream::new(seed, Purpose::Masking, &[*i as u64])))
                .collect();
            let batch = Batch::of_masked(&masked, &device);
            let losses = in_pool(&device, || {
                let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::inference().fused(true));
                losses(logits, &batch)
            });
            n_read += pieces.iter().map(|(_, piece)| piece.len() + 1).sum::<usize>();
            progress(n_read);
            let of_hidden = losses.into_iter().zip(&batch.target_ids).filter(|(_, id)| **id != PAD);
            of_hidden.map(|(loss, _)| loss).collect::<Vec<_>>()
        });
        for (of_token, is_correct) in found.into_iter().flatten() {
            loss += of_token;
            n_correct += usize::from(is_correct);
            n_masked += 1;
        }
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
