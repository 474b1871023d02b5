//! Generated tasks: right answers, disjoint splits, determinism, and refused settings.

use std::collections::{BTreeSet, HashSet};

use lookback::data::tasks::{
    ArithmeticConfig, DatesConfig, DepthConfig, NextValueConfig, NumbersConfig, ParityConfig, RecallConfig,
    SelectiveCopyConfig, Spelling, SymbolsConfig, english, french,
};
use lookback::data::{Pair, Split, TaskConfig};

/// Every task with its default settings.
fn every_task() -> Vec<TaskConfig> {
    TaskConfig::TASKS.iter().map(|(name, _)| TaskConfig::from_name(name).unwrap()).collect()
}

fn symbols(n_symbols: usize, min_len: usize, max_len: usize) -> SymbolsConfig {
    SymbolsConfig { n_symbols, min_len, max_len }
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn the_same_seed_gives_the_same_pairs_and_another_seed_others() {
    for task in every_task() {
        let pairs = task.generate(Split::Train, 50, 11).unwrap();
        assert_eq!(pairs, task.generate(Split::Train, 50, 11).unwrap());
        assert_ne!(pairs, task.generate(Split::Train, 50, 12).unwrap());
        assert_eq!(pairs[..20], task.generate(Split::Train, 20, 11).unwrap(), "more pairs may not change earlier ones");
    }
}

#[test]
fn generated_pairs_never_change_between_versions() {
    let first = |name: &str| TaskConfig::from_name(name).unwrap().generate(Split::Test, 1, 1).unwrap().remove(0);
    let copy = "y x r x j v g m e v b y";
    let english = "six million six hundred eighteen thousand six hundred thirteen , \
                   fourteen billion seven hundred twenty-one million ninety-eight thousand nine hundred thirty-eight";
    let french = "six-millions-six-cent-dix-huit-mille-six-cent-treize , quatorze-milliards-\
                  sept-cent-vingt-et-un-millions-quatre-vingt-dix-huit-mille-neuf-cent-trente-huit";
    assert_eq!(first("copy"), Pair::new(copy, copy));
    assert_eq!(first("recall"), Pair::new("e 2 v 1 k 1 r 1 ? e", "2"));
    assert_eq!(
        first("selective-copy"),
        Pair::new("h . . . . . . . . e . b i . a . j h . . . . . . . c . . . . . .", "h e b i a j h c")
    );
    assert_eq!(first("parity"), Pair::new("1 1 0 0 1 0 1 0 0 1 0 1 0 1 1 1 0", "odd"));
    assert_eq!(first("arithmetic"), Pair::new("2 * 0 + 1", "1"));
    assert_eq!(
        first("depth"),
        Pair::new("( ) ( ( ( ( ( ) ( ) ) ) ) ( ( ( ) ( ( ) ) ) ( (", "1 0 1 2 3 4 5 4 5 4 3 2 1 2 3 4 3 4 5 4 3 2 3 4")
    );
    assert_eq!(first("dates"), Pair::new("oct the nineteenth 2019", "2019-10-19"));
    assert_eq!(first("numbers"), Pair::new(english, french));
}

#[test]
fn no_held_out_source_is_trained_on_or_repeated_whatever_the_seed() {
    for task in every_task() {
        let sources = |split, n, seed| -> Vec<String> {
            task.generate(split, n, seed).unwrap().into_iter().map(|pair| pair.source).collect()
        };
        let train: HashSet<String> = [1, 2, 3].iter().flat_map(|&seed| sources(Split::Train, 2000, seed)).collect();
        let (valid, test) = (sources(Split::Valid, 300, 4), sources(Split::Test, 300, 1));
        for held_out in [&valid, &test] {
            assert!(held_out.iter().all(|source| !train.contains(source)), "{}", task.name());
            assert_eq!(held_out.iter().collect::<HashSet<_>>().len(), 300, "{}", task.name());
        }
        assert!(valid.iter().collect::<HashSet<_>>().is_disjoint(&test.iter().collect()), "{}", task.name());
    }
}

#[test]
fn a_tenth_of_all_sources_is_held_out_for_each_of_valid_and_test() {
    let counts = (0..10_000).fold([0u32; 3], |mut counts, i| {
        counts[Split::of_source(&format!("source {i}"), 100) as usize] += 1;
        counts
    });
    // Standard deviation: sqrt(10000 0.1 0.9) = 30.
    assert!(counts[1].abs_diff(1000) < 150 && counts[2].abs_diff(1000) < 150, "{counts:?}");
}

#[test]
fn copy_reverse_and_sort_do_what_they_say() {
    let config = symbols(26, 3, 20);
    for pair in TaskConfig::Copy(config.clone()).generate(Split::Train, 200, 5).unwrap() {
        assert_eq!(pair.source, pair.target);
    }
    for pair in TaskConfig::Reverse(config.clone()).generate(Split::Train, 200, 5).unwrap() {
        let mut expected = words(&pair.source);
        expected.reverse();
        assert_eq!(words(&pair.target), expected);
    }
    for pair in TaskConfig::Sort(config).generate(Split::Train, 200, 5).unwrap() {
        let mut expected = words(&pair.source);
        expected.sort_unstable();
        assert_eq!(words(&pair.target), expected);
    }
}

#[test]
fn large_alphabets_are_numbers_sorted_by_value() {
    let mut seen_two_widths = false;
    for Pair { source, target } in TaskConfig::Sort(symbols(101, 5, 5)).generate(Split::Train, 100, 5).unwrap() {
        let mut expected: Vec<u32> = source.split(' ').map(|word| word.parse().unwrap()).collect();
        assert!(expected.iter().all(|&n| n < 101));
        expected.sort_unstable();
        seen_two_widths |= expected[0] < 10 && expected[4] > 9;
        assert_eq!(target.split(' ').map(|word| word.parse::<u32>().unwrap()).collect::<Vec<_>>(), expected);
    }
    assert!(seen_two_widths, "the test needs a list where alphabetical and numerical order differ");
}

#[test]
fn every_length_and_symbol_in_range_occurs_and_no_other() {
    let pairs = TaskConfig::Copy(symbols(7, 3, 6)).generate(Split::Train, 500, 8).unwrap();
    let lengths: BTreeSet<usize> = pairs.iter().map(|pair| words(&pair.source).len()).collect();
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6]);
    let letters: BTreeSet<&str> = pairs.iter().flat_map(|pair| words(&pair.source)).collect();
    assert_eq!(letters.into_iter().collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f", "g"]);
}

