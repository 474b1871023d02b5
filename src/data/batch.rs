//! From sentences to tensors: padding, shifting, and batches of similar lengths.
//!
//! A [`Batch`] is the only thing that crosses from the data to a model.

mod plan;

pub(super) use plan::shuffled;
pub use plan::{MAX_EXAMPLES, Plan, plan_by_length, plan_epoch};

use super::masking::Masked;
use super::series::{Series, SeriesPair};
use super::tokenizer::{BOS, EOS, PAD, Scaling};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// A pair of sentences as token ids, without start and end symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// The source.
    pub source: Vec<u32>,
    /// The target.
    pub target: Vec<u32>,
}

/// Sentences padded to the longest, or series of numbers.
///
/// # Shapes
/// - ids: `[batch, len]`
/// - values: `[batch, len, channels]`
#[derive(Clone, Debug)]
pub struct Padded {
    /// Token ids, [`PAD`] beyond each sentence. Of series, nothing but [`PAD`].
    pub ids: Tensor<2, Int>,
    /// Scaled numbers where these are series, zero beyond each.
    pub values: Option<Tensor<3>>,
    /// The length of each sentence in tokens, end symbol included; of each series in steps.
    pub lengths: Vec<usize>,
}

impl Padded {
    /// Pads `sentences` on the right to the longest, or to `min_len` if that is more.
    pub fn new(sentences: &[Vec<u32>], min_len: usize, device: &Device) -> Self {
        let len = sentences.iter().map(Vec::len).max().unwrap_or(0).max(min_len).max(1);
        let mut ids = vec![PAD as i32; sentences.len() * len];
        for (row, sentence) in ids.chunks_mut(len).zip(sentences) {
            for (id, token) in row.iter_mut().zip(sentence) {
                *id = *token as i32;
            }
        }
        let lengths = sentences.iter().map(Vec::len).collect();
        Self { ids: Tensor::from_data(TensorData::new(ids, [sentences.len(), len]), device), values: None, lengths }
    }

    /// Source sentences: each with the end symbol behind it.
    pub fn sources<'a>(sentences: impl IntoIterator<Item = &'a Vec<u32>>, device: &Device) -> Self {
        let sentences: Vec<Vec<u32>> =
            sentences.into_iter().map(|sentence| sentence.iter().copied().chain([EOS]).collect()).collect();
        Self::new(&sentences, 0, device)
    }

    /// Series, scaled and padded on the right to the longest. They have no end symbol.
    pub fn series<'a>(series: impl IntoIterator<Item = &'a Series>, scaling: &Scaling, device: &Device) -> Self {
        let scaled: Vec<Vec<f32>> = series.into_iter().map(|series| scaling.scale(series)).collect();
        let n_channels = scaling.n_channels();
        let lengths: Vec<usize> = scaled.iter().map(|values| values.len() / n_channels).collect();
        let padded = Self::of_lengths(lengths, device);
        let values = padded_rows(&scaled, padded.len() * n_channels);
        let shape = [padded.batch_size(), padded.len(), n_channels];
        Self { values: Some(Tensor::from_data(TensorData::new(values, shape), device)), ..padded }
    }

    /// Rows of so many steps, of which no more is known.
    fn of_lengths(lengths: Vec<usize>, device: &Device) -> Self {
        let shape = [lengths.len(), lengths.iter().copied().max().unwrap_or(0).max(1)];
        Self { ids: Tensor::full(shape, PAD as i32, device), values: None, lengths }
    }

    /// The number of sentences.
    pub fn batch_size(&self) -> usize {
        self.lengths.len()
    }

    /// The padded length.
    pub fn len(&self) -> usize {
        self.ids.dims()[1]
    }

    /// Whether there is no sentence.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The tokens that are not padding.
    pub fn n_tokens(&self) -> usize {
        self.lengths.iter().sum()
    }
}

/// What a model learns from in one step.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What is read: `x_1 .. x_S </s>`; sentences of no words where there is no source.
    pub source: Padded,
    /// What the decoder is given: `<s> y_1 .. y_T`.
    pub target_input: Padded,
    /// What it shall answer: `y_1 .. y_T </s>`, the same shape.
    pub target_output: Padded,
    /// The answers on the host, row-major, [`PAD`] where nothing is to be learnt; empty where answers are numbers.
    pub target_ids: Vec<u32>,
    /// The answers where they are numbers.
    pub target_values: Option<TargetValues>,
}

