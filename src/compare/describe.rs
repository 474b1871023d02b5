//! Tasks and searches in a few words.

use crate::data::DataConfig;
use crate::decoding::{DecodingConfig, EarlyStopping, StopRule};

/// What is learnt.
pub(super) fn task_name(data: &DataConfig) -> String {
    match (&data.task, &data.test) {
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

/// How answers are written.
pub(super) fn decoding_words(decoding: &DecodingConfig) -> String {
    let search = match (&decoding.sampling, decoding.beam_size) {
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
    };
    if decoding.max_len_factor.is_none() && decoding.max_len_extra.is_none() {
        return format!("{search}, at most the length that each run derived from its training data");
    }
    let (factor, extra) = decoding.length_cap();
    format!("{search}, at most {factor} tokens for each source token and {extra} more")
}
