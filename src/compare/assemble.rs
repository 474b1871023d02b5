//! From trained contestants to a [`Comparison`]: every measurement is made, or found finished, and put in its place.

use super::describe::{decoding_words, task_name};
use super::jobs::Jobs;
use super::measure::alignments::{Looked, aligned, look};
use super::measure::claims::{self, OF_GOOD};
use super::measure::costs::{Bench, Timed, note_of_load, note_of_shared};
use super::measure::quality::{Scored, metrics, quality};
use super::measure::threshold::thresholds;
use super::measure::translations::{Translation, translations};
use super::measure::{curves, faults, growth, positions};
use super::options::Options;
use super::plan::{Entrant, EntrantRun};
use super::progress::Progress;
use super::store::Store;
use super::training::{Finished, finished};
use super::work::Work;
use super::{Prepared, fairness};
use crate::backend::Adapter;
use crate::data::Split;
use crate::decoding::DecodingConfig;
use crate::error::{Error, Result};
use crate::experiment::{Config, LoadedModel, Run, run};
use crate::models::{Vocabularies, costs};
use crate::report::comparison::{Comparison, Contestant, Cost, CostKind, Curve, FORMAT, Resampling, Task};
use crate::scoring::Bootstrap;
use crate::scoring::{CONFIDENCE, LEVEL};
use burn::module::Module;

/// Resamples of every interval and test.
pub(super) const BOOTSTRAP: Bootstrap = Bootstrap { n_samples: 1000, seed: 12345 };

/// What was measured of one contestant.
struct Found {
    contestant: Contestant,
    finished: Vec<Finished>,
    translations: Vec<Vec<Translation>>,
    looked: Vec<Looked>,
    curves: Vec<Curve>,
    vocabularies: Vocabularies,
    is_lowercase: bool,
}

/// What to say where some models write lower case alone, so that all are scored in it; nothing where all do, or none.
fn note_of_case(found: &[Found]) -> Option<String> {
    let lower: Vec<&str> =
        found.iter().filter(|own| own.is_lowercase).map(|own| own.contestant.name.as_str()).collect();
    (!lower.is_empty() && lower.len() < found.len()).then(|| {
        format!(
            "All answers and references are scored in lower case, which is all that {} can write.",
            lower.join(", ")
        )
    })
}