#[test]
fn recall_answers_the_value_of_the_asked_key() {
    for (n_keys, first_key) in [(26, "a"), (40, "k0")] {
        let task = TaskConfig::Recall(RecallConfig {
            n_keys,
            n_values: 12,
            min_len: 2,
            max_len: 9,
            ..RecallConfig::default()
        });
        let mut counts = BTreeSet::new();
        let mut all_keys = BTreeSet::new();
        for Pair { source, target } in task.generate(Split::Train, 500, 2).unwrap() {
            let source = words(&source);
            let (pairs, question) = source.split_at(source.len() - 2);
            assert_eq!(question[0], "?");
            let matching: Vec<&[&str]> = pairs.chunks(2).filter(|pair| pair[0] == question[1]).collect();
            assert_eq!(matching.len(), 1, "each key stands once");
            assert_eq!(matching[0][1], target);
            all_keys.extend(pairs.chunks(2).map(|pair| pair[0].to_owned()));
            counts.insert(pairs.len() / 2);
        }
        assert_eq!(counts, (2..=9).collect());
        assert_eq!(all_keys.len(), n_keys);
        assert!(all_keys.contains(first_key));
    }
}

#[test]
fn recall_of_all_keys_answers_each_in_the_order_in_which_it_is_asked() {
    let task = TaskConfig::Recall(RecallConfig {
        n_keys: 30,
        n_values: 9,
        min_len: 2,
        max_len: 7,
        asks_all: true,
        ..RecallConfig::default()
    });
    let mut orders = BTreeSet::new();
    for Pair { source, target } in task.generate(Split::Train, 300, 2).unwrap() {
        let (source, answers) = (words(&source), words(&target));
        let n = answers.len();
        let (pairs, asked) = (source[..2 * n].chunks(2), &source[2 * n + 1..]);
        assert_eq!((source[2 * n], asked.len()), ("?", n));
        let value = |key: &str| pairs.clone().find(|pair| pair[0] == key).map(|pair| pair[1]);
        assert!(asked.iter().zip(&answers).all(|(key, answer)| value(key) == Some(answer)), "{source:?}");
        assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), n, "each key is asked once");
        orders.insert(asked.first() == Some(&source[0]));
    }
    assert_eq!(orders.len(), 2, "the order of the questions is another one");
}

