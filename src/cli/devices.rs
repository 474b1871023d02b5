//! `lookback devices`.

use super::print;
use crate::backend::{Adapter, Backend};
use crate::error::{Error, Result};
use crate::trust::child;
use crate::trust::work::{self, Depth, Difference};
use clap::Args;
use serde_json::{Value, json};

#[derive(Args, Debug)]
#[command(
    after_help = "Each backend is checked in a process of its own, so that a driver that ends it is a row of the table.

Examples:
  lookback devices
  lookback devices --check
  lookback devices --check --backend wgpu --json"
)]
pub(super) struct DevicesArgs {
    /// Run forward, backward and one update of every model on every backend and print the largest difference from flex.
    #[arg(long)]
    check: bool,
    /// This backend alone.
    #[arg(long)]
    backend: Option<Backend>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(super) struct CheckBackendArgs {
    /// The backend.
    backend: Backend,
    /// Every model, not two.
    #[arg(long)]
    all: bool,
}

/// The work of the child process: a line for each model.
pub(super) fn check_backend(args: CheckBackendArgs) -> Result<()> {
    let adapter = args.backend.open()?;
    let depth = if args.all { Depth::All } else { Depth::Quick };
    work::compare(&adapter, &Backend::Flex.open()?, depth, |difference| {
        print(&(serde_json::to_string(difference).expect("plain data") + "\n"))
    })
}

pub(super) fn run(args: DevicesArgs) -> Result<()> {
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
            Ok(adapter) => print(&format!("auto      is {} here\n", adapter.backend))?,
            Err(error) => print(&format!("auto      {error}\n"))?,
        }
    }
    let checks = if args.check { check(&backends, args.json)? } else { Vec::new() };
    let failed = checks.iter().any(|check| check["verdict"] != "agrees");
    if args.json {
        let object = json!({ "backends": rows, "auto": auto.ok().map(|adapter| adapter.backend), "checks": checks });
        print(&format!("{object}\n"))?;
    }
    if failed {
        return Err(Error::message("a backend computes something else than flex, or nothing; do not train on it"));
    }
    Ok(())
}

/// What there is of a backend.
fn row(backend: Backend) -> Value {
    let facts = backend.facts();
    let mut adapters: Vec<Value> = Vec::new();
    for adapter in backend.adapters() {
        let Adapter { name, is_software, .. } = &adapter;
        let (device, driver) = if backend.is_host() { Default::default() } else { adapter.driver() };
        let found = json!({ "name": name, "device": device, "driver": driver, "software": is_software });
        // Some drivers list one adapter several times.
        let same = |other: &Value| ["device", "driver", "software"].iter().all(|key| other[*key] == found[*key]);
        if !adapters.iter().any(same) {
            adapters.push(found);
        }
    }
    json!({
        "backend": backend, "compiled": backend.is_compiled(), "feature": facts.feature, "builds_with": facts.builds_with,
        "runs_with": facts.runs_with, "adapters": adapters,
    })
}

fn lines(backend: Backend, row: &Value) -> String {
    let name = backend.name();
    if !backend.is_compiled() {
        let needs = match backend.facts().builds_with {
            "nothing" => String::new(),
            needs => format!(" (needs {needs})"),
        };
        return format!("{name:<8}  not in this build; build with --features {name}{needs}\n");
    }
    let adapters = row["adapters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if adapters.is_empty() {
        return format!("{name:<8}  no adapter on this machine (needs {})\n", backend.facts().runs_with);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let line = |adapter: &Value| {
        let parts = [text(&adapter["device"]), text(&adapter["driver"])].map(|part| match part.as_str() {
            "" => String::new(),
            part => format!(": {part}"),
        });
        let software = if adapter["software"] == true { "  (emulated by the CPU)" } else { "" };
        format!(
            "{name:<8}  {}{}{}{software}\n",
            text(&adapter["name"]),
            parts[0],
            parts[1].replacen(": ", ", driver ", 1)
        )
    };
    adapters.iter().map(line).collect()
}

/// Compares every model on every backend with flex, each backend in a process of its own.
fn check(backends: &[Backend], is_silent: bool) -> Result<Vec<Value>> {
    let say = |text: String| if is_silent { Ok(()) } else { print(&text) };
    say("\nlargest difference from flex, relative to the largest value of the same tensor:\n".into())?;
    let mut found = Vec::new();
    for backend in backends {
        if *backend == Backend::Flex || backend.adapters().is_empty() {
            continue;
        }
        let name = backend.name();
        match child::run(*backend, Depth::All) {
            Ok(differences) => {
                for difference in differences {
                    let verdict = if difference.agrees() { "agrees" } else { "DISAGREES" };
                    let Difference { model, difference, at } = difference;
                    say(format!("{model:<12}  {name:<8}  {difference:.1e} at {at}  {verdict}\n"))?;
                    let verdict = verdict.to_lowercase();
                    found.push(json!({
                        "backend": backend, "model": model, "difference": difference, "at": at, "verdict": verdict,
                    }));
                }
            }
            Err(fault) => {
                say(format!("{:<12}  {name:<8}  {fault}  FAILED\n", "-"))?;
                found.push(json!({ "backend": backend, "verdict": "failed", "fault": fault }));
            }
        }
    }
    Ok(found)
}
