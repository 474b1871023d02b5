//! Backends by name. The only folder that names backend features.

mod adapter;
mod facts;
pub mod gpu;

pub use adapter::Adapter;
pub use facts::Facts;

use crate::error::{Error, Result};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use adapter::gpus;
use burn::tensor::Device;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use burn::tensor::DeviceType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Where tensors live and who computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// A real GPU if there is one and this model is faster there, else `flex`.
    #[default]
    Auto,
    /// burn's fast CPU backend.
    Flex,
    /// burn's older CPU backend.
    Ndarray,
    /// Any GPU through Vulkan, Metal, DirectX 12 or WebGPU.
    Wgpu,
    /// A GPU through Vulkan, with SPIR-V kernels.
    Vulkan,
    /// A GPU through Metal.
    Metal,
    /// An NVIDIA GPU.
    Cuda,
}

impl Backend {
    /// Every backend that can be named.
    pub const ALL: [Self; 7] =
        [Self::Auto, Self::Flex, Self::Ndarray, Self::Wgpu, Self::Vulkan, Self::Metal, Self::Cuda];

    /// The name used on the command line and in configs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Flex => "flex",
            Self::Ndarray => "ndarray",
            Self::Wgpu => "wgpu",
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
            Self::Cuda => "cuda",
        }
    }

    /// Whether the program was built with it.
    pub fn is_compiled(self) -> bool {
        match self {
            Self::Auto => true,
            Self::Flex => cfg!(feature = "flex"),
            Self::Ndarray => cfg!(feature = "ndarray"),
            Self::Wgpu => cfg!(feature = "wgpu"),
            Self::Vulkan => cfg!(feature = "vulkan"),
            Self::Metal => cfg!(feature = "metal"),
            Self::Cuda => cfg!(feature = "cuda"),
        }
    }

    /// Whether its tensors lie in the memory of this process, so that reading them is free.
    pub fn is_host(self) -> bool {
        matches!(self, Self::Flex | Self::Ndarray)
    }

    /// The devices of this backend that can be used, best first. Looked for once in a process: it takes a while, and drivers
    /// may write to standard error each time.
    pub fn adapters(self) -> Vec<Adapter> {
        static FOUND: [OnceLock<Vec<Adapter>>; Backend::ALL.len()] = [const { OnceLock::new() }; Backend::ALL.len()];
        let find = || {
            let mut found = self.find_adapters();
            if self != Self::Auto {
                found.iter_mut().enumerate().for_each(|(number, adapter)| adapter.number = number);
            }
            found
        };
        FOUND[self as usize].get_or_init(find).clone()
    }

    fn find_adapters(self) -> Vec<Adapter> {
        #[allow(deprecated)] // burn 0.22 deprecates `ndarray`; this project promises it for as long as burn has it.
        match self {
            Self::Auto => Self::ALL[1..].iter().flat_map(|backend| backend.adapters()).collect(),
            #[cfg(feature = "flex")]
            Self::Flex => vec![Adapter::cpu(self, Device::flex())],
            #[cfg(feature = "ndarray")]
            Self::Ndarray => vec![Adapter::cpu(self, Device::ndarray())],
            #[cfg(feature = "wgpu")]
            Self::Wgpu => gpus(self, DeviceType::Wgpu),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => gpus(self, DeviceType::Vulkan),
            #[cfg(feature = "metal")]
            Self::Metal => gpus(self, DeviceType::Metal),
            #[cfg(feature = "cuda")]
            Self::Cuda => gpus(self, DeviceType::Cuda),
            #[allow(unreachable_patterns)]
            _ => Vec::new(),
        }
    }

    /// Opens the backend on its best adapter; [`Backend::Auto`] becomes the backend that the adapter names.
    ///
    /// # Errors
    /// If it was not compiled in, or has no adapter; the message lists what there is.
    pub fn open(self) -> Result<Adapter> {
        Ok(self.candidates()?.remove(0))
    }

    /// Opens the backend's device number `n`, counted from 0 in the order of [`Backend::adapters`].
    ///
    /// # Errors
    /// If there is no such device, or this is [`Backend::Auto`], which has no devices of its own.
    pub fn nth(self, n: usize) -> Result<Adapter> {
        if self == Self::Auto {
            return Err(Error::message("--device is one of a backend's devices: name the backend too, not \"auto\""));
        }
        self.candidates()?;
        let there = self.adapters();
        there.get(n).cloned().ok_or_else(|| {
            let last = there.len() - 1;
            let which = if last == 0 { "device 0 alone".into() } else { format!("devices 0 to {last}") };
            Error::message(format!("backend \"{self}\" has no device {n}; it has {which} (`lookback devices`)"))
        })
    }

    /// The adapters that [`Backend::open`] would take, best first: for [`Backend::Auto`] one of each backend, GPUs that the CPU
    /// emulates left out.
    ///
    /// # Errors
    /// As [`Backend::open`]; there is at least one.
    pub fn candidates(self) -> Result<Vec<Adapter>> {
        if self == Self::Auto {
            let first = |backend: Self| backend.adapters().into_iter().find(|adapter| !adapter.is_software);
            let order = [Self::Cuda, Self::Metal, Self::Vulkan, Self::Wgpu, Self::Flex, Self::Ndarray];
            let found: Vec<Adapter> = order.into_iter().filter_map(first).collect();
            if found.is_empty() {
                let message = "no backend of this build can be used here; build with the feature \"flex\"";
                return Err(Error::message(message));
            }
            return Ok(found);
        }
        if !self.is_compiled() {
            let compiled: Vec<_> = Self::ALL.iter().filter(|backend| backend.is_compiled()).map(|b| b.name()).collect();
            return Err(Error::message(format!(
                "backend \"{self}\" is not in this build, which has {}; build with `--features {self}`",
                compiled.join(", ")
            )));
        }
        let first: Vec<Adapter> = self.adapters().into_iter().take(1).collect();
        if first.is_empty() {
            let usable: Vec<_> =
                Self::ALL[1..].iter().filter(|backend| !backend.adapters().is_empty()).map(|b| b.name()).collect();
            return Err(Error::message(format!(
                "backend \"{self}\" finds no adapter on this machine; usable here: {}",
                usable.join(", ")
            )));
        }
        Ok(first)
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|backend| backend.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|backend| backend.name()).collect();
            format!("unknown backend \"{name}\"; there are {}", names.join(", "))
        })
    }
}

/// The features of this build on which it depends how kernels for a GPU are compiled.
pub fn kernel_features() -> Vec<&'static str> {
    let all = [
        ("vulkan", cfg!(feature = "vulkan")),
        ("metal", cfg!(feature = "metal")),
        ("autotune", cfg!(feature = "autotune")),
        ("fusion", cfg!(feature = "fusion")),
    ];
    all.into_iter().filter_map(|(name, is_built)| is_built.then_some(name)).collect()
}

/// Whether the tensors of `device` lie in the memory of this process, so that reading and writing them costs nothing.
pub fn is_host(device: &Device) -> bool {
    #[allow(deprecated)]
    let hosts: [Device; cfg!(feature = "flex") as usize + cfg!(feature = "ndarray") as usize] = [
        #[cfg(feature = "flex")]
        Device::flex(),
        #[cfg(feature = "ndarray")]
        Device::ndarray(),
    ];
    // Equality of devices does not look at autodiff.
    hosts.contains(device)
}