#[test]
fn questions_among_blanks_are_answered_where_they_stand_or_in_their_turn() {
    let task = |in_place| {
        let config =
            RecallConfig { n_keys: 30, n_values: 9, min_len: 3, max_len: 3, asks_all: true, n_blanks: 5, in_place };
        TaskConfig::Recall(config).generate(Split::Train, 200, 2).unwrap()
    };
    let mut places = BTreeSet::new();
    for (one, other) in task(true).into_iter().zip(task(false)) {
        assert_eq!(one.source, other.source);
        let (source, answers) = (words(&one.source), words(&one.target));
        assert_eq!((source.len(), answers.len(), source[6]), (15, 15, "?"));
        let value = |key: &str| source[..6].chunks(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
        for (place, (asked, answer)) in source.iter().zip(&answers).enumerate() {
            let is_question = place > 6 && *asked != ".";
            assert_eq!(Some(*answer), if is_question { value(asked) } else { Some(".") }, "{source:?}");
            places.extend(is_question.then_some(place));
        }
        let in_turn: Vec<&str> = answers.into_iter().filter(|answer| *answer != ".").collect();
        assert_eq!(in_turn, words(&other.target));
    }
    assert_eq!(places, (7..15).collect(), "questions stand at every place");
    let wrong = RecallConfig { n_blanks: 5, ..RecallConfig::default() };
    let message = TaskConfig::Recall(wrong).generate(Split::Train, 1, 1).unwrap_err().to_string();
    assert!(message.contains("data.task.n_blanks: is for asks_all = true"), "{message}");
}

#[test]
fn selective_copies_are_what_stands_between_the_blanks() {
    let config = SelectiveCopyConfig { n_symbols: 6, n_copied: 4, min_len: 5, max_len: 12 };
    let mut lengths = BTreeSet::new();
    for Pair { source, target } in TaskConfig::SelectiveCopy(config).generate(Split::Train, 300, 3).unwrap() {
        let source = words(&source);
        lengths.insert(source.len());
        let kept: Vec<&str> = source.into_iter().filter(|symbol| *symbol != ".").collect();
        assert_eq!((kept.len(), kept), (4, words(&target)));
    }
    assert_eq!(lengths, (5..=12).collect());
}

#[test]
fn parity_says_whether_the_ones_are_odd() {
    let mut answers = BTreeSet::new();
    for Pair { source, target } in TaskConfig::from_name("parity").unwrap().generate(Split::Train, 200, 3).unwrap() {
        let ones = words(&source).iter().filter(|bit| **bit == "1").count();
        assert_eq!(target, if ones % 2 == 1 { "odd" } else { "even" });
        answers.insert(target);
    }
    assert_eq!(answers.len(), 2);
}

#[test]
fn parity_asked_after_every_bit_is_that_of_every_beginning() {
    let task = TaskConfig::Parity(ParityConfig { min_len: 1, max_len: 9, asks_all: true });
    for Pair { source, target } in task.generate(Split::Train, 100, 3).unwrap() {
        let (bits, answers): (Vec<&str>, Vec<&str>) = (source.split(' ').collect(), target.split(' ').collect());
        assert_eq!(bits.len(), answers.len());
        for (i, answer) in answers.iter().enumerate() {
            let ones = bits[..=i].iter().filter(|bit| **bit == "1").count();
            assert_eq!(*answer, if ones % 2 == 1 { "odd" } else { "even" }, "{source}, bit {i}");
        }
    }
}

#[test]
fn modular_arithmetic_multiplies_before_it_adds() {
    for modulus in [2, 5, 11] {
        let config = ArithmeticConfig { modulus, min_len: 1, max_len: 9, asks_all: false };
        for Pair { source, target } in TaskConfig::Arithmetic(config).generate(Split::Train, 300, 4).unwrap() {
            assert_eq!(target, by_hand(&source, modulus), "{source} modulo {modulus}");
        }
    }
}

#[test]
fn modular_arithmetic_asked_after_every_number_is_that_of_every_beginning() {
    let config = ArithmeticConfig { modulus: 7, min_len: 1, max_len: 9, asks_all: true };
    let at_the_end = TaskConfig::Arithmetic(ArithmeticConfig { asks_all: false, ..config.clone() });
    let pairs = TaskConfig::Arithmetic(config).generate(Split::Train, 100, 4).unwrap();
    for (Pair { source, target }, alone) in pairs.iter().zip(at_the_end.generate(Split::Train, 100, 4).unwrap()) {
        let (symbols, answers) = (words(source), words(target));
        assert_eq!(symbols.len(), 2 * answers.len() - 1, "{source}");
        for (i, answer) in answers.iter().enumerate() {
            assert_eq!(*answer, by_hand(&symbols[..=2 * i].join(" "), 7), "{source}, number {i}");
        }
        assert_eq!((source, *answers.last().unwrap()), (&alone.source, alone.target.as_str()));
    }
}

/// The value of an expression: terms of whole numbers, and what is left of their sum.
fn by_hand(expression: &str, modulus: usize) -> String {
    let spaced = expression.replace("- ", "+ -1 * ");
    let terms = spaced.split(" + ").map(|term| term.split(" * ").map(|n| n.parse::<i64>().unwrap()).product::<i64>());
    terms.sum::<i64>().rem_euclid(modulus as i64).to_string()
}

#[test]
fn depths_count_the_open_brackets() {
    let config = DepthConfig { max_depth: 3, min_len: 2, max_len: 30 };
    let mut depths = BTreeSet::new();
    for Pair { source, target } in TaskConfig::Depth(config).generate(Split::Train, 200, 5).unwrap() {
        let mut depth = 0;
        for (bracket, told) in words(&source).into_iter().zip(words(&target)) {
            depth += if bracket == "(" { 1 } else { -1 };
            assert_eq!(told, depth.to_string());
            depths.insert(depth);
        }
        assert_eq!(words(&source).len(), words(&target).len());
    }
    assert_eq!(depths, (0..=3).collect());
}

/// English, then French in the reformed and in the traditional orthography, each checked by hand against the rules.
const SPELLINGS: [(u64, &str, &str, &str); 48] = [
    (0, "zero", "zéro", "zéro"),
    (1, "one", "un", "un"),
    (10, "ten", "dix", "dix"),
    (11, "eleven", "onze", "onze"),
    (13, "thirteen", "treize", "treize"),
    (16, "sixteen", "seize", "seize"),
    (17, "seventeen", "dix-sept", "dix-sept"),
    (19, "nineteen", "dix-neuf", "dix-neuf"),
    (20, "twenty", "vingt", "vingt"),
    (21, "twenty-one", "vingt-et-un", "vingt et un"),
    (22, "twenty-two", "vingt-deux", "vingt-deux"),
    (31, "thirty-one", "trente-et-un", "trente et un"),
    (40, "forty", "quarante", "quarante"),
    (45, "forty-five", "quarante-cinq", "quarante-cinq"),
    (61, "sixty-one", "soixante-et-un", "soixante et un"),
    (69, "sixty-nine", "soixante-neuf", "soixante-neuf"),
    (70, "seventy", "soixante-dix", "soixante-dix"),
    (71, "seventy-one", "soixante-et-onze", "soixante et onze"),
    (72, "seventy-two", "soixante-douze", "soixante-douze"),
    (77, "seventy-seven", "soixante-dix-sept", "soixante-dix-sept"),
    (80, "eighty", "quatre-vingts", "quatre-vingts"),
    (81, "eighty-one", "quatre-vingt-un", "quatre-vingt-un"),
    (90, "ninety", "quatre-vingt-dix", "quatre-vingt-dix"),
    (91, "ninety-one", "quatre-vingt-onze", "quatre-vingt-onze"),
    (99, "ninety-nine", "quatre-vingt-dix-neuf", "quatre-vingt-dix-neuf"),
    (100, "one hundred", "cent", "cent"),
    (101, "one hundred one", "cent-un", "cent un"),
    (111, "one hundred eleven", "cent-onze", "cent onze"),
    (121, "one hundred twenty-one", "cent-vingt-et-un", "cent vingt et un"),
    (180, "one hundred eighty", "cent-quatre-vingts", "cent quatre-vingts"),
    (200, "two hundred", "deux-cents", "deux cents"),
    (201, "two hundred one", "deux-cent-un", "deux cent un"),
    (371, "three hundred seventy-one", "trois-cent-soixante-et-onze", "trois cent soixante et onze"),
    (580, "five hundred eighty", "cinq-cent-quatre-vingts", "cinq cent quatre-vingts"),
    (1000, "one thousand", "mille", "mille"),
    (1001, "one thousand one", "mille-un", "mille un"),
    (1100, "one thousand one hundred", "mille-cent", "mille cent"),
    (2000, "two thousand", "deux-mille", "deux mille"),
    (2300, "two thousand three hundred", "deux-mille-trois-cents", "deux mille trois cents"),
    (21_000, "twenty-one thousand", "vingt-et-un-mille", "vingt et un mille"),
    (80_000, "eighty thousand", "quatre-vingt-mille", "quatre-vingt mille"),
    (80_080, "eighty thousand eighty", "quatre-vingt-mille-quatre-vingts", "quatre-vingt mille quatre-vingts"),
    (200_000, "two hundred thousand", "deux-cent-mille", "deux cent mille"),
    (1_000_000, "one million", "un-million", "un million"),
    (80_000_000, "eighty million", "quatre-vingts-millions", "quatre-vingts millions"),
    (200_000_000, "two hundred million", "deux-cents-millions", "deux cents millions"),
    (1_000_001_000, "one billion one thousand", "un-milliard-mille", "un milliard mille"),
    (
        200_000_200_200,
        "two hundred billion two hundred thousand two hundred",
        "deux-cents-milliards-deux-cent-mille-deux-cents",
        "deux cents milliards deux cent mille deux cents",
    ),
];

#[test]
fn number_words_are_right_in_both_languages_and_orthographies() {
    for (number, in_english, reformed, traditional) in SPELLINGS {
        assert_eq!(english(number), in_english, "{number}");
        assert_eq!(french(number, Spelling::Reformed1990), reformed, "{number}");
        assert_eq!(french(number, Spelling::Traditional), traditional, "{number}");
    }
}

#[test]
fn number_words_agree_with_num2words() {
    let golden = include_str!("../../golden/number_words.tsv");
    let mut n = 0;
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let number: u64 = columns[0].parse().unwrap();
        assert_eq!(english(number), columns[1], "{number}");
        assert_eq!(french(number, Spelling::Traditional), columns[2], "{number}");
        // The orthographies differ in nothing but hyphens for spaces.
        assert_eq!(french(number, Spelling::Reformed1990), columns[2].replace(' ', "-"), "{number}");
        n += 1;
    }
    assert_eq!(n, 393);
}

