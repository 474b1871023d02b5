//! English number words into French ones: a small translation task whose rules are known and whose lengths can be
//! chosen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::french::{self, LARGEST, Spelling};
use super::validate_lengths;
use crate::data::{Pair, Rng};
use crate::error::{Error, Result};

/// The longest allowed list.
const LONGEST: usize = 10_000;
/// Stands between the numbers of a list, in both languages.
const SEPARATOR: &str = " , ";

/// Settings of the number task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NumbersConfig {
    /// Largest number, at most 999999999999. Every count of digits is equally likely, then every number with that many
    /// digits.
    pub max_value: u64,
    /// Fewest numbers in a source, at least 1. Every count up to `max_len` is equally likely.
    pub min_len: usize,
    /// Most numbers in a source, a list separated by commas.
    pub max_len: usize,
    /// Which of the two French orthographies to write.
    pub spelling: Spelling,
}

impl Default for NumbersConfig {
    fn default() -> Self {
        Self { max_value: LARGEST, min_len: 1, max_len: 3, spelling: Spelling::Reformed1990 }
    }
}

impl NumbersConfig {
    pub(super) fn validate(&self) -> Result<()> {
        if self.max_value > LARGEST {
            let message = format!("must be at most {LARGEST}, got {}", self.max_value);
            return Err(Error::config("data.task.max_value", message));
        }
        validate_lengths(self.min_len, self.max_len, LONGEST, "numbers")
    }

    fn number(&self, rng: &mut Rng) -> u64 {
        let n_digits = 1 + rng.below(self.max_value.checked_ilog10().map_or(1, |log| u64::from(log) + 1));
        let high = 10u64.pow(n_digits as u32).min(self.max_value + 1);
        let low = if n_digits == 1 { 0 } else { 10u64.pow(n_digits as u32 - 1) };
        low + rng.below(high - low)
    }
}

/// One random pair.
pub(super) fn draw(config: &NumbersConfig, rng: &mut Rng) -> Pair {
    let n = rng.between(config.min_len, config.max_len);
    let numbers: Vec<u64> = (0..n).map(|_| config.number(rng)).collect();
    let spell =
        |word: &dyn Fn(u64) -> String| numbers.iter().map(|&number| word(number)).collect::<Vec<_>>().join(SEPARATOR);
    Pair::new(spell(&english), spell(&|number| french::french(number, config.spelling)))
}

const BELOW_20: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// A number in English words, the American way: a hyphen in `twenty-one`, no `and`, no commas.
///
/// # Panics
///
/// Above 999 999 999 999.
pub fn english(number: u64) -> String {
    assert!(number <= LARGEST, "english: {number} is above {LARGEST}");
    if number < 20 {
        return BELOW_20[number as usize].to_owned();
    }
    if number < 100 {
        let (tens, unit) = (TENS[(number / 10) as usize], number % 10);
        return if unit == 0 { tens.to_owned() } else { format!("{tens}-{}", english(unit)) };
    }
    let scales = [(1_000_000_000, "billion"), (1_000_000, "million"), (1_000, "thousand"), (100, "hundred")];
    let (size, name) = scales.into_iter().find(|&(size, _)| number >= size).expect("at least one hundred");
    let (head, rest) = (format!("{} {name}", english(number / size)), number % size);
    if rest == 0 { head } else { format!("{head} {}", english(rest)) }
}
