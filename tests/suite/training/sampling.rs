//! Scheduled sampling: how the rate falls, and that a run with it can be resumed.

use super::resume::resumes_from_every_checkpoint;
use super::*;
use lookback::backend::Backend;
use lookback::training::ScheduledSampling;
use tempfile::TempDir;

/// An RNN that feeds its input, with local attention, dropout and words of its own.
const SAMPLED: &str = r#"
[model]
kind = "rnn"
cell = "lstm"
n_layers = 2
residual = true
d_embedding = 8
d_hidden = 12
attention = { kind = "luong", score = { kind = "general" }, window = { kind = "local-p", half_width = 2 } }
readout = { kind = "state" }
dropout_rate = 0.2
[training.scheduled_sampling]
kind = "linear"
updates = 10
floor = 0.2
"#;

#[test]
fn the_probability_of_the_true_word_falls_as_in_the_paper() {
    // Bengio et al. 2015, section 2.4, by hand.
    let linear = ScheduledSampling::Linear { updates: 100, floor: 0.25 };
    let exponential = ScheduledSampling::Exponential { k: 0.5 };
    let inverse_sigmoid = ScheduledSampling::InverseSigmoid { k: 10.0 };
    for (schedule, update, expected) in [
        (ScheduledSampling::None {}, 1, 1.0),
        (ScheduledSampling::None {}, 1_000_000, 1.0),
        // max(floor, 1 - c i) with c = 0.75 / 100.
        (linear, 0, 1.0),
        (linear, 1, 1.0 - 0.0075),
        (linear, 40, 0.7),
        (linear, 100, 0.25),
        (linear, 5000, 0.25),
        // k^i.
        (exponential, 1, 0.5),
        (exponential, 3, 0.125),
        (exponential, 100_000, 0.0),
        // k / (k + exp(i / k)).
        (inverse_sigmoid, 0, 10.0 / 11.0),
        (inverse_sigmoid, 10, 10.0 / (10.0 + std::f64::consts::E)),
        // exp(ln 10) = 10: half.
        (ScheduledSampling::InverseSigmoid { k: 10.0 / 10f64.ln() }, 10, 1.0 / (1.0 + 10f64.ln())),
        (inverse_sigmoid, 100_000, 0.0),
    ] {
        let found = schedule.truth(update);
        assert!((found - expected).abs() < 1e-12, "{schedule:?} at update {update}: {found} instead of {expected}");
    }
    let half = (1..200).find(|update| inverse_sigmoid.truth(*update) <= 0.5).expect("it falls below one half");
    assert_eq!(half, 24, "k ln k = 23.03 updates");
}

#[test]
fn a_run_with_scheduled_sampling_goes_on_bit_by_bit_from_every_checkpoint() {
    resumes_from_every_checkpoint(SAMPLED, Backend::Flex);
    resumes_from_every_checkpoint(SAMPLED, Backend::Ndarray);
}

#[test]
fn true_words_alone_are_teacher_forcing_and_the_models_own_are_not() {
    let dir = TempDir::new().unwrap();
    let train = |name: &str, scheduled_sampling| {
        let mut config = tiny(SAMPLED);
        config.training.scheduled_sampling = scheduled_sampling;
        config.training.max_updates = 4;
        train_in(&dir.path().join(name), &config).unwrap();
        numbers(&dir.path().join(name), "train", "loss")
    };
    let forced = train("forced", ScheduledSampling::None {});
    assert_eq!(train("one", ScheduledSampling::Linear { updates: 1, floor: 1.0 }), forced);
    let own = train("own", ScheduledSampling::Linear { updates: 2, floor: 0.0 });
    assert_ne!(own, forced);
    // At update 1 half of the words are its own already.
    assert_ne!(own[0], forced[0]);
}

#[test]
fn a_sampled_run_is_measured_on_true_words() {
    // At so small a learning rate the update changes nothing: what is measured is the first model.
    let dir = TempDir::new().unwrap();
    let valid = |name: &str, scheduled_sampling| {
        let mut config = tiny(SAMPLED);
        config.training.scheduled_sampling = scheduled_sampling;
        config.training.max_updates = 1;
        config.training.learning_rate = 1e-30;
        train_in(&dir.path().join(name), &config).unwrap();
        numbers(&dir.path().join(name), "valid", "loss")
    };
    let sampled = valid("sampled", ScheduledSampling::Linear { updates: 1, floor: 0.0 });
    assert_eq!(valid("forced", ScheduledSampling::None {}), sampled);
}