#[test]
fn number_words_differ_for_different_numbers() {
    let mut seen = HashSet::new();
    assert!(
        (0..20_000)
            .all(|number| seen.insert(french(number, Spelling::Reformed1990)) && seen.insert(english(number) + "!"))
    );
}

#[test]
fn number_lists_translate_number_by_number_up_to_the_largest() {
    for max_value in [0, 9, 1000, 4_321, 999_999_999_999] {
        let config = NumbersConfig { max_value, min_len: 1, max_len: 4, spelling: Spelling::Traditional };
        let split = if max_value < 10 { Split::Train } else { Split::Valid };
        let n_pairs = if max_value == 0 { 1 } else { 40 };
        for pair in TaskConfig::Numbers(config).generate(split, n_pairs, 3).unwrap() {
            let (sources, targets): (Vec<&str>, Vec<&str>) =
                (pair.source.split(" , ").collect(), pair.target.split(" , ").collect());
            assert_eq!(sources.len(), targets.len());
            assert!((1..=4).contains(&sources.len()));
            for (source, target) in sources.into_iter().zip(targets) {
                let number = value_of(source);
                assert!(number <= max_value, "{number}");
                assert_eq!(english(number), source);
                assert_eq!(french(number, Spelling::Traditional), target);
            }
        }
    }
}

