//! Named spans in sequences of tags: `B-X` begins one of type X, `I-X` goes on with it, `O` is outside of any.

use super::Ratio;

/// A span: its type, and the places of its first and last tag.
type Span<'a> = (&'a str, usize, usize);

/// The spans of a line of tags, as the field's evaluation script counts them: an `I-X` after something else begins a span too,
/// and of the forms with ends, `E-X` ends one and `S-X` is one.
fn spans(line: &str) -> Vec<Span<'_>> {
    let tags: Vec<&str> = line.split_whitespace().collect();
    let mut found = Vec::new();
    let (mut before, mut type_before, mut begin) = ('O', "", 0);
    for (i, tag) in tags.iter().copied().chain(["O"]).enumerate() {
        let mut letters = tag.chars();
        let letter = letters.next().unwrap_or('O');
        let rest = letters.as_str();
        let kind = match rest.split_once('-').map_or(rest, |(_, kind)| kind) {
            "" => "_",
            kind => kind,
        };
        let is_new_type = kind != type_before;
        let ends = match before {
            'E' | 'S' => true,
            'B' | 'I' if matches!(letter, 'B' | 'S' | 'O') => true,
            'O' | '.' => false,
            _ => is_new_type,
        };
        if ends {
            found.push((type_before, begin, i - 1));
        }
        let begins = match (before, letter) {
            (_, 'B' | 'S') => true,
            ('E' | 'S' | 'O', 'E' | 'I') => true,
            (_, 'O' | '.') => false,
            _ => is_new_type,
        };
        if begins {
            begin = i;
        }
        (before, type_before) = (letter, kind);
    }
    found
}

fn is_tag(text: &str) -> bool {
    let has_type = |text: &str| text.strip_prefix(['B', 'I', 'E', 'S']).is_some_and(|rest| rest.starts_with('-'));
    text == "O" || has_type(text)
}

/// Twice the spans that are in both, of all spans in either: the F1 of spans, whose sums are those of a corpus. Nothing of nothing
/// where the reference is not made of tags.
///
/// # Reference
/// Tjong Kim Sang and De Meulder, CoNLL-2003, section 3; equal to seqeval's micro average.
pub fn span_matches(hypothesis: &str, reference: &str) -> Ratio {
    if !reference.split_whitespace().all(is_tag) {
        return Ratio::default();
    }
    let (found, expected) = (spans(hypothesis), spans(reference));
    // A span stands where it begins, so that none is there twice.
    let n_both = found.iter().filter(|span| expected.contains(span)).count();
    Ratio::of(2 * n_both, found.len() + expected.len())
}
