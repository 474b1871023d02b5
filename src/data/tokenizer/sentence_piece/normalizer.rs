//! How SentencePiece makes a text ready before it looks for pieces.

use super::SPACE;
use serde::{Deserialize, Serialize};

/// Stands behind each text of a table.
const TERMINATOR: u8 = 0;

/// Replaces beginnings of the text by a table, the longest that it knows first, and marks spaces.
///
/// `tokenizers` has such a normalizer too, but cuts the text into grapheme clusters first and takes the shortest entry: after a
/// combining character the text is another one than SentencePiece's.
///
/// # Reference
/// Kudo and Richardson, SentencePiece, 2018, section 3.3; the order of the steps is that of its `normalizer.cc`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalizer {
    /// A double-array trie of byte sequences, as units of 32 bits.
    units: Vec<u32>,
    /// What the sequences become, each with a zero byte behind it.
    texts: String,
    /// Whether a space is put before the text.
    pub adds_space: bool,
    /// Whether spaces at the ends, and all but one of several, are left out.
    pub trims_spaces: bool,
}

impl Normalizer {
    /// From the table of a model file: the length of the trie in bytes, the trie, and the texts.
    ///
    /// # Errors
    /// If the table is cut off, or is no text.
    pub fn new(table: &[u8], adds_space: bool, trims_spaces: bool) -> Result<Self, String> {
        let cut = || "the table of its normalizer (precompiled_charsmap) is cut off".to_owned();
        let mut normalizer = Self { adds_space, trims_spaces, ..Self::default() };
        if table.is_empty() {
            return Ok(normalizer);
        }
        let (n_bytes, rest) = table.split_first_chunk().ok_or_else(cut)?;
        let (units, texts) = rest.split_at_checked(u32::from_le_bytes(*n_bytes) as usize).ok_or_else(cut)?;
        let (units, odd) = units.as_chunks();
        if !odd.is_empty() || units.is_empty() {
            return Err(cut());
        }
        normalizer.units = units.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        normalizer.texts = String::from_utf8(texts.to_vec()).map_err(|_| cut())?;
        Ok(normalizer)
    }

    /// The table as model files have it.
    pub fn table(&self) -> Vec<u8> {
        if self.units.is_empty() {
            return Vec::new();
        }
        let n_bytes = (self.units.len() * size_of::<u32>()) as u32;
        let units = self.units.iter().flat_map(|unit| unit.to_le_bytes());
        n_bytes.to_le_bytes().into_iter().chain(units).chain(self.texts.bytes()).collect()
    }

    /// The text as pieces are looked for in it.
    pub fn normalized(&self, text: &str) -> String {
        let mut rest = text;
        if self.trims_spaces {
            while let (" ", n_bytes) = self.first(rest) {
                rest = &rest[n_bytes..];
            }
        }
        if rest.is_empty() {
            return String::new();
        }
        let mut normalized = String::with_capacity(rest.len() + 2 * SPACE.len_utf8());
        if self.adds_space {
            normalized.push(SPACE);
        }
        let mut after_space = self.trims_spaces;
        while !rest.is_empty() {
            let (mut new, n_bytes) = self.first(rest);
            rest = &rest[n_bytes..];
            if after_space {
                new = new.trim_start_matches(' ');
            }
            if !new.is_empty() {
                normalized.extend(new.chars().map(|c| if c == ' ' { SPACE } else { c }));
                after_space = self.trims_spaces && new.ends_with(' ');
            }
        }
        if self.trims_spaces {
            normalized.truncate(normalized.trim_end_matches(SPACE).len());
        }
        normalized
    }

    /// What the text's beginning becomes, and how many bytes that is; of no text, nothing.
    fn first<'a>(&'a self, text: &'a str) -> (&'a str, usize) {
        if let Some((place, n_bytes)) = self.longest(text.as_bytes()) {
            let new = self.texts.get(place..).unwrap_or_default();
            let end = new.bytes().position(|byte| byte == TERMINATOR).unwrap_or(new.len());
            return (&new[..end], n_bytes);
        }
        let n_bytes = text.chars().next().map_or(0, char::len_utf8);
        (&text[..n_bytes], n_bytes)
    }

    /// Where the text stands for the longest beginning in the table, and how many bytes that beginning has.
    ///
    /// A unit has the label of the byte that leads to it, or, where the highest bit is set, a value; the offset to its children; and
    /// whether one of them is a value (Yata's double array, as the library Darts-clone writes it).
    fn longest(&self, text: &[u8]) -> Option<(usize, usize)> {
        let offset = |unit: u32| ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
        let mut place = offset(*self.units.first()?);
        let mut found = None;
        for (i, byte) in text.iter().enumerate() {
            place ^= usize::from(*byte);
            let unit = *self.units.get(place)?;
            if unit & (1 << 31 | 0xff) != u32::from(*byte) {
                break;
            }
            place ^= offset(unit);
            if unit & (1 << 8) != 0 {
                let value = self.units.get(place)? & !(1 << 31);
                found = Some((value as usize, i + 1));
            }
        }
        // A sequence that ends inside a character would cut the text where it cannot be cut.
        found.filter(|(_, n_bytes)| std::str::from_utf8(&text[..*n_bytes]).is_ok())
    }
}
