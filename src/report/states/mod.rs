//! What a model makes of sentences: one vector for each, one for each token, and where they lie in the plane.

pub mod html;
pub mod nearest;
pub mod pca;
pub mod scatter;
pub mod words;

use crate::data::Tokenizers;
use crate::data::batch::Padded;
use crate::data::text::line_ids;
use crate::data::tokenizer::{EOS, Tokenizer};
use crate::layers::{Pass, Trace};
use crate::models::Seq2Seq;
use pca::{Projection, project};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;

/// A sentence to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Labelled {
    /// The number of its line, counted from 1.
    pub number: usize,
    /// What it is coloured by, if anything.
    pub label: Option<String>,
    /// The sentence.
    pub text: String,
}

impl Labelled {
    /// A line of a file: `sentence`, or `label TAB sentence`.
    pub fn parse(number: usize, line: &str) -> Self {
        match line.split_once('\t') {
            Some((label, text)) => {
                Self { number, label: Some(label.trim().to_string()), text: text.trim().to_string() }
            }
            None => Self { number, label: None, text: line.trim().to_string() },
        }
    }
}

/// What the encoder, or a language model, makes of one sentence.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SentenceStates {
    /// The sentence.
    #[serde(flatten)]
    pub sentence: Labelled,
    /// Its tokens, the end symbol last.
    pub tokens: Vec<String>,
    /// The vector of the whole.
    pub vector: Vec<f32>,
    /// The vector of each token.
    pub states: Vec<Vec<f32>>,
}

/// What the vector of a sentence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VectorKind {
    /// The encoder's last real state, the fixed context of recurrent models.
    LastState,
    /// The mean of the encoder's outputs.
    MeanOfMemory,
    /// The mean of a language model's outputs: its last one only says what may begin the next line.
    MeanOfStates,
}

impl VectorKind {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::LastState => "the encoder's last state",
            Self::MeanOfMemory => "the mean of the encoder's states",
            Self::MeanOfStates => "the mean of the last layer's states",
        }
    }
}

/// Runs the encoder over each sentence.
pub fn collect<M: Seq2Seq>(
    model: &M,
    tokenizers: &Tokenizers,
    sentences: &[Labelled],
) -> (Vec<SentenceStates>, VectorKind) {
    let mut kind = VectorKind::MeanOfMemory;
    let states = sentences.iter().map(|sentence| {
        let mut ids = tokenizers.source().encode(&sentence.text);
        ids.push(EOS);
        let (states, context) = read(model, &ids);
        if context.is_some() {
            kind = VectorKind::LastState;
        }
        let vector = context.unwrap_or_else(|| mean(&states));
        SentenceStates { sentence: sentence.clone(), tokens: labels(tokenizers.source(), &ids), vector, states }
    });
    (states.collect(), kind)
}

/// Runs a language model over each line with its end, as a text that begins there. The state of a token is what the model has
/// after it: what the next token is predicted from. The `</s>` before the first word has the same state in every text and is left
/// out.
pub fn collect_texts<M: Seq2Seq>(
    model: &M,
    tokenizer: &Tokenizer,
    lines: &[Labelled],
) -> (Vec<SentenceStates>, VectorKind) {
    let states = lines.iter().map(|line| {
        let ids = line_ids(&line.text, tokenizer);
        let (mut states, _) = read(model, &ids);
        let n_left_out = usize::from(ids[0] == EOS);
        states.drain(..n_left_out);
        let tokens = labels(tokenizer, &ids[n_left_out..]);
        SentenceStates { sentence: line.clone(), tokens, vector: mean(&states), states }
    });
    (states.collect(), VectorKind::MeanOfStates)
}

/// The output at every token, and the one vector of models that have one.
fn read<M: Seq2Seq>(model: &M, ids: &[u32]) -> (Vec<Vec<f32>>, Option<Vec<f32>>) {
    let mut trace = Trace::of(|name| name == "encoder.output" || name == "encoder.context");
    model.encode(&Padded::new(&[ids.to_vec()], 0, &model.device()), &mut Pass::traced(&mut trace));
    let output = trace.get("encoder.output").expect("every encoder records its output");
    let states = output.values.chunks(output.shape[2]).map(<[f32]>::to_vec).collect();
    (states, trace.get("encoder.context").map(|context| context.values.clone()))
}

fn labels(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|id| tokenizer.label(*id)).collect()
}

fn mean(vectors: &[Vec<f32>]) -> Vec<f32> {
    let mut mean = vec![0.0; vectors[0].len()];
    for vector in vectors {
        mean.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value / vectors.len() as f32);
    }
    mean
}

