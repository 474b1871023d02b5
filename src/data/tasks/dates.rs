//! Dates as people write them in English, into ISO 8601 (`yyyy-mm-dd`).
//!
//! The month is a name wherever day and month could be confused, so every source has one right answer. Two-digit years
//! follow the rule of POSIX: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068; other years are always written in
//! full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{Pair, Rng};
use crate::error::{Error, Result};

/// Settings of the date task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DatesConfig {
    /// First year, in the Gregorian calendar, from 1600.
    pub first_year: u32,
    /// Last year, up to 2999. Every day from the first year to this one is equally likely.
    pub last_year: u32,
}

impl Default for DatesConfig {
    fn default() -> Self {
        Self { first_year: 1900, last_year: 2099 }
    }
}

impl DatesConfig {
    pub(super) fn validate(&self) -> Result<()> {
        if !(1600..=2999).contains(&self.first_year) {
            let message = format!("must lie in 1600..=2999, got {}", self.first_year);
            return Err(Error::config("data.task.first_year", message));
        }
        if !(self.first_year..=2999).contains(&self.last_year) {
            let message = format!("must lie in first_year = {}..=2999, got {}", self.first_year, self.last_year);
            return Err(Error::config("data.task.last_year", message));
        }
        Ok(())
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const ORDINALS: [&str; 31] = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twenty-first",
    "twenty-second",
    "twenty-third",
    "twenty-fourth",
    "twenty-fifth",
    "twenty-sixth",
    "twenty-seventh",
    "twenty-eighth",
    "twenty-ninth",
    "thirtieth",
    "thirty-first",
];

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy)]
struct Date {
    year: u32,
    /// 1 to 12.
    month: usize,
    /// 1 to 31.
    day: usize,
    /// 0 is Monday.
    weekday: usize,
}

impl Date {
    /// Every day of the years is equally likely.
    fn random(config: &DatesConfig, rng: &mut Rng) -> Self {
        let first = days_before(config.first_year);
        let days = first + rng.below(days_before(config.last_year + 1) - first);
        let mut year = config.first_year;
        while days_before(year + 1) <= days {
            year += 1;
        }
        let mut rest = (days - days_before(year)) as usize;
        let mut month = 1;
        while rest >= days_in(month, year) {
            rest -= days_in(month, year);
            month += 1;
        }
        // 1 January of the year 1 was a Monday.
        Self { year, month, day: rest + 1, weekday: (days % 7) as usize }
    }
}

/// Days from 1 January of the year 1 to 1 January of `year`.
fn days_before(year: u32) -> u64 {
    let past = u64::from(year) - 1;
    past * 365 + past / 4 - past / 100 + past / 400
}

fn days_in(month: usize, year: u32) -> usize {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// One random pair.
pub(super) fn draw(config: &DatesConfig, rng: &mut Rng) -> Pair {
    let date = Date::random(config, rng);
    let spelt = spell(date, rng);
    let source = match rng.below(8) {
        0 => spelt.to_lowercase(),
        1 => spelt.to_uppercase(),
        _ => spelt,
    };
    Pair::new(source, format!("{:04}-{:02}-{:02}", date.year, date.month, date.day))
}

/// A date in one of many spellings.
fn spell(date: Date, rng: &mut Rng) -> String {
    let Date { year, month, day, .. } = date;
    let weekday = weekday(date, rng);
    let name = month_name(date, rng);
    let short = &MONTHS[month - 1][..3];
    let short_year = if (1969..=2068).contains(&year) { format!("{:02}", year % 100) } else { year.to_string() };
    let comma = *rng.pick(&["", ","]);
    match rng.below(12) {
        0 | 1 => format!("{weekday}{} {name}{comma} {year}", day_number(day, rng)),
        2 | 3 => format!("{weekday}{name} {}{comma} {year}", day_number(day, rng)),
        4 => format!("{weekday}the {} of {name}{comma} {year}", ordinal(day, rng)),
        5 => format!("{weekday}{name} the {}{comma} {year}", ordinal(day, rng)),
        6 => format!("{weekday}{name} {}{comma} {year}", ORDINALS[day - 1]),
        7 => format!(
            "{weekday}{} {name} {}{short_year}",
            day_number(day, rng),
            if short_year.len() == 2 { "'" } else { "" }
        ),
        8 => {
            let separator = rng.pick(&["-", "/", "."]);
            format!("{day:02}{separator}{short}{separator}{}", rng.pick(&[year.to_string(), short_year]))
        }
        9 => format!("{year} {name} {}", day_number(day, rng)),
        10 => {
            let separator = rng.pick(&["/", ".", " ", ""]);
            format!("{year}{separator}{month:02}{separator}{day:02}")
        }
        _ => format!("{weekday}{name} {day}, {short_year}"),
    }
}

/// `5`, `05` or `5th`.
fn day_number(day: usize, rng: &mut Rng) -> String {
    match rng.below(3) {
        0 => day.to_string(),
        1 => format!("{day:02}"),
        _ => with_suffix(day),
    }
}

/// `5th` or `fifth`.
fn ordinal(day: usize, rng: &mut Rng) -> String {
    if rng.below(2) == 0 { with_suffix(day) } else { ORDINALS[day - 1].to_owned() }
}

fn with_suffix(day: usize) -> String {
    let suffix = match day {
        11..=13 => "th",
        _ if day % 10 == 1 => "st",
        _ if day % 10 == 2 => "nd",
        _ if day % 10 == 3 => "rd",
        _ => "th",
    };
    format!("{day}{suffix}")
}

/// `March`, `Mar` or `Mar.`; September is also `Sept`, and May has nothing to shorten.
fn month_name(date: Date, rng: &mut Rng) -> String {
    let full = MONTHS[date.month - 1];
    let short = if date.month == 9 && rng.below(2) == 0 { "Sept" } else { &full[..3] };
    match rng.below(4) {
        0 => short.to_owned(),
        1 if full != short => format!("{short}."),
        _ => full.to_owned(),
    }
}

/// Nothing, more often than not, or the right weekday in front: `Tuesday, `, `Tue `, `on Tuesday `.
fn weekday(date: Date, rng: &mut Rng) -> String {
    let full = WEEKDAYS[date.weekday];
    let short = &full[..3];
    match rng.below(10) {
        0 => format!("{full}, "),
        1 => format!("{full} "),
        2 => format!("{short} "),
        3 => format!("{short}, "),
        4 => format!("on {full}, "),
        _ => String::new(),
    }
}