/// Numbers that a model shall answer.
#[derive(Clone, Debug)]
pub struct TargetValues {
    /// Scaled, row-major, zero in the padding: `[batch, len, channels]`.
    pub scaled: Vec<f32>,
    /// The steps of each row.
    pub lengths: Vec<usize>,
    /// What one scaled unit is in the units of the data, by channel.
    pub units: Vec<f64>,
}

impl Batch {
    /// Pads and shifts `examples`.
    pub fn new(examples: &[&Example], device: &Device) -> Self {
        let source = Padded::sources(examples.iter().map(|example| &example.source), device);
        let input: Vec<Vec<u32>> =
            examples.iter().map(|example| [BOS].into_iter().chain(example.target.iter().copied()).collect()).collect();
        let output: Vec<Vec<u32>> =
            examples.iter().map(|example| example.target.iter().copied().chain([EOS]).collect()).collect();
        Self::shifted(source, &input, &output, device)
    }

    /// Pieces of text without a source: of each, every token but the last is read, and every one but the first is predicted.
    pub fn of_text(pieces: &[&[u32]], device: &Device) -> Self {
        let input: Vec<Vec<u32>> = pieces.iter().map(|piece| piece[..piece.len() - 1].to_vec()).collect();
        let output: Vec<Vec<u32>> = pieces.iter().map(|piece| piece[1..].to_vec()).collect();
        Self::shifted(Padded::new(&vec![Vec::new(); pieces.len()], 0, device), &input, &output, device)
    }

    /// Texts with hidden tokens: the targets are the hidden tokens.
    pub fn of_masked(texts: &[Masked], device: &Device) -> Self {
        let source = Padded::sources(texts.iter().map(|text| &text.read), device);
        let input: Vec<Vec<u32>> = texts.iter().map(|text| vec![BOS; text.read.len() + 1]).collect();
        let output: Vec<Vec<u32>> =
            texts.iter().map(|text| text.asked.iter().copied().chain([PAD]).collect()).collect();
        Self::shifted(source, &input, &output, device)
    }

    /// Series and what shall be answered to them, in the scale of `source` and `target`. An answer needs nothing but the source.
    pub fn of_series(pairs: &[&SeriesPair], source: &Scaling, target: &Scaling, device: &Device) -> Self {
        let steps = Padded::of_lengths(pairs.iter().map(|pair| pair.target.n_steps()).collect(), device);
        let scaled: Vec<Vec<f32>> = pairs.iter().map(|pair| target.scale(&pair.target)).collect();
        Self {
            source: Padded::series(pairs.iter().map(|pair| &pair.source), source, device),
            target_ids: Vec::new(),
            target_values: Some(TargetValues {
                scaled: padded_rows(&scaled, steps.len() * target.n_channels()),
                lengths: steps.lengths.clone(),
                units: target.divisor().to_vec(),
            }),
            target_input: steps.clone(),
            target_output: steps,
        }
    }

    fn shifted(source: Padded, input: &[Vec<u32>], output: &[Vec<u32>], device: &Device) -> Self {
        let target_output = Padded::new(output, 0, device);
        let len = target_output.len();
        let mut target_ids = vec![PAD; output.len() * len];
        for (row, sentence) in target_ids.chunks_mut(len).zip(output) {
            row[..sentence.len()].copy_from_slice(sentence);
        }
        let target_input = Padded::new(input, 0, device);
        Self { source, target_input, target_output, target_ids, target_values: None }
    }

    /// Target tokens that count, end symbols included; of series, their steps.
    pub fn n_target_tokens(&self) -> usize {
        match self.target_values {
            Some(_) => self.target_output.n_tokens(),
            None => self.target_ids.iter().filter(|id| **id != PAD).count(),
        }
    }
}

/// Rows one after the other, each filled up with zeros to `width`.
fn padded_rows(rows: &[Vec<f32>], width: usize) -> Vec<f32> {
    let mut values = vec![0.0; rows.len() * width];
    for (place, row) in values.chunks_mut(width).zip(rows) {
        place[..row.len()].copy_from_slice(row);
    }
    values
}
