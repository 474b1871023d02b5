//! Which adapters were found to agree, in the user's cache folder.

use crate::backend::{self, Adapter};
use crate::files;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// An adapter, as far as its results depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    backend: String,
    device: String,
    /// The driver with its version.
    driver: String,
    /// The version of this program.
    version: String,
    /// The features of this build that choose which kernels run.
    #[serde(default)]
    features: String,
}

impl Identity {
    /// That of an adapter, which is not opened for it: opening may be what fails.
    pub fn of(adapter: &Adapter) -> Self {
        let (device, driver) = adapter.driver();
        let version = env!("CARGO_PKG_VERSION").to_string();
        let features = backend::kernel_features().join(" ");
        Self { backend: adapter.backend.to_string(), device, driver, version, features }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.backend, self.device)?;
        if self.driver.is_empty() { Ok(()) } else { write!(f, ", driver {}", self.driver) }
    }
}

/// Whether an adapter was found to agree before.
pub fn knows(identity: &Identity) -> bool {
    read().contains(identity)
}

/// Remembers an adapter. Where that cannot be written down, it is checked again next time.
pub fn add(identity: &Identity) {
    let Some(path) = path() else { return };
    let mut known = read();
    known.retain(|other| other != identity);
    known.push(identity.clone());
    let text = serde_json::to_string_pretty(&known).expect("plain data");
    let folder = path.parent().expect("a file in a folder");
    let _ = std::fs::create_dir_all(folder).map(|()| files::replace(&path, text.as_bytes()));
}

/// What is written down; nothing if it is damaged.
fn read() -> Vec<Identity> {
    let text = path().and_then(|path| std::fs::read_to_string(path).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn path() -> Option<PathBuf> {
    Some(dirs::cache_dir()?.join("lookback").join("backends.json"))
}
