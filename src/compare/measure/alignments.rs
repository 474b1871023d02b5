//! What a model looks at: maps of a few sentences, and source words that it hardly looked at.

use crate::compare::progress::check_stop;
use crate::compare::test_set::TestSet;
use crate::error::Result;
use crate::experiment::LoadedModel;
use crate::report::attention::Part;
use crate::report::attention::collect::{Written, collect_attention};
use crate::report::comparison::{AlignedSentence, GroupKind, Map};
use crate::training::Observer;
use serde::{Deserialize, Serialize};

/// A source word that got less weight than this, from all words together, is left out.
const LITTLE: f32 = 0.1;
/// Sentences of each group in which left-out words are counted.
const PER_GROUP: usize = 10;
/// The longest sentence whose map is kept.
const LONGEST_MAP: usize = 120;

/// The left-out words of one sentence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Omitted {
    /// The group it belongs to.
    pub group: String,
    /// Words of its source.
    pub words: usize,
    /// Those that were left out.
    pub omitted: usize,
}

/// What one run looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// By sentence.
    pub omitted: Vec<Omitted>,
    /// The maps of the chosen sentences, by their place in the test set.
    pub maps: Vec<(usize, Map)>,
}

/// The sentences whose maps are shown: what they are and their places in the test set.
pub fn chosen(test: &TestSet) -> Vec<(String, usize)> {
    let length = |i: usize| test.unit.count(&test.pairs[i].source);
    let proper = || (0..test.n_proper).filter(|i| length(*i) <= LONGEST_MAP);
    let seen = || proper().filter(|i| length(*i) <= test.trained_length);
    let mut found: Vec<(String, usize)> = Vec::new();
    let wanted = test.trained_length / 2;
    if let Some(i) = seen().min_by_key(|i| length(*i).abs_diff(wanted)) {
        found.push(("of middle length".into(), i));
    }
    if let Some(i) = seen().max_by_key(|i| (length(*i), usize::MAX - i)) {
        found.push(("that is the longest of the test set within the lengths of training".into(), i));
    }
    let unseen = test
        .groups
        .iter()
        .find(|(group, _)| group.kind != GroupKind::All && group.from > test.trained_length && group.to <= LONGEST_MAP);
    if let Some((_, indices)) = unseen {
        found.push(("longer than any in training".into(), indices[0]));
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|(_, i)| seen.insert(*i));
    found
}

/// Looks at what `loaded` attended to while it wrote `texts`; nothing for a model without attention.
///
/// # Errors
/// If the observer stops it.
pub fn look(loaded: &LoadedModel, texts: &[&str], test: &TestSet, observer: &dyn Observer) -> Result<Looked> {
    let mut looked = Looked::default();
    for (group, indices) in &test.groups {
        for i in indices.iter().take(PER_GROUP) {
            check_stop(observer)?;
            let Some((_, map)) = map_of(loaded, *i, texts[*i], test) else { return Ok(looked) };
            // The end symbol stands for no word.
            let n_words = map.columns.len() - 1;
            let weight = |j: usize| map.weights.iter().skip(j).step_by(map.columns.len()).sum::<f32>();
            let omitted = (0..n_words).filter(|j| weight(*j) < LITTLE).count();
            looked.omitted.push(Omitted { group: group.id.clone(), words: n_words, omitted });
        }
    }
    for (_, i) in chosen(test) {
        looked.maps.extend(map_of(loaded, i, texts[i], test));
    }
    Ok(looked)
}

/// The mean of all cross-attention while `text` was written.
fn map_of(loaded: &LoadedModel, i: usize, text: &str, test: &TestSet) -> Option<(usize, Map)> {
    let written = Written::given(i + 1, &test.pairs[i].source, text, &loaded.tokenizers);
    let maps = collect_attention(&loaded.model, &loaded.tokenizers, &written);
    let mean = maps.average(Part::Cross)?;
    let weights = mean.weights.iter().map(|weight| (weight * 1000.0).round() / 1000.0).collect();
    let (columns, rows) = (maps.source, maps.target);
    Some((i, Map { contestant: String::new(), text: text.into(), columns, rows, weights }))
}

/// The chosen sentences with the maps of every contestant that has attention; `looked` is that of each one's first seed.
pub fn aligned(looked: &[(String, Looked)], test: &TestSet) -> Vec<AlignedSentence> {
    let of_sentence = |(what, i): (String, usize)| {
        let of_contestant = |(name, looked): &(String, Looked)| {
            let (_, map) = looked.maps.iter().find(|(place, _)| *place == i)?;
            Some(Map { contestant: name.clone(), ..map.clone() })
        };
        let pair = &test.pairs[i];
        AlignedSentence {
            what,
            source: pair.source.clone(),
            reference: pair.target.clone(),
            other_references: test.references[i][1..].to_vec(),
            maps: looked.iter().filter_map(of_contestant).collect(),
        }
    };
    chosen(test).into_iter().map(of_sentence).filter(|sentence| !sentence.maps.is_empty()).collect()
}