/// Measures everything: the comparison, and what every contestant made of every test sentence.
pub(super) fn assemble(
    prepared: &Prepared,
    options: &Options,
    jobs: &Jobs,
    progress: &mut Progress,
    work: &[Work],
) -> Result<(Comparison, Vec<Scored>)> {
    let Prepared { entrants, test, trials, adapter, decoding } = prepared;
    let store = Store::open(&options.out)?;
    let runs = entrants.iter().zip(work);
    let runs: Vec<_> =
        runs.flat_map(|(entrant, work)| entrant.runs.iter().map(move |run| (entrant, run, work.testing))).collect();
    let name = |(entrant, run, _): &(&Entrant, &EntrantRun, f64)| format!("test-{}", name_of(entrant, run));
    jobs.share(&runs, progress, name, |(entrant, run, work), progress| {
        test_run(entrant, run, prepared, &store, progress, *work).map(|_| ())
    })?;
    // Times are measured by one process at a time, which also writes the report.
    let _lock = jobs.wait_for("measure", &**progress.observer(), |what| progress.at(what, 0.0))?;
    let mut found = Vec::new();
    for entrant in entrants {
        found.push(measure(entrant, prepared, &store, progress)?);
    }
    let (costs, timed) = costs(entrants, &found, options, &store, adapter, progress, work)?;
    progress.at("drawing resamples", 0.0);
    let is_generated = entrants[0].config.data.task.is_some();
    let metrics = metrics(entrants[0].config.training.score, is_generated);
    let is_lowercase = found.iter().any(|found| found.is_lowercase);
    let scored: Vec<Scored> = entrants
        .iter()
        .zip(&found)
        .map(|(entrant, found)| Scored::new(&entrant.name, &found.translations, &test.references, is_lowercase))
        .collect::<Result<_>>()?;
    let contestants: Vec<Contestant> = found.iter().map(|found| found.contestant.clone()).collect();
    let ended: Vec<Vec<Finished>> = found.iter().map(|found| found.finished.clone()).collect();
    let (same, differences) = fairness::compare(entrants, &contestants, &ended);
    let theory = |name: &str, kind: CostKind| {
        let entrant = entrants.iter().find(|entrant| entrant.name == name).expect("a contestant's own name");
        entrant.config.model.family().exponents(kind == CostKind::Update, adapter.backend.is_host())
    };
    let task = entrants[0].config.data.task.as_ref();
    let mut notes = test.notes.clone();
    notes.extend([note_of_case(&found), note_of_shared(&costs), note_of_load(&costs)].into_iter().flatten());
    let mut comparison = Comparison {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        command: options.command.clone(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        backend: adapter.backend.to_string(),
        device: adapter.name.clone(),
        task: Task {
            name: task_name(&entrants[0].config.data, Split::Test),
            is_generated,
            length_unit: test.unit,
            trained_length: test.trained_length,
            train_pairs: test.train_pairs,
            test_sentences: test.n_proper,
            test_sha256: test.sha256.clone(),
        },
        decoding: decoding_words(decoding),
        resampling: Resampling {
            n_samples: BOOTSTRAP.n_samples,
            seed: BOOTSTRAP.seed,
            confidence: CONFIDENCE,
            level: LEVEL,
        },
        growth: growth::growth(&costs, &timed, theory),
        crossings: growth::crossings(&costs, &timed),
        contestants,
        same,
        differences,
        notes,
        trials: trials.clone(),
        groups: test.groups.iter().map(|(group, _)| group.clone()).collect(),
        claims: claims::claims(&scored, test, &metrics, &BOOTSTRAP)?,
        costs,
        ..Comparison::default()
    };
    for (scored, found) in scored.iter().zip(&found) {
        comparison.quality.extend(quality(scored, test, &metrics, &BOOTSTRAP)?);
        comparison.positions.extend(positions::positions(&scored.name, &found.translations, test, task));
        let omitted: Vec<_> = found.looked.iter().flat_map(|looked| looked.omitted.clone()).collect();
        comparison.faults.extend(faults::faults(&scored.name, &found.translations, &omitted, test));
        comparison.curves.extend(found.curves.clone());
    }
    let looked: Vec<(String, Looked)> =
        found.iter().map(|found| (found.contestant.name.clone(), found.looked[0].clone())).collect();
    comparison.alignments = aligned(&looked, test);
    // BLEU has no level that is good; right sentences have one where they are what counts.
    if is_generated || metrics.first().is_some_and(|metric| metric == OF_GOOD) {
        for scored in &scored {
            comparison.claims.extend(claims::levels(scored, test, &BOOTSTRAP)?);
        }
    }
    let written: Vec<(&str, &[Vec<Translation>])> =
        found.iter().map(|found| (found.contestant.name.as_str(), &found.translations[..])).collect();
    comparison.claims.extend(claims::ends(&written, test, task, &BOOTSTRAP)?);
    comparison.metrics = metrics;
    comparison.thresholds = thresholds(&comparison);
    Ok((comparison, scored))
}

/// Time and memory of every contestant, and the names of those that were measured: what differs only in how it was trained is not
/// timed again, as the difference would be noise.
fn costs(
    entrants: &[Entrant],
    found: &[Found],
    options: &Options,
    store: &Store,
    adapter: &Adapter,
    progress: &mut Progress,
    work: &[Work],
) -> Result<(Vec<Cost>, Vec<String>)> {
    let bench = Bench {
        store,
        lengths: &options.cost_lengths,
        cell_seconds: options.cell_seconds,
        backend: adapter.backend,
        device: (adapter.number, adapter.name.clone()),
        observer: progress.observer().clone(),
    };
    let mut timed: Vec<Timed> = Vec::new();
    let mut keys: Vec<(Config, Vocabularies)> = Vec::new();
    // For each entrant the place of the one that is measured.
    let mut places = Vec::new();
    for ((entrant, found), work) in entrants.iter().zip(found).zip(work) {
        let work = work.timing;
        let key = (bench.config(entrant)?, found.vocabularies);
        let same = keys.iter().position(|other| *other == key);
        match same {
            Some(_) => progress.skip(work),
            None => {
                keys.push(key);
                timed.push(Timed { entrant, vocabularies: found.vocabularies, work });
            }
        }
        places.push(same.unwrap_or(timed.len() - 1));
    }
    let measured = bench.costs(&timed, progress)?;
    let mut rows = Vec::new();
    for (entrant, place) in entrants.iter().zip(places) {
        let name = &timed[place].entrant.name;
        let own = measured.iter().filter(|cost| cost.contestant == *name).cloned();
        let same_as = (*name != entrant.name).then(|| name.clone());
        rows.extend(own.map(|cost| Cost { contestant: entrant.name.clone(), same_as: same_as.clone(), ..cost }));
    }
    Ok((rows, timed.iter().map(|own| own.entrant.name.clone()).collect()))
}

/// A run as measurements name it.
fn name_of(entrant: &Entrant, run: &EntrantRun) -> String {
    format!("{}-seed{}", entrant.name, run.seed)
}

/// A run, what it translates, and what it looks at.
type Tested = (LoadedModel, Vec<Translation>, Looked);

/// Tests one run, or finds that done; nearly all of the work of measuring it.
fn test_run(
    entrant: &Entrant,
    run: &EntrantRun,
    prepared: &Prepared,
    store: &Store,
    progress: &mut Progress,
    work: f64,
) -> Result<Tested> {
    let Prepared { test, adapter, decoding, .. } = prepared;
    let name = name_of(entrant, run);
    let run = Run::open(&run.folder)?;
    let observer = progress.observer().clone();
    let loaded = run.load_model(adapter, None, |line| observer.warn(&line))?;
    let decoding = &decoding.clone().with_cap_of(&loaded.config.decoding);
    let key = key_of(&run, &loaded, decoding, &test.sha256)?;
    let testing = |part: f64| progress.at(&format!("testing {name}"), work * part);
    let make = || translations(&loaded, &test.pairs, decoding, &*observer, testing);
    let (translations, is_found) = store.get(&format!("{name}.translations"), &key, make)?;
    progress.finish(work, is_found);
    let texts: Vec<&str> = translations.iter().map(|translation| translation.text.as_str()).collect();
    progress.at(&format!("looking at {name}"), 0.0);
    let (looked, _) = store.get(&format!("{name}.attention"), &key, || look(&loaded, &texts, test, &*observer))?;
    Ok((loaded, translations, looked))
}

/// Everything about one contestant that needs its parameters.
fn measure(entrant: &Entrant, prepared: &Prepared, store: &Store, progress: &mut Progress) -> Result<Found> {
    let Prepared { test, .. } = prepared;
    let config = &entrant.config;
    let (mut finished_runs, mut written, mut seen, mut all_curves) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut best, mut last) = (Vec::new(), None);
    for entrant_run in &entrant.runs {
        // It has been tested, and counted.
        let (loaded, translations, looked) = test_run(entrant, entrant_run, prepared, store, progress, 0.0)?;
        let (train, valid) = curves::read(&Run::open(&entrant_run.folder)?);
        all_curves.push(Curve { contestant: entrant.name.clone(), seed: entrant_run.seed, train, valid });
        finished_runs.push(finished(&entrant_run.folder, config)?);
        best.push(loaded.updates);
        written.push(translations);
        seen.push(looked);
        last = Some(loaded);
    }
    let loaded = last.ok_or_else(|| Error::message("a contestant has no runs"))?;
    let vocabularies = run::vocabularies(&loaded.tokenizers);
    let n = test.trained_length.max(1);
    let flops = config.model.family().forward_flops(vocabularies, n) / n as f64;
    let contestant = Contestant {
        name: entrant.name.clone(),
        model: config.model.family().words(),
        family: config.model.family().name().into(),
        seeds: entrant.runs.iter().map(|run| run.seed).collect(),
        runs: entrant.runs.iter().map(|run: &EntrantRun| run.folder.display().to_string()).collect(),
        parameters: loaded.model.num_params(),
        learning_rate: config.training.learning_rate,
        dropout_rate: config.model.family().dropout_rate(),
        updates: finished_runs.iter().map(|finished| finished.updates).collect(),
        best_update: best,
        train_tokens: finished_runs.iter().map(|finished| finished.tokens).collect(),
        train_seconds: finished_runs.iter().map(|finished| finished.seconds).collect(),
        cut_answers: written.iter().map(|all| all.iter().filter(|answer| !answer.is_complete).count()).collect(),
        training_flops_per_token: costs::TRAINING * flops,
        decoding_flops_per_token: flops,
    };
    Ok(Found {
        contestant,
        finished: finished_runs,
        translations: written,
        looked: seen,
        curves: all_curves,
        vocabularies,
        is_lowercase: loaded.tokenizers.config().target().is_lowercase(),
    })
}

/// What translations depend on: the parameters, the test data and the search.
fn key_of(run: &Run, loaded: &LoadedModel, decoding: &DecodingConfig, test: &str) -> Result<String> {
    let manifest = run.folder().checkpoint(&loaded.checkpoint).join("manifest.json");
    let manifest = std::fs::read_to_string(&manifest).map_err(Error::io(&manifest))?;
    let decoding = serde_json::to_string(decoding).expect("plain data");
    // Once the end was a word as any in answers whose length the source decides.
    let rule = if loaded.config.model.family().answer_len(1).is_some() { " of known length" } else { "" };
    Ok(format!("{test} {} {decoding} {}{rule}", loaded.checkpoint, crate::data::random::hash(manifest.as_bytes())))
}
