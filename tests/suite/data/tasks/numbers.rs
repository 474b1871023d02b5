//! Numbers in English and French words.

use lookback::data::tasks::{NumbersConfig, Spelling, english, french};
use lookback::data::{Split, TaskConfig};
use std::collections::{BTreeSet, HashSet};

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
    let golden = include_str!("../../../golden/number_words.tsv");
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