/// The value of English number words, by adding and multiplying, independently of the speller.
fn value_of(words: &str) -> u64 {
    const UNITS: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen \
                         sixteen seventeen eighteen nineteen";
    const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety";
    let (mut total, mut group) = (0, 0);
    for word in words.split([' ', '-']) {
        let unit = UNITS.split(' ').position(|unit| unit == word);
        let ten = TENS.split(' ').position(|ten| ten == word).map(|at| 10 * (at + 2));
        match word {
            "hundred" => group *= 100,
            "thousand" | "million" | "billion" => {
                total += group
                    * if word == "thousand" {
                        1000
                    } else if word == "million" {
                        1_000_000
                    } else {
                        1_000_000_000
                    };
                group = 0;
            }
            _ => group += unit.or(ten).unwrap_or_else(|| panic!("{word}")) as u64,
        }
    }
    total + group
}

#[test]
fn numbers_of_every_length_occur() {
    let config = NumbersConfig { min_len: 1, max_len: 1, ..NumbersConfig::default() };
    let pairs = TaskConfig::Numbers(config).generate(Split::Train, 600, 3).unwrap();
    let digits: BTreeSet<usize> = pairs.iter().map(|pair| value_of(&pair.source).to_string().len()).collect();
    assert_eq!(digits, (1..=12).collect());
}

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

