//! `lookback attend`.

use super::explain::look;
use super::output::print_json;
use super::print;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::layers::attention::ScoreConfig;
use crate::report::explanation::by_hand::{ByHand, Matrix};
use crate::report::explanation::terminal::render_step;
use crate::report::explanation::{AttentionRow, Formula};
use clap::{ArgGroup, Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("looks").required(true))]
#[command(after_help = "Vectors are numbers with commas between them, matrices are rows with semicolons between them.

Examples:
  lookback attend --query 10,5,10 --keys '0,1,1;5,0,1;1,1,0;0,5,1'            a decoder's look
  lookback attend --query 10,5,10 --keys '0,1,1;5,0,1;1,1,0;0,5,1' --score cosine
  lookback attend --query 10,5,10 --keys '0,1,1;5,0,1;1,1,0;0,5,1' --score scaled-dot
  lookback attend --query 1,0 --keys '1,0;0,1' --values '3;7'                 separate values
  lookback attend --sequence '1,0;0,1;1,1'                                    X X^T
  lookback attend --sequence '1,0;0,1;1,1' --causal --score scaled-dot --query-matrix '0,1;1,0'")]
pub(super) struct AttendArgs {
    /// One query, or several, each a step.
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true, group = "looks", requires = "keys")]
    query: Option<Matrix>,
    /// What the queries are compared with.
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true, requires = "query")]
    keys: Option<Matrix>,
    /// What is averaged [default: the keys].
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true, conflicts_with = "sequence")]
    values: Option<Matrix>,
    /// A sequence that looks at itself: its rows are queries, keys and values.
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true, group = "looks", conflicts_with = "keys")]
    sequence: Option<Matrix>,
    /// Hide from each position of the sequence those behind it.
    #[arg(long, requires = "sequence", conflicts_with_all = ["query", "keys"])]
    causal: bool,
    /// How a query is compared with a key.
    #[arg(long, value_enum, default_value_t = ScoreName::Dot)]
    score: ScoreName,
    /// What the queries are multiplied with: W^Q, a row for each number that comes out [default: nothing].
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true)]
    query_matrix: Option<Matrix>,
    /// What the keys are multiplied with, W^K.
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true)]
    key_matrix: Option<Matrix>,
    /// What the values are multiplied with, W^V.
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true)]
    value_matrix: Option<Matrix>,
    /// W of the scores `general` and `additive` [default: ones on the diagonal].
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true)]
    score_matrix: Option<Matrix>,
    /// U of the score `additive` [default: ones on the diagonal].
    #[arg(long, value_name = "ROWS", value_parser = matrix, allow_hyphen_values = true)]
    score_key_matrix: Option<Matrix>,
    /// v of the score `additive` [default: ones].
    #[arg(long, value_name = "NUMBERS", value_parser = matrix, allow_hyphen_values = true)]
    score_vector: Option<Matrix>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A score that fits on paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScoreName {
    /// q . k
    Dot,
    /// q . k / sqrt(d)
    ScaledDot,
    /// The cosine of the angle between q and k.
    Cosine,
    /// q^T W k
    General,
    /// v . tanh(W q + U k)
    Additive,
}

