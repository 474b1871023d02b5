//! What each backend needs, and where it was last run: the table of `docs/guides/gpu.md`.

use super::Backend;

/// What is known of a backend.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The cargo feature; the first three are on by default.
    pub feature: &'static str,
    /// What building needs besides a Rust toolchain.
    pub builds_with: &'static str,
    /// What running needs.
    pub runs_with: &'static str,
    /// Whether it trains in 16-bit floats.
    pub half: &'static str,
    /// Where and when this program's checks and trainings last passed on it.
    pub last_run: &'static str,
}

impl Backend {
    /// What is known of it.
    pub const fn facts(self) -> Facts {
        match self {
            Self::Auto => Facts {
                feature: "",
                builds_with: "nothing",
                runs_with: "nothing",
                half: "as the backend that it takes",
                last_run: "as the backend that it takes",
            },
            Self::Flex => Facts {
                feature: "flex",
                builds_with: "nothing",
                runs_with: "nothing; uses AVX2 or AVX-512 if available",
                half: "no",
                last_run: "2026-11-24, AMD EPYC with AVX-512, Debian 12",
            },
            Self::Ndarray => Facts {
                feature: "ndarray",
                builds_with: "nothing",
                runs_with: "nothing",
                half: "no",
                last_run: "2026-11-24, AMD EPYC with AVX-512, Debian 12",
            },
            Self::Wgpu => Facts {
                feature: "wgpu",
                builds_with: "nothing",
                runs_with: "a driver for Vulkan (with the loader libvulkan1), Metal or DirectX 12",
                half: "no",
                last_run: "2026-11-26, NVIDIA H200 and H100 (Vulkan, driver 580.159); 2026-11-24, software Vulkan of Mesa 22.3.6 (llvmpipe) \
                           and SwiftShader, Debian 12",
            },
            Self::Vulkan => Facts {
                feature: "vulkan",
                builds_with: "nothing",
                runs_with: "a driver for Vulkan with the loader libvulkan1; not Mesa's llvmpipe 22.3.6, which crashes on \
                            SPIR-V kernels, nor SwiftShader, whose gradients are wrong",
                half: "no",
                last_run: "2026-11-22, refused by the check on Mesa 22.3.6 (llvmpipe) and on SwiftShader, Debian 12; never run on a \
                           driver that passes it",
            },
            Self::Metal => Facts {
                feature: "metal",
                builds_with: "macOS",
                runs_with: "macOS with Metal",
                half: "no",
                last_run: "never run",
            },
            Self::Cuda => Facts {
                feature: "cuda",
                builds_with: "nvcc on the path or CUDARC_CUDA_VERSION=13000 (12080, ...), and the network: a build script \
                              downloads LLVM 23.1",
                runs_with: "an NVIDIA driver and the CUDA libraries (cuBLAS, NVRTC)",
                half: "no",
                last_run: "2026-11-26, NVIDIA H200 (CUDA 13.0, driver 580.159), with kernels made by NVRTC in place of LLVM: passes the \
                           check before use",
            },
        }
    }

    /// The table of all backends, as Markdown.
    pub fn table() -> String {
        let mut text = String::from(
            "| backend | cargo feature | needs to build | needs to run | half precision | last run |\n\
             | --- | --- | --- | --- | --- | --- |\n",
        );
        for backend in &Self::ALL[1..] {
            let Facts { feature, builds_with, runs_with, half, last_run } = backend.facts();
            text += &format!("| `{backend}` | `{feature}` | {builds_with} | {runs_with} | {half} | {last_run} |\n");
        }
        text
    }
}
