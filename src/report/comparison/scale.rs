//! From numbers to places on an axis, and where the axis is marked.

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Equal steps are equal distances.
    Linear,
    /// Equal factors are equal distances, marked at powers of two.
    PowersOfTwo,
    /// Equal factors are equal distances, marked at powers of ten.
    PowersOfTen,
}

/// An axis with its ends.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    division: Division,
    low: f64,
    high: f64,
}

impl Scale {
    /// The scale that holds `values`, with round ends; `fixed` sets the ends of a linear one.
    pub fn new(division: Division, values: impl Iterator<Item = f64> + Clone, fixed: Option<[f64; 2]>) -> Self {
        let values = values.filter(|value| value.is_finite() && (division == Division::Linear || *value > 0.0));
        let mut low = values.clone().fold(f64::INFINITY, f64::min);
        let mut high = values.fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        match division {
            Division::Linear => {
                if let Some([least, most]) = fixed {
                    (low, high) = (least, most);
                } else {
                    let step = step(high - low.min(0.0));
                    low = if low < 0.0 { (low / step).floor() * step } else { 0.0 };
                    high = (high / step).ceil() * step;
                }
            }
            Division::PowersOfTwo => {
                // The ends are the values themselves: lengths are chosen.
            }
            Division::PowersOfTen => {
                (low, high) = (round_down(low), 1.0 / round_down(1.0 / high));
            }
        }
        if low == high {
            high = if division == Division::Linear { low + 1.0 } else { low * 2.0 };
        }
        Self { division, low, high }
    }

    /// The place of a value between 0, the low end, and 1, the high one; none where it has none.
    pub fn place(&self, value: f64) -> Option<f64> {
        let part = match self.division {
            Division::Linear => (value - self.low) / (self.high - self.low),
            _ => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        part.is_finite().then_some(part.clamp(0.0, 1.0))
    }

    /// The marks.
    pub fn ticks(&self) -> Vec<f64> {
        match self.division {
            Division::Linear => {
                let step = step(self.high - self.low);
                let first = (self.low / step - 1e-9).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                (first..=last).map(|i| i as f64 * step).collect()
            }
            Division::PowersOfTwo => powers(2.0, self.low, self.high),
            Division::PowersOfTen if self.high / self.low < 50.0 => {
                let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
                let marks = decades.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
                marks.filter(|mark| (self.low * 0.999..=self.high * 1.001).contains(mark)).collect()
            }
            Division::PowersOfTen => powers(10.0, self.low, self.high),
        }
    }
}

fn powers(base: f64, low: f64, high: f64) -> Vec<f64> {
    let first = (low.ln() / base.ln() - 1e-9).ceil() as i32;
    let last = (high.ln() / base.ln() + 1e-9).floor() as i32;
    // No more than fit.
    let stride = ((last - first) / 9 + 1) as usize;
    (first..=last).step_by(stride).map(|power| base.powi(power)).collect()
}

/// The largest of 1, 2 and 5 times a power of ten that is not above `value`.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let digit = [5.0, 2.0].into_iter().find(|digit| digit * power <= value * 1.000001);
    digit.unwrap_or(1.0) * power
}

/// A round step that divides `range` into about five.
fn step(range: f64) -> f64 {
    let rough = (range / 5.0).max(1e-12);
    let power = 10f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|digit| digit * power >= rough * 0.999);
    digit.unwrap_or(10.0) * power
}

/// A number as short as can be read: `0.03`, `1.5`, `200`, `16 k`, `2 M`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let trimmed = |text: String| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    };
    match size {
        0.0 => "0".into(),
        _ if size < 1e-3 => {
            let text = format!("{value:.0e}");
            match text.split_once('e') {
                Some(("1", power)) => format!("1e{power}"),
                _ => text,
            }
        }
        _ if size < 0.1 => trimmed(format!("{value:.3}")),
        _ if size < 10.0 => trimmed(format!("{value:.2}")),
        _ if size < 1e4 => trimmed(format!("{value:.1}")),
        _ if size < 1e6 => format!("{} k", trimmed(format!("{:.1}", value / 1e3))),
        _ if size < 1e9 => format!("{} M", trimmed(format!("{:.1}", value / 1e6))),
        _ => format!("{} G", trimmed(format!("{:.1}", value / 1e9))),
    }
}
