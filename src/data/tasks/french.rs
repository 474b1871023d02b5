//! French number words in both orthographies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest number that can be spelt.
pub(super) const LARGEST: u64 = 999_999_999_999;

/// The two French ways to write compound numbers.
///
/// They differ in hyphens alone; `-s` follows the same rules in both: `cent` and `vingt` take it when they are
/// multiplied and nothing but a noun follows (`quatre-vingts`, `deux cents millions`, but `quatre-vingt mille`, `deux
/// cent un`), `mille` never does, and the nouns `million` and `milliard` do like any noun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spelling {
    /// The rectifications of 1990: hyphens between all elements, `vingt-et-un`, `deux-cent-mille`. The text of 1990
    /// speaks of compound numerals, and whether the nouns `million` and `milliard` belong to them is disputed; here
    /// they take hyphens as well (`deux-millions-cent`), as most current guides apply it.
    #[serde(rename = "reformed-1990")]
    Reformed1990,
    /// Before 1990: hyphens only inside numbers below 100, and not around `et`: `vingt et un`, `deux cent mille`.
    Traditional,
}

const BELOW_17: [&str; 17] = [
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze", "treize",
    "quatorze", "quinze", "seize",
];
const TENS: [&str; 7] = ["", "dix", "vingt", "trente", "quarante", "cinquante", "soixante"];

/// Whether `cent` and `vingt` may take their `-s`: not when a numeral follows, `mille` included.
#[derive(Clone, Copy, PartialEq)]
enum Follows {
    Numeral,
    NounOrNothing,
}

/// A number in French words, as in France (`soixante-dix`, `quatre-vingts`, `quatre-vingt-dix`).
///
/// # Panics
///
/// Above 999 999 999 999.
pub fn french(number: u64, spelling: Spelling) -> String {
    assert!(number <= LARGEST, "french: {number} is above {LARGEST}");
    let separator = match spelling {
        Spelling::Reformed1990 => "-",
        Spelling::Traditional => " ",
    };
    if number == 0 {
        return BELOW_17[0].to_owned();
    }
    let mut parts = Vec::new();
    for (size, noun) in [(1_000_000_000, "milliard"), (1_000_000, "million")] {
        let count = number / size % 1000;
        if count > 0 {
            parts.push(below_1000(count, Follows::NounOrNothing, separator));
            parts.push(format!("{noun}{}", if count > 1 { "s" } else { "" }));
        }
    }
    let thousands = number / 1000 % 1000;
    if thousands > 1 {
        parts.push(below_1000(thousands, Follows::Numeral, separator));
    }
    if thousands > 0 {
        parts.push("mille".to_owned());
    }
    let rest = number % 1000;
    if rest > 0 {
        parts.push(below_1000(rest, Follows::NounOrNothing, separator));
    }
    parts.join(separator)
}

/// 1 to 999.
fn below_1000(number: u64, follows: Follows, separator: &str) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    let plural = if hundreds > 1 && rest == 0 && follows == Follows::NounOrNothing { "s" } else { "" };
    let mut parts = Vec::new();
    if hundreds > 1 {
        parts.push(BELOW_17[hundreds as usize].to_owned());
    }
    if hundreds > 0 {
        parts.push(format!("cent{plural}"));
    }
    if rest > 0 {
        parts.push(below_100(rest, follows, separator));
    }
    parts.join(separator)
}

/// 1 to 99. Those in the seventies and nineties count on from sixty and eighty, so the unit runs up to 19.
fn below_100(number: u64, follows: Follows, separator: &str) -> String {
    if number < 17 {
        return BELOW_17[number as usize].to_owned();
    }
    let (base, unit) = match number {
        80.. => (80, number - 80),
        60.. => (60, number - 60),
        _ => (number / 10 * 10, number % 10),
    };
    match (base, unit) {
        (80, 0) if follows == Follows::NounOrNothing => "quatre-vingts".to_owned(),
        (80, 0) => "quatre-vingt".to_owned(),
        (80, _) => format!("quatre-vingt-{}", below_100(unit, follows, separator)),
        (_, 0) => TENS[(base / 10) as usize].to_owned(),
        (20.., 1 | 11) => {
            format!("{}{separator}et{separator}{}", TENS[(base / 10) as usize], below_100(unit, follows, separator))
        }
        _ => format!("{}-{}", TENS[(base / 10) as usize], below_100(unit, follows, separator)),
    }
}
