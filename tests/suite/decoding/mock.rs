//! A model that is a table of probabilities, and slow searches over that table.

use crate::support::flex;
use burn::tensor::{Device, Int, Tensor, TensorData};
use lookback::data::batch::Padded;
use lookback::data::{BOS, EOS, PAD, stream};
use lookback::decoding::{DecodingConfig, Hypothesis};
use lookback::layers::Pass;
use lookback::models::{Autoregressive, LengthLimit, LengthLimits, Rows, Seq2Seq};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Padding, start, end, and three words: 3, 4 and 5.
pub const VOCAB_SIZE: usize = 6;

/// The words of the table.
pub const WORDS: [u32; 3] = [3, 4, 5];

type Row = [f32; VOCAB_SIZE];

/// A model whose logits are a function of the source and of the target so far.
pub struct Mock {
    seed: u64,
    /// Targets so far whose logits are given; all others are drawn.
    table: HashMap<Vec<u32>, Row>,
    /// The logits after every target so far that the table leaves out; without them they are drawn.
    otherwise: Option<Row>,
    /// What drawn logits of words and of the end are multiplied with.
    sharpness: f64,
    max_len: Option<usize>,
    /// Whether logits depend on how many sentences are decoded together, too.
    knows_batch: bool,
}

impl Mock {
    /// Every logit drawn between -3 and 3.
    pub fn drawn(seed: u64) -> Self {
        Self { seed, table: HashMap::new(), otherwise: None, sharpness: 1.0, max_len: None, knows_batch: false }
    }

    /// The probabilities of the end and of the words 3, 4 and 5 after each target so far, whatever the source.
    pub fn given(table: &[(&[u32], [f32; 4])]) -> Self {
        let rows = table.iter().map(|(prefix, p)| (prefix.to_vec(), row(*p)));
        Self { table: rows.collect(), ..Self::drawn(0) }
    }

    /// The same model with these probabilities after every target that the table leaves out.
    pub fn otherwise(self, p: [f32; 4]) -> Self {
        Self { otherwise: Some(row(p)), ..self }
    }

    /// The same model with drawn logits so far apart that some words are almost certain and lengthen a target for nothing.
    pub fn sharpened(self, sharpness: f64) -> Self {
        Self { sharpness, ..self }
    }

    /// The same model, which takes no more than `max_len` tokens.
    pub fn up_to(self, max_len: usize) -> Self {
        Self { max_len: Some(max_len), ..self }
    }

    /// The same model, whose logits depend on how many sentences are decoded together, as the last bits of real ones do.
    pub fn knowing_its_batch(self) -> Self {
        Self { knows_batch: true, ..self }
    }

    /// The logits after `prefix`, for a source without its end.
    pub fn logits(&self, source: &[u32], prefix: &[u32]) -> Row {
        if let Some(row) = self.table.get(prefix).or(self.otherwise.as_ref()) {
            return *row;
        }
        let mut name: Vec<String> = source.iter().map(u32::to_string).collect();
        name.push("to".to_string());
        name.extend(prefix.iter().map(u32::to_string));
        let mut rng = stream(self.seed, &name.join(" "), 0);
        std::array::from_fn(|word| {
            let logit = 6.0 * rng.unit() - 3.0;
            (if word < EOS as usize { logit } else { self.sharpness * logit }) as f32
        })
    }

    /// The log-probabilities after `prefix`.
    pub fn log_probabilities(&self, source: &[u32], prefix: &[u32]) -> [f64; VOCAB_SIZE] {
        let logits = self.logits(source, prefix).map(f64::from);
        let log_sum = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
        logits.map(|logit| logit - log_sum)
    }

    /// `hypothesis` with one more word.
    fn extended(&self, source: &[u32], hypothesis: &Hypothesis, word: u32, config: &DecodingConfig) -> Hypothesis {
        let mut next = hypothesis.clone();
        next.log_probability += self.log_probabilities(source, &hypothesis.tokens)[word as usize];
        // Wu et al. 2016, equation 14, where it starts at 5.
        let start = config.length_penalty_start;
        let length = (start + (hypothesis.tokens.len() + 1) as f64) / (start + 1.0);
        next.score = next.log_probability / length.powf(config.length_penalty);
        if word == EOS {
            next.is_complete = true;
        } else {
            next.tokens.push(word);
        }
        next
    }

    /// Every target of at most `cap` tokens, end included: the complete ones before those that were cut, best first.
    pub fn all_targets(&self, source: &[u32], prefix: &[u32], config: &DecodingConfig, cap: usize) -> Vec<Hypothesis> {
        let mut open = vec![empty()];
        let mut found = Vec::new();
        for step in 0..cap {
            let mut next = Vec::new();
            for hypothesis in open {
                for word in [EOS].into_iter().chain(WORDS) {
                    if prefix.get(step).is_some_and(|forced| *forced != word) {
                        continue;
                    }
                    let longer = self.extended(source, &hypothesis, word, config);
                    let list = if word == EOS || step + 1 == cap { &mut found } else { &mut next };
                    list.push(longer);
                }
            }
            open = next;
        }
        sort(&mut found);
        found
    }