/// A point of the picture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// The place along the two directions of most variance.
    pub at: [f64; 2],
    /// The sentence, counted from 0.
    pub sentence: usize,
    /// The token that it stands for; the whole sentence if there is none.
    pub token: Option<String>,
}

/// Sentences or tokens in the plane.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Map {
    /// The points.
    pub points: Vec<Point>,
    /// The part of the variance that each of the two directions holds.
    pub explained: [f64; 2],
}

/// Where the sentences lie.
pub fn sentence_map(states: &[SentenceStates]) -> Map {
    let vectors: Vec<&[f32]> = states.iter().map(|state| &state.vector[..]).collect();
    let Projection { points, explained } = project(&vectors);
    let points = points.into_iter().enumerate().map(|(sentence, at)| Point { at, sentence, token: None });
    Map { points: points.collect(), explained }
}

/// Where the tokens lie, each in its sentence.
pub fn token_map(states: &[SentenceStates]) -> Map {
    let vectors: Vec<&[f32]> = states.iter().flat_map(|state| state.states.iter().map(|vector| &vector[..])).collect();
    let Projection { points, explained } = project(&vectors);
    let owners = states.iter().enumerate().flat_map(|(i, state)| state.tokens.iter().map(move |token| (i, token)));
    let point = |(at, (sentence, token)): (_, (usize, &String))| Point { at, sentence, token: Some(token.clone()) };
    Map { points: points.into_iter().zip(owners).map(point).collect(), explained }
}

/// Whether sentences of one label lie together, in all dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Grouping {
    /// Mean cosine of two sentences with the same label.
    pub within: f64,
    /// Mean cosine of two sentences with different labels.
    pub between: f64,
    /// How often the nearest other sentence, by cosine, has the same label, among sentences whose label is not alone.
    pub nearest_is_same: f64,
    /// What that would be if the nearest were any other sentence.
    pub by_chance: f64,
}

/// The numbers of a labelled set; the mean vector is taken off first, since all sentences share most of it. None without
/// labels that occur twice.
pub fn grouping(states: &[SentenceStates]) -> Option<Grouping> {
    let labels: Vec<Option<&str>> = states.iter().map(|state| state.sentence.label.as_deref()).collect();
    let n = states.len();
    let same = |i: usize, j: usize| i != j && labels[i].is_some() && labels[i] == labels[j];
    let mut seen = HashSet::new();
    if labels.iter().flatten().all(|label| seen.insert(*label)) {
        return None;
    }
    let moved = nearest::centred(&states.iter().map(|state| &state.vector[..]).collect::<Vec<_>>());
    // Of each sentence, what it is to all others; they are many, and only their sums are kept.
    let of_sentence = |i: usize| {
        let mut own = OfSentence::default();
        let mut nearest = (f64::NEG_INFINITY, None);
        for j in (0..n).filter(|j| *j != i) {
            let cosine = words::cosine(&moved[i], &moved[j]);
            if same(i, j) {
                own.within.add(cosine);
            } else if labels[i].is_some() && labels[j].is_some() {
                own.between.add(cosine);
            }
            if nearest.1.is_none() || cosine > nearest.0 {
                nearest = (cosine, Some(j));
            }
        }
        own.is_hit = nearest.1.is_some_and(|j| same(i, j));
        own
    };
    let all: Vec<OfSentence> = (0..n).into_par_iter().map(of_sentence).collect();
    let sum = |of: fn(&OfSentence) -> Sum| all.iter().map(of).fold(Sum::default(), Sum::with);
    let related = || all.iter().filter(|own| own.within.n > 0);
    let n_related = related().count() as f64;
    Some(Grouping {
        within: sum(|own| own.within).mean(),
        between: sum(|own| own.between).mean(),
        nearest_is_same: related().filter(|own| own.is_hit).count() as f64 / n_related,
        by_chance: related().map(|own| own.within.n as f64 / (n - 1) as f64).sum::<f64>() / n_related,
    })
}

/// What a labelled sentence is to all others.
#[derive(Default)]
struct OfSentence {
    within: Sum,
    between: Sum,
    /// Whether the nearest has the same label.
    is_hit: bool,
}

/// Numbers of which the mean is wanted.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    n: usize,
}

impl Sum {
    fn add(&mut self, value: f64) {
        *self = self.with(Self { sum: value, n: 1 });
    }

    fn with(self, other: Self) -> Self {
        Self { sum: self.sum + other.sum, n: self.n + other.n }
    }

    /// 0 of none.
    fn mean(self) -> f64 {
        self.sum / self.n.max(1) as f64
    }
}
