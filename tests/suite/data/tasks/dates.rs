//! Dates in words and in digits.

use lookback::data::tasks::DatesConfig;
use lookback::data::{Split, TaskConfig};
use std::collections::BTreeSet;

/// What an independent reading of a date in words finds: year, month, day, and the weekday where one is named.
fn read_date(source: &str) -> (u32, u32, u32, Option<u32>) {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    const ORDINALS: &str = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth \
                            thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth \
                            twenty-first twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth \
                            twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first";
    let lower = source.to_lowercase();
    if lower.len() == 8 && lower.bytes().all(|b| b.is_ascii_digit()) {
        return (lower[..4].parse().unwrap(), lower[4..6].parse().unwrap(), lower[6..].parse().unwrap(), None);
    }
    let (mut month, mut weekday, mut spelt_day, mut numbers) = (None, None, None, Vec::new());
    let separated = regex::Regex::new(r"[ ,./']+|\b-\b").unwrap();
    let mut rest = lower.clone();
    for (day, ordinal) in (1..).zip(ORDINALS.split_whitespace()).collect::<Vec<(u32, &str)>>().into_iter().rev() {
        if spelt_day.is_none() && rest.contains(ordinal) {
            spelt_day = Some(day);
            rest = rest.replace(ordinal, " ");
        }
    }
    for word in separated.split(&rest).filter(|word| !["", "the", "of", "on"].contains(word)) {
        let index = |names: &[&str]| names.iter().position(|name| word.starts_with(name)).map(|at| at as u32);
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if !digits.is_empty() {
            let suffix = match digits.parse().unwrap() {
                1 | 21 | 31 => "st",
                2 | 22 => "nd",
                3 | 23 => "rd",
                _ => "th",
            };
            assert!(digits == word || word.strip_prefix(digits) == Some(suffix), "{source}");
            numbers.push((digits.len(), digits.parse::<u32>().unwrap()));
        } else if let Some(at) = index(&MONTHS) {
            month = Some(at + 1);
        } else {
            weekday = Some(index(&WEEKDAYS).unwrap_or_else(|| panic!("`{word}` in `{source}`")));
        }
    }
    let full_year = numbers.iter().position(|&(digits, _)| digits == 4).map(|at| numbers.remove(at).1);
    let mut numbers = numbers.into_iter().map(|(_, number)| number);
    let month = month.unwrap_or_else(|| numbers.next().unwrap());
    let day = spelt_day.unwrap_or_else(|| numbers.next().unwrap());
    let year = full_year.unwrap_or_else(|| {
        let short = numbers.next().unwrap();
        if short >= 69 { 1900 + short } else { 2000 + short }
    });
    assert_eq!(numbers.next(), None, "{source}");
    (year, month, day, weekday)
}

/// The day of the week, 0 for Monday, by Sakamoto's method.
fn day_of_week(year: u32, month: u32, day: u32) -> u32 {
    const SHIFT: [u32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let year = if month < 3 { year - 1 } else { year };
    (year + year / 4 - year / 100 + year / 400 + SHIFT[month as usize - 1] + day + 6) % 7
}

#[test]
fn dates_are_right_and_weekdays_match() {
    let mut weekdays = BTreeSet::new();
    for pair in TaskConfig::from_name("dates").unwrap().generate(Split::Train, 4000, 6).unwrap() {
        let (year, month, day, weekday) = read_date(&pair.source);
        assert_eq!(pair.target, format!("{year:04}-{month:02}-{day:02}"), "{}", pair.source);
        assert!((1900..=2099).contains(&year));
        if let Some(weekday) = weekday {
            assert_eq!(weekday, day_of_week(year, month, day), "{}", pair.source);
            weekdays.insert(weekday);
        }
    }
    assert_eq!(weekdays.len(), 7);
}

#[test]
fn days_do_not_leave_the_calendar() {
    let days = |first_year, last_year| -> BTreeSet<String> {
        let task = TaskConfig::Dates(DatesConfig { first_year, last_year });
        task.generate(Split::Train, 6000, 1).unwrap().into_iter().map(|pair| pair.target).collect()
    };
    let leap = days(2024, 2024);
    assert_eq!(leap.len(), 366);
    assert!(
        leap.contains("2024-02-29") && leap.first().unwrap() == "2024-01-01" && leap.last().unwrap() == "2024-12-31"
    );
    assert_eq!(days(1900, 1900).len(), 365, "1900 was no leap year");
    assert_eq!(days(2000, 2000).len(), 366, "2000 was one");
}

#[test]
fn dates_are_spelt_in_many_ways() {
    let task = TaskConfig::Dates(DatesConfig { first_year: 2021, last_year: 2021 });
    let pairs = task.generate(Split::Train, 20_000, 1).unwrap();
    let one_day: BTreeSet<&str> =
        pairs.iter().filter(|pair| pair.target == "2021-09-03").map(|pair| pair.source.as_str()).collect();
    assert!(one_day.len() > 30, "{one_day:?}");
    for part in ["Sept", "3rd", "third", "'21", "03-Sep", "on ", "SEP", "2021 ", ", 2021"] {
        assert!(pairs.iter().any(|pair| pair.target.starts_with("2021-09-03") && pair.source.contains(part)), "{part}");
    }
}