    /// Beam search as simple as can be: nothing stops before `cap`. Of each beam the likeliest `beam_size + 1` words are looked
    /// at, one more than can stay open, since the end is one of them.
    pub fn simple_beam(&self, source: &[u32], config: &DecodingConfig, cap: usize) -> Vec<Hypothesis> {
        let mut open = vec![empty()];
        let mut finished = Vec::new();
        for step in 0..cap {
            let mut longer = Vec::new();
            for hypothesis in &open {
                let words = [EOS].into_iter().chain(WORDS);
                let mut of_beam: Vec<_> = words.map(|word| self.extended(source, hypothesis, word, config)).collect();
                of_beam.sort_by(likelier_first);
                longer.extend(of_beam.into_iter().take(config.beam_size + 1));
            }
            longer.sort_by(likelier_first);
            open = Vec::new();
            for hypothesis in longer {
                if open.len() == config.beam_size {
                    break;
                }
                let list = if hypothesis.is_complete || step + 1 == cap { &mut finished } else { &mut open };
                list.push(hypothesis);
            }
        }
        sort(&mut finished);
        finished.truncate(config.n_best);
        finished
    }
}

/// Logits from the probabilities of the end and of the words. What can never follow has a third of all probability, which
/// it must not take from the search.
fn row(p: [f32; 4]) -> Row {
    let impossible = 0.25f32.ln();
    let [end, three, four, five] = p.map(f32::ln);
    [impossible, impossible, end, three, four, five]
}

fn empty() -> Hypothesis {
    Hypothesis { tokens: Vec::new(), log_probability: 0.0, score: 0.0, is_complete: false }
}

fn likelier_first(a: &Hypothesis, b: &Hypothesis) -> Ordering {
    b.log_probability.total_cmp(&a.log_probability)
}

fn sort(hypotheses: &mut [Hypothesis]) {
    hypotheses.sort_by(|a, b| b.is_complete.cmp(&a.is_complete).then(b.score.total_cmp(&a.score)));
}

/// A list with an element for each row.
#[derive(Clone)]
pub struct Lists(Vec<Vec<u32>>);

impl Rows for Lists {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self(numbers(rows.clone()).into_iter().map(|row| self.0[row as usize].clone()).collect())
    }
}

fn numbers<const D: usize>(tensor: Tensor<D, Int>) -> Vec<u32> {
    tensor.into_data().iter::<i64>().map(|value| u32::try_from(value).expect("ids are not negative")).collect()
}

impl Autoregressive for Mock {
    /// The sources without their ends.
    type Memory = Lists;
    /// The targets so far, with the start symbol.
    type State = Lists;

    fn start(&self, memory: &Lists, n_beams: usize) -> Lists {
        Lists(vec![Vec::new(); memory.0.len() * n_beams])
    }

    fn step(&self, previous: Tensor<1, Int>, state: Lists, memory: &Lists, pass: &mut Pass) -> (Tensor<2>, Lists) {
        assert!(!pass.is_training(), "decoding drops nothing");
        let previous = numbers(previous);
        assert_eq!(previous.len(), state.0.len(), "a word for each row");
        let n_beams = state.0.len() / memory.0.len();
        let mut state = state.0;
        let mut logits = Vec::new();
        for (row, (target, word)) in state.iter_mut().zip(previous).enumerate() {
            target.push(word);
            assert_eq!(target[0], BOS, "a target begins with the start symbol");
            assert!(self.max_len.is_none_or(|max_len| target.len() <= max_len), "longer than the model can take");
            logits.extend(self.logits(&memory.0[row / n_beams], &target[1..]));
        }
        let shape = [state.len(), VOCAB_SIZE];
        (Tensor::from_data(TensorData::new(logits, shape), &self.device()), Lists(state))
    }

    fn limits(&self) -> LengthLimits {
        let limit = self.max_len.map(|len| LengthLimit { len, key: "max_len" });
        LengthLimits { source: limit, target: limit }
    }

    fn device(&self) -> Device {
        flex()
    }
}

impl Seq2Seq for Mock {
    fn encode(&self, source: &Padded, pass: &mut Pass) -> Lists {
        assert!(!pass.is_training(), "decoding drops nothing");
        let ids = numbers(source.ids.clone());
        let rows = ids.chunks(source.len()).zip(&source.lengths).map(|(row, len)| {
            assert_eq!(row[len - 1], EOS, "a source ends with its end symbol");
            assert!(row[*len..].iter().all(|id| *id == PAD), "what follows is padding");
            assert!(*len > 1, "an empty source has entered the model");
            row[..len - 1].to_vec()
        });
        let mut memory: Vec<Vec<u32>> = rows.collect();
        let n_sentences = memory.len() as u32;
        memory.iter_mut().for_each(|source| source.extend(self.knows_batch.then_some(n_sentences)));
        Lists(memory)
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        let memory = self.encode(source, pass);
        let len = target_input.len();
        let ids = numbers(target_input.ids.clone());
        let mut logits = Vec::new();
        for (row, source) in memory.0.iter().enumerate() {
            let target = &ids[row * len..(row + 1) * len];
            logits.extend((0..len).flat_map(|t| self.logits(source, &target[1..t + 1])));
        }
        Tensor::from_data(TensorData::new(logits, [memory.0.len(), len, VOCAB_SIZE]), &self.device())
    }
}
