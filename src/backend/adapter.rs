//! Devices that can be used, with their drivers.

use super::Backend;
#[cfg(feature = "wgpu")]
use burn::backend::WgpuDeviceKind;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use burn::backend::{CubeDevice, DispatchDevice};
use burn::tensor::Device;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use burn::tensor::DeviceType;
#[cfg(feature = "wgpu")]
use std::sync::OnceLock;

/// A device that can be used.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// The backend that reaches it.
    pub backend: Backend,
    /// Its place among the devices of that backend.
    pub number: usize,
    /// What the backend calls it.
    pub name: String,
    /// Whether it is a GPU emulated by the CPU: right, and slow.
    pub is_software: bool,
    /// Tensors are made here.
    pub device: Device,
}

impl Adapter {
    /// What the device calls itself, and its driver with the version. Neither opens the device.
    pub fn driver(&self) -> (String, String) {
        #[cfg(feature = "wgpu")]
        if matches!(self.backend, Backend::Wgpu | Backend::Vulkan | Backend::Metal) {
            // Adapters of one kind are told apart by their place among them, here as there.
            let (kind, place) = wgpu_kind(&self.device);
            if let Some(info) = wgpu_adapters().iter().filter(|info| info.device_type == kind).nth(place) {
                return (info.name.clone(), format!("{} {}", info.driver, info.driver_info).trim().to_string());
            }
        }
        let said = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        (only_nvidia_card().unwrap_or_else(|| self.name.clone()), nvidia_version(&said))
    }

    /// The name that the device gives itself, where it has one. This opens the device.
    pub fn own_name(&self) -> Option<String> {
        #[cfg(any(feature = "wgpu", feature = "cuda"))]
        if !self.backend.is_host() {
            return self.device.identity().map(|identity| identity.name);
        }
        None
    }

    #[cfg(any(feature = "flex", feature = "ndarray"))]
    pub(super) fn cpu(backend: Backend, device: Device) -> Self {
        let threads = rayon::current_num_threads();
        let s = if threads == 1 { "" } else { "s" };
        Self { backend, number: 0, name: format!("CPU, {threads} thread{s}"), is_software: false, device }
    }
}

/// What wgpu finds on this machine, asked once.
#[cfg(feature = "wgpu")]
fn wgpu_adapters() -> &'static [wgpu::AdapterInfo] {
    use std::task::{Context, Poll, Waker};
    static FOUND: OnceLock<Vec<wgpu::AdapterInfo>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapters = std::pin::pin!(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
        // Outside a browser the answer is there at once.
        match adapters.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(adapters) => adapters.iter().map(wgpu::Adapter::get_info).collect(),
            Poll::Pending => Vec::new(),
        }
    })
}

/// The driver in what NVIDIA's kernel module says of itself, called as Vulkan calls it; empty if there is none.
fn nvidia_version(said: &str) -> String {
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let first = said.lines().next().unwrap_or_default();
    first.split_whitespace().find(is_version).map(|version| format!("NVIDIA {version}")).unwrap_or_default()
}

/// What NVIDIA's kernel module calls the card, where it has one alone: the order of several is not that of CUDA.
fn only_nvidia_card() -> Option<String> {
    let cards: Vec<_> = std::fs::read_dir("/proc/driver/nvidia/gpus").ok()?.flatten().collect();
    let [card] = &cards[..] else { return None };
    let text = std::fs::read_to_string(card.path().join("information")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Model:")).map(|model| model.trim().to_string())
}

/// The kind of a device that wgpu reaches, and its place among those of its kind.
#[cfg(feature = "wgpu")]
fn wgpu_kind(device: &Device) -> (wgpu::DeviceType, usize) {
    match device.as_dispatch() {
        DispatchDevice::Cube(CubeDevice::Wgpu(burn_wgpu::WgpuDevice { kind, .. })) => match *kind {
            WgpuDeviceKind::DiscreteGpu(place) => (wgpu::DeviceType::DiscreteGpu, place),
            WgpuDeviceKind::IntegratedGpu(place) => (wgpu::DeviceType::IntegratedGpu, place),
            WgpuDeviceKind::VirtualGpu(place) => (wgpu::DeviceType::VirtualGpu, place),
            WgpuDeviceKind::Cpu => (wgpu::DeviceType::Cpu, 0),
            _ => (wgpu::DeviceType::Other, 0),
        },
        _ => (wgpu::DeviceType::Other, 0),
    }
}

/// What is taken before what, whatever the order of the drivers: cards of their own before those in a processor, and emulated ones
/// last.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn rank(adapter: &Adapter) -> usize {
    #[cfg(feature = "wgpu")]
    if adapter.backend != Backend::Cuda {
        use wgpu::DeviceType::{Cpu, DiscreteGpu, IntegratedGpu, Other, VirtualGpu};
        let order = [DiscreteGpu, VirtualGpu, IntegratedGpu, Other, Cpu];
        let (kind, _) = wgpu_kind(&adapter.device);
        return order.iter().position(|other| *other == kind).unwrap_or(order.len());
    }
    usize::from(adapter.is_software)
}

/// The GPUs of a device type, the best first.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub(super) fn gpus(backend: Backend, device_type: DeviceType) -> Vec<Adapter> {
    let devices = Device::enumerate(device_type).into_vec();
    let mut adapters: Vec<_> = devices.into_iter().map(|device| gpu(backend, device)).collect();
    adapters.sort_by_key(rank);
    adapters
}

/// A GPU, called after what sets the adapters of a machine apart.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn gpu(backend: Backend, device: Device) -> Adapter {
    let (name, is_software) = match device.as_dispatch() {
        #[cfg(feature = "wgpu")]
        DispatchDevice::Cube(CubeDevice::Wgpu(burn_wgpu::WgpuDevice { kind, .. })) => {
            // wgpu calls an adapter that the CPU emulates a `Cpu`; nothing else says it.
            (format!("{kind:?}"), *kind == WgpuDeviceKind::Cpu)
        }
        #[cfg(feature = "cuda")]
        DispatchDevice::Cube(CubeDevice::Cuda(device)) => (format!("{device:?}"), false),
        other => (format!("{other:?}"), false),
    };
    Adapter { backend, number: 0, name, is_software, device }
}

#[cfg(test)]
mod tests {
    use super::nvidia_version;

    #[test]
    fn the_version_is_taken_from_what_the_kernel_module_says() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (someone@)  Mon Nov  2\nGCC version: 13.3.0\n";
        assert_eq!(nvidia_version(open), "NVIDIA 580.159.04");
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54  Tue Jun  6 22:20:39 UTC 2023";
        assert_eq!(nvidia_version(closed), "NVIDIA 535.54");
        assert_eq!(nvidia_version(""), "");
    }
}