#[test]
fn too_small_a_task_says_how_many_sources_there_are() {
    let task = TaskConfig::Copy(symbols(2, 1, 3));
    let message = task.generate(Split::Valid, 100, 1).unwrap_err().to_string();
    assert!(message.starts_with("data.task: `copy` is too small: found "), "{message}");
    assert!(message.contains("distinct sources for valid, 100 are asked for; ask for fewer pairs"), "{message}");
    assert_eq!(task.generate(Split::Train, 100, 1).unwrap().len(), 100, "train may repeat");
}

#[test]
fn no_pairs_are_no_error() {
    assert_eq!(TaskConfig::Copy(SymbolsConfig::default()).generate(Split::Test, 0, 1).unwrap(), []);
}

#[test]
fn each_field_out_of_range_is_refused_by_name() {
    let recall = |n_keys, n_values, min_len, max_len| {
        TaskConfig::Recall(RecallConfig { n_keys, n_values, min_len, max_len, ..RecallConfig::default() })
    };
    let selective = |n_symbols, n_copied, min_len, max_len| {
        TaskConfig::SelectiveCopy(SelectiveCopyConfig { n_symbols, n_copied, min_len, max_len })
    };
    let parity = |min_len, max_len| TaskConfig::Parity(ParityConfig { min_len, max_len, asks_all: false });
    let arithmetic = |modulus| TaskConfig::Arithmetic(ArithmeticConfig { modulus, ..ArithmeticConfig::default() });
    let depth = |max_depth| TaskConfig::Depth(DepthConfig { max_depth, ..DepthConfig::default() });
    let numbers = |max_value, min_len, max_len| {
        TaskConfig::Numbers(NumbersConfig { max_value, min_len, max_len, ..NumbersConfig::default() })
    };
    let dates = |first_year, last_year| TaskConfig::Dates(DatesConfig { first_year, last_year });
    let cases = [
        (TaskConfig::Copy(symbols(1, 3, 4)), "data.task.n_symbols: must lie in 2..=1000000, got 1"),
        (TaskConfig::Sort(symbols(5, 0, 4)), "data.task.min_len: must be at least 1 (symbols), got 0"),
        (TaskConfig::Reverse(symbols(5, 4, 3)), "data.task.max_len: must be at least min_len = 4 (symbols), got 3"),
        (TaskConfig::Copy(symbols(5, 4, usize::MAX)), "data.task.max_len: must be at most 100000 (symbols)"),
        (recall(1, 5, 1, 1), "data.task.n_keys: must lie in 2..=1000000, got 1"),
        (recall(5, 1, 1, 1), "data.task.n_values: must lie in 2..=1000000, got 1"),
        (recall(5, 5, 1, 6), "data.task.max_len: must be at most n_keys = 5, as no key occurs twice"),
        (recall(5, 5, 0, 5), "data.task.min_len: must be at least 1 (key-value pairs), got 0"),
        (selective(1, 2, 3, 4), "data.task.n_symbols: must lie in 2..=1000000, got 1"),
        (selective(4, 4, 3, 9), "data.task.n_copied: must lie in 1..=3, the shortest source, got 4"),
        (parity(0, 4), "data.task.min_len: must be at least 1 (bits), got 0"),
        (arithmetic(1), "data.task.modulus: must lie in 2..=1000000, got 1"),
        (depth(0), "data.task.max_depth: must be at least 1, got 0"),
        (numbers(1_000_000_000_000, 1, 1), "data.task.max_value: must be at most 999999999999"),
        (numbers(10, 2, 1), "data.task.max_len: must be at least min_len = 2 (numbers), got 1"),
        (dates(1599, 2000), "data.task.first_year: must lie in 1600..=2999, got 1599"),
        (dates(2000, 1999), "data.task.last_year: must lie in first_year = 2000..=2999, got 1999"),
    ];
    for (task, expected) in cases {
        let message = task.generate(Split::Train, 1, 1).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn tasks_are_told_apart_by_kind_and_misspelt_keys_are_refused() {
    let task: TaskConfig = toml::from_str("kind = \"numbers\"\nmax_len = 7\nspelling = \"traditional\"").unwrap();
    let expected = NumbersConfig { max_len: 7, spelling: Spelling::Traditional, ..NumbersConfig::default() };
    assert_eq!(task, TaskConfig::Numbers(expected));
    assert_eq!(toml::from_str::<TaskConfig>(&toml::to_string(&task).unwrap()).unwrap(), task);
    for (name, _) in TaskConfig::TASKS {
        let misspelt = format!("kind = \"{name}\"\nmax_lenn = 7");
        let message = toml::from_str::<TaskConfig>(&misspelt).unwrap_err().to_string();
        assert!(message.contains("max_lenn"), "{message}");
        assert_eq!(TaskConfig::from_name(name).unwrap().name(), name);
    }
}

#[test]
fn rises_asks_for_what_comes_next() {
    let task = TaskConfig::Rises(symbols(5, 1, 9));
    for Pair { source, target } in task.generate(Split::Train, 200, 3).unwrap() {
        let (source, target): (Vec<&str>, Vec<&str>) = (source.split(' ').collect(), target.split(' ').collect());
        assert_eq!(source.len(), target.len());
        for (i, tag) in target.iter().enumerate() {
            let rises = source.get(i + 1).is_some_and(|next| *next > source[i]);
            assert_eq!(*tag, if rises { "<" } else { ">" }, "{source:?}, symbol {i}");
        }
    }
}

#[test]
fn the_next_value_has_the_errors_that_its_page_names() {
    let task = TaskConfig::NextValue(NextValueConfig { min_len: 1, max_len: 39 });
    // Of the forecasts best, from one value, last value and mean: sum of squares and count, at the first step and at the others.
    let mut sums = [[(0.0f64, 0usize); 4]; 2];
    for Pair { source, target } in task.generate(Split::Train, 20_000, 1).unwrap() {
        let numbers = |text: &str| -> Vec<f64> { text.split(' ').map(|number| number.parse().unwrap()).collect() };
        let (source, target) = (numbers(&source), numbers(&target));
        assert_eq!(source.len(), target.len());
        assert_eq!(source[1..], target[..target.len() - 1]);
        for t in 0..source.len() {
            let from_one = 15.0 / 19.0 * source[t];
            let best = if t == 0 { from_one } else { 1.5 * source[t] - 0.9 * source[t - 1] };
            for (forecast, sum) in [best, from_one, source[t], 0.0].into_iter().zip(&mut sums[usize::from(t > 0)]) {
                sum.0 += (target[t] - forecast).powi(2);
                sum.1 += 1;
            }
        }
    }
    let (variance, from_one, last) = (475.0 / 34.0, 100.0 / 19.0, 100.0 / 17.0);
    for (place, expected) in [[from_one, from_one, last, variance], [1.0, from_one, last, variance]].iter().enumerate()
    {
        for ((sum, n), expected) in sums[place].iter().zip(expected) {
            let found = sum / *n as f64;
            // 20,000 first steps: a relative standard deviation of (2 / 20,000)^0.5, 1 %.
            assert!((found / expected - 1.0).abs() < 0.035, "place {place}: {found} instead of {expected}");
        }
    }
    let best = sums[1][0];
    assert!((best.0 / best.1 as f64 - 1.0).abs() < 0.01, "{best:?}");
}

#[test]
fn an_unknown_task_lists_those_there_are() {
    let message = TaskConfig::from_name("cpoy").unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown task `cpoy`; there are: copy, reverse, sort, recall, selective-copy, parity, arithmetic, depth, rises, next-value, dates, numbers"
    );
}

#[test]
fn lengths_can_be_set_for_every_task_that_has_them() {
    for mut task in every_task() {
        let result = task.set_lengths(Some(2), Some(5));
        if task.name() == "dates" {
            assert!(result.unwrap_err().to_string().contains("`dates` has no lengths"));
            assert!(task.set_lengths(None, None).is_ok());
        } else {
            let json = serde_json::to_value(&task).unwrap();
            assert_eq!((json["min_len"].as_u64(), json["max_len"].as_u64()), (Some(2), Some(5)));
            task.set_lengths(None, Some(6)).unwrap();
            assert_eq!(serde_json::to_value(&task).unwrap()["min_len"], 2);
        }
    }
}