impl ScoreName {
    fn config(self) -> ScoreConfig {
        match self {
            Self::Dot => ScoreConfig::Dot {},
            Self::ScaledDot => ScoreConfig::ScaledDot {},
            Self::Cosine => ScoreConfig::Cosine {},
            Self::General => ScoreConfig::General {},
            Self::Additive => ScoreConfig::Additive { d_attention: 0 },
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }
}

/// The largest number: the product of three, as in q^T W k, is far from the largest of 32 bits.
const LARGEST: f64 = 1e9;

/// Rows of numbers, all as long.
fn matrix(text: &str) -> Result<Matrix, String> {
    let mut rows = Vec::new();
    // The last row may end as the others do.
    for (i, row) in text.trim().split_terminator(';').map(str::trim).enumerate() {
        if row.is_empty() {
            return Err(format!("row {} is empty", i + 1));
        }
        let numbers = row.split(',').map(|number| {
            let number = number.trim();
            match number.parse::<f64>().ok().filter(|value| value.is_finite()) {
                None => Err(format!("row {}: \"{number}\" is no number", i + 1)),
                Some(value) if value.abs() > LARGEST => {
                    Err(format!("row {}: {number} is not between -{LARGEST:e} and {LARGEST:e}", i + 1))
                }
                Some(_) => Ok(number.parse::<f32>().expect("a number with 64 bits is one with 32")),
            }
        });
        rows.push(numbers.collect::<Result<Vec<f32>, String>>()?);
    }
    let width = rows.first().map(Vec::len).ok_or("there are no numbers; write them as in 1,0;0,1")?;
    if let Some(i) = rows.iter().position(|row| row.len() != width) {
        return Err(format!("row {} has {} numbers, and row 1 has {width}", i + 1, rows[i].len()));
    }
    Ok(Matrix { width, values: rows.concat() })
}

pub(super) fn run(args: AttendArgs) -> Result<()> {
    for (name, is_given, scores) in [
        ("--score-matrix", args.score_matrix.is_some(), &[ScoreName::General, ScoreName::Additive][..]),
        ("--score-key-matrix", args.score_key_matrix.is_some(), &[ScoreName::Additive]),
        ("--score-vector", args.score_vector.is_some(), &[ScoreName::Additive]),
    ] {
        if is_given && !scores.contains(&args.score) {
            return Err(Error::message(format!(
                "{name} has no place in the score \"{}\"; leave it out",
                args.score.name()
            )));
        }
    }
    if args.score_vector.as_ref().is_some_and(|vector| vector.n_rows() != 1) {
        return Err(Error::message("--score-vector is one row of numbers"));
    }
    let is_self = args.sequence.is_some();
    let (Some(queries), Some(keys)) = (args.query.or_else(|| args.sequence.clone()), args.keys.or(args.sequence))
    else {
        return Err(Error::message("give --query and --keys, or --sequence"));
    };
    let by_hand = ByHand {
        queries,
        keys,
        values: args.values,
        is_self,
        is_causal: args.causal,
        projections: [args.query_matrix, args.key_matrix, args.value_matrix],
        score: args.score.config(),
        score_matrix: args.score_matrix,
        key_matrix: args.score_key_matrix,
        vector: args.score_vector.map(|vector| vector.values),
    };
    // A few numbers; the backend that needs no device.
    let explanation = by_hand.explain(&Backend::Flex.open()?.device)?;
    if args.json {
        let rows = explanation.steps.iter().flat_map(|step| &step.attention);
        let attended = Attended {
            score: args.score.name().to_owned(),
            keys: explanation.memories.first().map(|memory| memory.keys.clone()),
            values: explanation.memories.first().map(|memory| memory.values.clone()),
            queries: rows.map(AttendedQuery::of).collect(),
            formulas: explanation.mechanism.formulas,
        };
        return print_json(&attended);
    }
    let look = look();
    let pages = explanation.steps.iter().map(|step| render_step(&explanation, step, &look));
    print(pages.collect::<Vec<_>>().concat().trim_start_matches('\n'))
}

/// What `lookback attend --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "lookback attend --json")]
pub(super) struct Attended {
    /// The score function.
    score: String,
    /// The lines of the computation.
    formulas: Vec<Formula>,
    /// What is compared with the queries, one vector for each position.
    keys: Option<Vec<Vec<f32>>>,
    /// What is averaged, one vector for each position.
    values: Option<Vec<Vec<f32>>>,
    queries: Vec<AttendedQuery>,
}

/// One query: its scores, its weights and its context.
#[derive(Serialize, JsonSchema)]
struct AttendedQuery {
    /// Which one, from 1.
    step: usize,
    query: Vec<f32>,
    /// One for each key.
    scores: Vec<f32>,
    /// The softmax of the scores.
    weights: Vec<f32>,
    /// The weighted sum of the values.
    context: Vec<f32>,
}

impl AttendedQuery {
    fn of(row: &AttentionRow) -> Self {
        let AttentionRow { step, query, scores, weights, context, .. } = row.clone();
        Self { step, query, scores, weights, context }
    }
}
