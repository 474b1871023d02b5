//! A backend is checked before it is trusted.
//!
//! A driver may end the process at the first kernel, or compute something else than was asked for, and training would not notice.
//! So the first time that this machine meets an adapter with its driver, a child process ([`child`]) computes forward, backward
//! and one update of two small models there and on flex ([`work`]). What agrees is remembered and never checked
//! again; what does not is refused, with what was seen.

pub mod child;
mod record;
pub mod work;

use crate::backend::{Adapter, Backend};
use crate::error::{Error, Result};
use crate::training::Observer;
use record::Identity;
use std::time::Instant;

/// Whether adapters are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// The first time.
    #[default]
    Once,
    /// Also where it was done before.
    Again,
    /// Never.
    Never,
}

/// Opens a backend whose adapter can be trusted, its device `device` if one is named; [`Backend::Auto`] becomes the first that can. `observer` hears
/// what is checked and refused.
///
/// # Errors
/// If there is no adapter, or what it computes is not what flex computes.
pub fn open(backend: Backend, device: Option<usize>, check: Check, observer: &dyn Observer) -> Result<Adapter> {
    let candidates = device.map_or_else(|| backend.candidates(), |n| Ok(vec![backend.nth(n)?]))?;
    let n = candidates.len();
    for (i, adapter) in candidates.into_iter().enumerate() {
        match trust(&adapter, check, observer) {
            Ok(()) => return Ok(adapter),
            Err(error) if backend == Backend::Auto && i + 1 < n => observer.warn(&format!("{error}; taking another")),
            Err(error) => return Err(error),
        }
    }
    unreachable!("there is a candidate, or an error")
}

/// As [`open`]; behind a GPU that [`Backend::Auto`] has found stands the CPU, for whoever finds out which of them is faster.
///
/// # Errors
/// As [`open`].
pub fn open_rivals(
    backend: Backend,
    device: Option<usize>,
    check: Check,
    observer: &dyn Observer,
) -> Result<Vec<Adapter>> {
    let best = open(backend, device, check, observer)?;
    let cpu = match backend {
        Backend::Auto if !best.backend.is_host() => backend.candidates()?.into_iter().find(|a| a.backend.is_host()),
        _ => None,
    };
    Ok(std::iter::once(best).chain(cpu).collect())
}

/// Refuses an adapter that cannot be trusted.
fn trust(adapter: &Adapter, check: Check, observer: &dyn Observer) -> Result<()> {
    // These are the reference, and its predecessor of the same authors; both are tested as a part of this program.
    if check == Check::Never || adapter.backend.is_host() {
        return Ok(());
    }
    let identity = Identity::of(adapter);
    if check == Check::Once && record::knows(&identity) {
        return Ok(());
    }
    observer.say(&format!("check    {identity} against flex, once for this driver and program"));
    let start = Instant::now();
    let seen = child::run(adapter, work::Depth::Quick);
    let fault = match seen {
        Ok(differences) => match work::worst(&differences) {
            worst if worst.agrees() => {
                record::add(&identity);
                let seconds = start.elapsed().as_secs_f64();
                observer.say(&format!("check    agrees to {:.0e} after {seconds:.1} s", worst.difference));
                return Ok(());
            }
            worst => worst.to_string(),
        },
        Err(fault) => fault,
    };
    Err(Error::message(format!(
        "{identity} cannot be trusted: {fault}; take another --backend or another driver (--no-check takes it as it is)"
    )))
}
