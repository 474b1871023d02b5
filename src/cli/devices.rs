//! `lookback devices`.

use super::output::print_json;
use super::print;
use crate::backend::{Adapter, Backend};
use crate::error::{Error, Result};
use crate::kernels::machine::InstructionSet;
use crate::trust::child;
use crate::trust::work::{self, Depth, Difference};
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Args, Debug)]
#[command(after_help = "Each backend is checked in its own process, so a crash of a driver becomes a row of the table.

Examples:
  lookback devices
  lookback devices --check
  lookback devices --check --backend wgpu --json")]
pub(super) struct DevicesArgs {
    /// Run forward, backward and one update of every model on every backend and print the largest difference from flex.
    #[arg(long)]
    check: bool,
    /// This backend alone.
    #[arg(short, long)]
    backend: Option<Backend>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(super) struct CheckBackendArgs {
    /// The backend.
    backend: Backend,
    /// Its device.
    #[arg(long, default_value_t = 0)]
    device: usize,
    /// Every model, not two.
    #[arg(long)]
    all: bool,
}

/// The work of the child process: a line for each model.
pub(super) fn check_backend(args: CheckBackendArgs) -> Result<()> {
    let adapter = args.backend.nth(args.device)?;
    let depth = if args.all { Depth::All } else { Depth::Quick };
    work::compare(&adapter, &Backend::Flex.open()?, depth, print_json)
}

pub(super) fn run(args: DevicesArgs) -> Result<()> {
    if let Some(backend) = args.backend.filter(|_| args.check) {
        check_checkable(backend)?;
    }
    let backends: Vec<Backend> = match args.backend {
        None => Backend::ALL[1..].to_vec(),
        Some(Backend::Auto) => vec![Backend::Auto.open()?.backend],
        Some(backend) => vec![backend],
    };
    let mut rows = Vec::new();
    for backend in &backends {
        rows.push(row(*backend));
    }
    let auto = Backend::Auto.open();
    if !args.json {
        for (backend, row) in backends.iter().zip(&rows) {
            print(&lines(*backend, row))?;
        }
        match &auto {
            Ok(adapter) if adapter.backend.is_host() => print(&format!("auto         is {} here\n", adapter.backend))?,
            Ok(adapter) => {
                print(&format!("auto         is {} or a CPU here: what a model is faster on\n", adapter.backend))?
            }
            Err(error) => print(&format!("auto         {error}\n"))?,
        }
    }
    let checks = if args.check { check(&backends, args.json)? } else { Vec::new() };
    let failed = checks.iter().any(|check| check.verdict != CheckVerdict::Agrees);
    if args.json {
        let devices = Devices { backends: rows, auto: auto.ok().map(|adapter| adapter.backend), checks };
        print_json(&devices)?;
    }
    if failed {
        return Err(Error::message("a backend computes something else than flex, or nothing; do not train on it"));
    }
    Ok(())
}

/// Refuses a backend that is named and for which `--check` has nothing to compare.
///
/// # Errors
/// If it is flex, is not in this build, or has no adapter.
fn check_checkable(backend: Backend) -> Result<()> {
    if backend == Backend::Flex {
        let message =
            "--check: flex is what the other backends are compared with; name another one, or leave --backend out";
        return Err(Error::message(message));
    }
    backend.candidates().map(drop)
}

/// What `lookback devices --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "lookback devices --json")]
pub(super) struct Devices {
    backends: Vec<BackendRow>,
    /// The first that `backend = "auto"` tries here. A GPU is taken if it is faster than the CPU for the model at hand.
    auto: Option<Backend>,
    /// With `--check`.
    checks: Vec<Check>,
}

/// What there is of a backend.
#[derive(Serialize, JsonSchema)]
struct BackendRow {
    backend: Backend,
    /// Whether it is in this build.
    compiled: bool,
    /// The cargo feature that it needs.
    feature: &'static str,
    /// What has to be installed to build it.
    builds_with: &'static str,
    /// What has to be installed to run it.
    runs_with: &'static str,
    /// What it can run on here.
    adapters: Vec<ShownAdapter>,
}

/// Something that a backend can run on.
#[derive(Serialize, JsonSchema)]
struct ShownAdapter {
    /// What `--device` calls it.
    number: usize,
    name: String,
    /// What it is; empty for the CPU.
    device: String,
    /// Its driver; empty for the CPU.
    driver: String,
    /// Whether the CPU emulates it.
    software: bool,
    /// The instructions that operations use, of the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

/// What a check found.
#[derive(Serialize, JsonSchema)]
struct Check {
    backend: Backend,
    /// Of one model; nothing if the backend failed as a whole.
    #[serde(flatten)]
    difference: Option<Difference>,
    verdict: CheckVerdict,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum CheckVerdict {
    Agrees,
    Disagrees,
    Failed,
}

fn row(backend: Backend) -> BackendRow {
    let facts = backend.facts();
    let mut adapters: Vec<ShownAdapter> = Vec::new();
    for adapter in backend.adapters() {
        let Adapter { number, name, is_software, .. } = &adapter;
        let (device, driver) = if backend.is_host() { Default::default() } else { adapter.driver() };
        // Some drivers list one adapter several times.
        let is_same =
            |other: &ShownAdapter| (&other.device, &other.driver, other.software) == (&device, &driver, *is_software);
        if !adapters.iter().any(is_same) {
            let instructions = backend.is_host().then(|| InstructionSet::in_use().to_string());
            let (number, name, software) = (*number, name.clone(), *is_software);
            adapters.push(ShownAdapter { number, name, device, driver, software, instructions });
        }
    }
    BackendRow {
        backend,
        compiled: backend.is_compiled(),
        feature: facts.feature,
        builds_with: facts.builds_with,
        runs_with: facts.runs_with,
        adapters,
    }
}

fn lines(backend: Backend, row: &BackendRow) -> String {
    let name = backend.name();
    if !backend.is_compiled() {
        let needs = match backend.facts().builds_with {
            "nothing" => String::new(),
            needs => format!(" (needs {needs})"),
        };
        return format!("{name:<8}     not in this build; build with --features {name}{needs}\n");
    }
    if row.adapters.is_empty() {
        return format!("{name:<8}     no adapter on this machine (needs {})\n", backend.facts().runs_with);
    }
    let line = |adapter: &ShownAdapter| {
        let parts = [&adapter.device, &adapter.driver].map(|part| match part.as_str() {
            // Where nothing is known of the device, it is called by its number alone.
            part if part.is_empty() || part == adapter.name => String::new(),
            part => format!(": {part}"),
        });
        let software = if adapter.software { "  (emulated by the CPU)" } else { "" };
        let instructions = adapter.instructions.as_ref().map(|set| format!(", {set}")).unwrap_or_default();
        format!(
            "{name:<8} {:>2}  {}{}{}{instructions}{software}\n",
            adapter.number,
            adapter.name,
            parts[0],
            parts[1].replacen(": ", ", driver ", 1)
        )
    };
    row.adapters.iter().map(line).collect()
}

/// Compares every model on every backend with flex, each backend in a process of its own.
fn check(backends: &[Backend], is_silent: bool) -> Result<Vec<Check>> {
    let say = |text: String| if is_silent { Ok(()) } else { print(&text) };
    say("\nlargest difference from flex, relative to the largest value of the same tensor:\n".into())?;
    let mut found = Vec::new();
    for backend in backends {
        let adapters = backend.adapters();
        let Some(best) = adapters.first().filter(|_| *backend != Backend::Flex) else { continue };
        let name = backend.name();
        match child::run(best, Depth::All) {
            Ok(differences) => {
                for difference in differences {
                    let (verdict, word) = match difference.agrees() {
                        true => (CheckVerdict::Agrees, "agrees"),
                        false => (CheckVerdict::Disagrees, "DISAGREES"),
                    };
                    let Difference { model, difference: largest, at, bits_of_products } = &difference;
                    let lost = bits_of_products.filter(|_| verdict == CheckVerdict::Disagrees);
                    let products = lost.map(work::said_of_products).unwrap_or_default();
                    say(format!("{model:<12}  {name:<8}  {largest:.1e} at {at}{products}  {word}\n"))?;
                    found.push(Check { backend: *backend, difference: Some(difference), verdict, fault: None });
                }
            }
            Err(fault) => {
                say(format!("{:<12}  {name:<8}  {fault}  FAILED\n", "-"))?;
                let verdict = CheckVerdict::Failed;
                let fault = Some(fault.to_string());
                found.push(Check { backend: *backend, difference: None, verdict, fault });
            }
        }
    }
    Ok(found)
}
