//! `lookback inspect attention` of a model that answers with numbers: what each step looks at.

use super::arguments::{InspectAttentionArgs, sources};
use super::tables;
use crate::cli::load_encoder_only;
use crate::data::Series;
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::experiment::series::{scalings, source_of};
use crate::models::Autoregressive;
use crate::report::attention::collect::collect_series;
use crate::report::attention::measure::summarize;
use crate::report::attention::{SentenceMaps, memory};

/// The maps of every series that is looked at, and what is printed of them.
///
/// # Errors
/// If an option is for words, a line is no series, or the model has nothing to draw.
pub(super) fn maps(args: &InspectAttentionArgs) -> Result<(LoadedModel, Vec<SentenceMaps>, tables::Report)> {
    if let Some(option) = args.first_for_words() {
        let message = format!("{option} has no effect here: the model answers with numbers");
        return Err(Error::message(message));
    }
    let (loaded, _) = load_encoder_only(&args.run, &args.place, args.checkpoint.as_deref())?;
    let (source, target) = scalings(&loaded.tokenizers);
    let limit = loaded.model.limits().source;
    let read = |(number, line): &(usize, String)| {
        let series = source_of(line, source, limit);
        Ok((*number, series.map_err(|fault| Error::line(args.origin(), *number, fault))?))
    };
    let (lines, _) = sources(args, &loaded)?;
    let series = lines.iter().map(read).collect::<Result<Vec<(usize, Series)>>>()?;
    let maps = series.iter().map(|(number, series)| collect_series(&loaded.model, *number, series, source, target));
    let maps = maps.collect::<Result<Vec<SentenceMaps>>>()?;
    let report = tables::Report {
        sentences: maps.len(),
        faithfulness: None,
        errors: Vec::new(),
        aligned: 0,
        heads: summarize(&maps),
        memories: memory::summarize(&maps),
    };
    Ok((loaded, maps, report))
}
