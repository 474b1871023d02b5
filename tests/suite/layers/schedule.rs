//! Learning rates at points computed by hand.

use lookback::training::schedule::{Pace, Schedule, ScheduleParameters};

/// Both sides compute in 64 bits.
const TOLERANCE: f64 = 1e-12;

const PARAMETERS: ScheduleParameters =
    ScheduleParameters { learning_rate: 0.4, warmup_updates: 100, horizon: 500, final_fraction: 0.25, d_model: 64 };

fn check(schedule: Schedule, points: &[(u64, f64)]) {
    for (update, expected) in points {
        let rate = schedule.rate(*update, &PARAMETERS);
        assert!((rate - expected).abs() < TOLERANCE, "{schedule:?} at {update} is {rate} instead of {expected}");
    }
}

#[test]
fn every_schedule_begins_with_a_linear_warm_up() {
    for schedule in [Schedule::Constant, Schedule::InverseSqrt, Schedule::Cosine, Schedule::Linear] {
        check(schedule, &[(1, 0.004), (25, 0.1), (50, 0.2), (99, 0.396), (100, 0.4)]);
    }
}

#[test]
fn the_constant_schedule_stays() {
    check(Schedule::Constant, &[(101, 0.4), (500, 0.4), (9999, 0.4)]);
}

#[test]
fn the_inverse_square_root_is_halved_when_the_update_is_four_times_the_warm_up() {
    check(Schedule::InverseSqrt, &[(400, 0.2), (900, 0.4 / 3.0), (10_000, 0.04)]);
}

#[test]
fn the_linear_schedule_falls_along_a_line_and_then_stays() {
    check(Schedule::Linear, &[(200, 0.4 * 0.8125), (300, 0.25), (500, 0.1), (501, 0.1), (9999, 0.1)]);
}

#[test]
fn the_cosine_schedule_is_half_way_in_the_middle_and_then_stays() {
    // At a third of the way the cosine is 1/2, so three quarters of the fall are left.
    let third = ScheduleParameters { horizon: 400, ..PARAMETERS };
    let rate = Schedule::Cosine.rate(200, &third);
    assert!((rate - 0.4 * (0.25 + 0.75 * 0.75)).abs() < TOLERANCE, "{rate}");
    check(Schedule::Cosine, &[(300, 0.25), (500, 0.1), (501, 0.1), (9999, 0.1)]);
}

#[test]
fn the_schedule_of_the_transformer_paper_peaks_where_the_warm_up_ends() {
    // 64^-0.5 = 1/8: at 100 it is 0.4 / 8 / 10, at 400 half of that, at 25 a quarter of it.
    check(Schedule::Noam, &[(100, 0.005), (400, 0.0025), (25, 0.00125), (1, 0.00005)]);
}

#[test]
fn without_a_warm_up_the_first_update_has_the_full_rate() {
    let none = ScheduleParameters { warmup_updates: 0, ..PARAMETERS };
    for schedule in [Schedule::Constant, Schedule::InverseSqrt] {
        assert_eq!(schedule.rate(1, &none), 0.4, "{schedule:?}");
    }
    assert!((Schedule::Noam.rate(1, &none) - 0.05).abs() < TOLERANCE);
    assert!((Schedule::Linear.rate(250, &none) - 0.4 * 0.625).abs() < TOLERANCE);
}

#[test]
fn a_warm_up_as_long_as_training_never_falls() {
    let all = ScheduleParameters { warmup_updates: 500, ..PARAMETERS };
    for schedule in [Schedule::Constant, Schedule::InverseSqrt, Schedule::Cosine, Schedule::Linear] {
        assert!((schedule.rate(499, &all) - 0.3992).abs() < TOLERANCE, "{schedule:?}");
        assert!((schedule.rate(500, &all) - 0.4).abs() < TOLERANCE, "{schedule:?}");
    }
}

#[test]
fn the_horizon_is_where_the_time_will_be_up() {
    let pace = Pace { updates: 20, seconds_left: 100.0, update: 0.5, validation: 50.0, validate_every: 100 };
    // A validation adds half a second to each update.
    assert_eq!(pace.horizon(), 120);
    assert_eq!(Pace { validation: 0.0, ..pace }.horizon(), 220);
    assert_eq!(Pace { seconds_left: -1.0, ..pace }.horizon(), 20);
}
