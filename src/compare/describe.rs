//! Tasks and searches in a few words.

use crate::data::{DataConfig, Split};
use crate::decoding::{DecodingConfig, EarlyStopping, StopRule};

/// What is learnt, and what is tested: the task, or the files of a split.
pub(crate) fn task_name(data: &DataConfig, split: Split) -> String {
    let files = match split {
        Split::Train => &data.train,
        Split::Valid => &data.valid,
        Split::Test => &data.test,
    };
    match (&data.task, files) {
        (Some(task), _) => task.name().to_string(),
        (None, Some(files)) => {
            let paths = data.resolve(files);
            // Which text they hold, their hash says; where they lie is nobody's concern.
            let names = paths.paths().into_iter().filter_map(|path| path.file_name());
            let names = names.map(|name| name.to_string_lossy().trim_end_matches(".gz").to_string());
            names.collect::<Vec<_>>().join(", ")
        }
        (None, None) => "held-out part of the training files".into(),
    }
}

/// How the words of answers are looked for.
pub(crate) fn search_words(decoding: &DecodingConfig) -> String {
    match (&decoding.sampling, decoding.beam_size) {
        (Some(_), _) => "sampled".to_string(),
        (None, 1) => "greedy".to_string(),
        (None, n) => {
            let end = match decoding.early_stopping {
                EarlyStopping::Full(false) => "",
                EarlyStopping::Full(true) => ", early stopping",
                EarlyStopping::Rule(StopRule::PresentLength) => ", stopping by present length",
            };
            format!("beam {n}, length penalty {}{end}", decoding.length_penalty)
        }
    }
}

/// How answers are written, and where they are cut.
pub(super) fn decoding_words(decoding: &DecodingConfig) -> String {
    let search = search_words(decoding);
    if decoding.max_len_factor.is_none() && decoding.max_len_extra.is_none() {
        return format!("{search}, at most the length that each run derived from its training data");
    }
    let (factor, extra) = decoding.length_cap();
    format!("{search}, at most {factor} tokens for each source token and {extra} more")
}
