//! Checks the driver, the GPUs, and the libraries that ONNX Runtime needs for CUDA.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use retouch_inference::session::{DevicePolicy, EngineBuilder};

use super::finding::Finding;
use crate::commands::cuda_card::{CudaArgs, FirstDevice};
use crate::commands::hardware;

/// The oldest driver that supports CUDA 13.
const OLDEST_DRIVER: u32 = 580;
/// The lowest compute capability that CUDA 13 supports (Turing).
const OLDEST_CAPABILITY: f32 = 7.5;
/// The compute capabilities, up to but not including the last, that the published ONNX Runtime 1.31 has no kernels for
/// (B200, Thor). It has code for 7.5, 8.x, 9.0, and 12.x, and none that a driver could compile for others.
const WITHOUT_KERNELS: Range<f32> = 10.0..12.0;

/// Returns the library that ONNX Runtime 1.31 uses to build engines.
const fn engine_library(builder: EngineBuilder) -> &'static str {
    match builder {
        EngineBuilder::Rtx => "libtensorrt_rtx.so.1",
        EngineBuilder::Trt | EngineBuilder::StandIn => "libnvinfer.so.10",
    }
}

/// The libraries that the CUDA execution provider of ONNX Runtime 1.31 loads, with the Python wheels that contain them.
const LIBRARIES: [(&str, &str); 7] = [
    ("libcudart.so.13", "nvidia-cuda-runtime"),
    ("libcublas.so.13", "nvidia-cublas"),
    ("libcublasLt.so.13", "nvidia-cublas"),
    ("libcudnn.so.9", "nvidia-cudnn-cu13"),
    ("libcufft.so.12", "nvidia-cufft"),
    ("libcurand.so.10", "nvidia-curand"),
    ("libnvrtc.so.13", "nvidia-cuda-nvrtc"),
];

/// Where the libraries usually are.
const USUAL_FOLDERS: [&str; 5] = [
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// What the worker's settings require of the GPU.
pub struct Requirements<'a> {
    pub policy: DevicePolicy,
    /// Whether ONNX Runtime starts with this policy.
    pub runtime_starts: bool,
    /// The folders that the dynamic linker searches first, separated by colons.
    pub library_path: &'a str,
    /// What the operator tells CUDA about its cards.
    pub cuda: &'a CudaArgs,
    /// Where engines are kept, and what builds them.
    pub engines: Option<(&'a Path, EngineBuilder)>,
}

pub fn check(requirements: &Requirements<'_>) -> Vec<Finding> {
    let policy = requirements.policy;
    if policy == DevicePolicy::Cpu {
        return vec![Finding::note("not checked, because RETOUCH_DEVICE is cpu")];
    }
    let Some(driver) = hardware::driver_version() else {
        let text = "no NVIDIA driver is visible";
        return vec![match policy {
            DevicePolicy::Cuda => Finding::bad(
                text,
                "on the host, install the driver (580 or newer); in a container, install the NVIDIA container \
                 toolkit and give the service a GPU, as docker-compose.gpu.yml does",
            ),
            _ => Finding::note(format!("{text}; models run on the CPU")),
        }];
    };
    let mut findings = vec![if major(&driver) >= OLDEST_DRIVER {
        Finding::good(format!("driver {driver}"))
    } else {
        let text = format!("driver {driver} is too old for CUDA 13");
        Finding::bad(text, format!("install driver {OLDEST_DRIVER} or newer on the host"))
    }];
    findings.extend(gpus());
    findings.push(first_device(requirements.cuda.first_device(), &requirements.cuda.visible()));
    let folders = requirements.library_path.split(':').filter(|folder| !folder.is_empty());
    let folders: Vec<_> =
        folders.map(PathBuf::from).chain(USUAL_FOLDERS.map(PathBuf::from)).collect();
    findings.extend(libraries(requirements.runtime_starts, &folders));
    if let Some((cache, builder)) = requirements.engines {
        findings.extend(engines(cache, builder, &folders));
    }
    findings
}

/// Asks `nvidia-smi` for the GPUs.
fn gpus() -> Vec<Finding> {
    let output = Command::new("nvidia-smi")
        .args([
            "--query-gpu=index,name,compute_cap,memory.total,memory.used",
            "--format=csv,noheader",
        ])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let gpus: Vec<_> = text.lines().map(gpu).collect();
            if gpus.is_empty() {
                let advice = "select a GPU with NVIDIA_VISIBLE_DEVICES, or give the service one";
                return vec![Finding::bad("this process can see no GPU", advice)];
            }
            gpus
        }
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let reason = text.lines().next().unwrap_or("it printed no reason");
            let advice = "if the driver and its kernel module differ in version, restart the host";
            vec![Finding::bad(format!("nvidia-smi failed: {reason}"), advice)]
        }
        Err(_) => vec![Finding::note(
            "nvidia-smi is not installed (in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
        )],
    }
}

/// Says which card is CUDA's device 0. `visible` is the setting that selects it.
fn first_device(first: Result<FirstDevice, String>, visible: &str) -> Finding {
    match first {
        Ok(FirstDevice { card, slice }) => {
            let slice = slice.map_or(String::new(), |slice| format!(", slice {slice}"));
            let text =
                format!("models run on GPU {} ({}{slice}): {visible}", card.index, card.uuid);
            Finding::good(text)
        }
        Err(reason) => Finding::note(format!(
            "it is not known which card models run on, so its memory is not measured: {visible}: {reason}"
        )),
    }
}

/// Parses a line of `nvidia-smi` such as `0, NVIDIA H200, 9.0, 143771 MiB, 4 MiB`, and checks the compute capability.
fn gpu(line: &str) -> Finding {
    let mut fields = line.split(',').map(str::trim);
    let (Some(index), Some(name), Some(capability)) = (fields.next(), fields.next(), fields.next())
    else {
        return Finding::good(format!("GPU {}", line.trim()));
    };
    let memory = fields.collect::<Vec<_>>().join(", used ");
    let text = format!("GPU {index}: {name}, compute capability {capability}, {memory}");
    // An unreadable capability is not a reason to reject a GPU.
    if capability.parse().is_ok_and(|capability: f32| capability < OLDEST_CAPABILITY) {
        let advice = format!(
            "CUDA 13 needs {OLDEST_CAPABILITY} or newer (Turing, 2018): use another GPU, or set RETOUCH_DEVICE=cpu"
        );
        return Finding::bad(text, advice);
    }
    if capability.parse().is_ok_and(|capability| WITHOUT_KERNELS.contains(&capability)) {
        return Finding::note(format!(
            "{text}; the published ONNX Runtime 1.31 has no kernels for it, so ORT_DYLIB_PATH must name one built for it"
        ));
    }
    Finding::good(text)
}

/// Checks the library that builds engines and the folder that keeps them.
fn engines(cache: &Path, builder: EngineBuilder, folders: &[PathBuf]) -> Vec<Finding> {
    let (name, file) = (builder.as_str(), engine_library(builder));
    let library = match find(file, folders) {
        Some(found) => Finding::good(format!("{file}: {}", found.display())),
        None => Finding::bad(
            format!(
                "RETOUCH_TENSORRT_CACHE is set, but {file} is not in any of {} folders",
                folders.len()
            ),
            match builder {
                EngineBuilder::Rtx => {
                    "our images have no TensorRT-RTX: install it with an ONNX Runtime that was built for it, and set \
                     ORT_DYLIB_PATH and LD_LIBRARY_PATH; or set RETOUCH_TENSORRT=trt"
                }
                EngineBuilder::Trt | EngineBuilder::StandIn => {
                    "build the image with its TensorRT stage, add the library's folder to LD_LIBRARY_PATH, or unset \
                     RETOUCH_TENSORRT_CACHE"
                }
            },
        ),
    };
    let folder = match tempfile::tempfile_in(cache) {
        Ok(_) => Finding::good(format!("engines of {name} are kept in {}", cache.display())),
        Err(error) => Finding::bad(
            format!("cannot write engines of {name} to {}: {error}", cache.display()),
            "set RETOUCH_TENSORRT_CACHE to a persistent folder that this process can write to",
        ),
    };
    vec![library, folder]
}

fn libraries(runtime_starts: bool, folders: &[PathBuf]) -> Vec<Finding> {
    let findings = LIBRARIES.iter().map(|(name, wheel)| match find(name, folders) {
        Some(file) => Finding::good(format!("{name}: {}", file.display())),
        // The dynamic linker also searches other folders.
        None if runtime_starts => Finding::note(format!("{name} is not in the usual folders")),
        None => Finding::bad(
            format!("{name} is not in any of {} folders", folders.len()),
            format!("it is part of the Python wheel {wheel}; add its folder to LD_LIBRARY_PATH"),
        ),
    });
    findings.collect()
}

/// Finds a library and resolves its links, so that the version shows.
fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let found = folders.iter().map(|folder| folder.join(name)).find(|file| file.exists())?;
    Some(fs::canonicalize(&found).unwrap_or(found))
}

fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

/// Returns advice for an error of ONNX Runtime at start.
pub fn advice(error: &str) -> String {
    if let Some(library) = missing_library(error) {
        // The loader's last attempt for some libraries omits their version.
        let is_it = |name: &str| {
            name.strip_prefix(library)
                .is_some_and(|version| version.is_empty() || version.starts_with('.'))
        };
        let wheel = LIBRARIES.iter().find(|(name, _)| is_it(name)).map(|(_, wheel)| *wheel);
        return match wheel {
            Some(wheel) => {
                // If the library exists but cannot be loaded, the error about the other name hides the real error.
                format!(
                    "{library} is part of the Python wheel {wheel}; add its folder to LD_LIBRARY_PATH, or see with \
                     LD_DEBUG=libs why it cannot be loaded from there"
                )
            }
            None => {
                format!("install {library}, or add its folder to LD_LIBRARY_PATH")
            }
        };
    }
    if error.contains("RETOUCH_TENSORRT_CACHE") {
        "use an ONNX Runtime library with that execution provider, set RETOUCH_TENSORRT, or unset \
         RETOUCH_TENSORRT_CACHE"
            .to_owned()
    } else if error.contains("there is no ONNX Runtime library") {
        "run `scripts/models runtime`, or set ORT_DYLIB_PATH".to_owned()
    } else if error.contains("not enabled in this build") {
        "this library was built without CUDA; use libonnxruntime.so from the wheel onnxruntime-gpu 1.31.1"
            .to_owned()
    } else if error.contains("no CUDA-capable device") || error.contains("CUDA failure 100") {
        "this process can see no GPU; see the lines under GPU".to_owned()
    } else {
        "see the lines under GPU, or set RETOUCH_DEVICE=cpu to run without one".to_owned()
    }
}

/// Extracts the library that the dynamic linker did not find.
fn missing_library(error: &str) -> Option<&str> {
    let (before, _) = error.split_once(": cannot open shared object file")?;
    let name = before.rsplit([' ', '\'', '"']).next()?;
    Path::new(name).file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cuda_card::Card;

    #[test]
    fn old_drivers_and_gpus_are_rejected() {
        assert_eq!((major("580.65.06"), major("535.1")), (580, 535));
        let new = gpu("0, NVIDIA H200, 9.0, 143771 MiB, 4 MiB");
        let text = "GPU 0: NVIDIA H200, compute capability 9.0, 143771 MiB, used 4 MiB";
        assert_eq!(new, Finding::good(text));
        let old = gpu("1, Tesla V100-SXM2-16GB, 7.0, 16384 MiB, 4 MiB").to_string();
        assert!(old.contains("WRONG") && old.contains("7.5 or newer"), "{old}");
        for (capability, has_kernels) in
            [("8.6", true), ("10.0", false), ("11.0", false), ("12.0", true)]
        {
            let found = gpu(&format!("0, NVIDIA Thing, {capability}, 1 MiB, 0 MiB")).to_string();
            assert_eq!(!found.contains("no kernels"), has_kernels, "{found}");
        }
        let unknown = gpu("0, NVIDIA Thing, [N/A], 1 MiB, 0 MiB").to_string();
        assert!(unknown.contains("ok"), "{unknown}");
    }

    #[test]
    fn the_card_that_models_run_on_is_named() {
        let card = Card {
            index: 1,
            name: "NVIDIA H200".to_owned(),
            uuid: "GPU-1c3d".to_owned(),
            slices: Vec::new(),
        };
        let visible = "CUDA_VISIBLE_DEVICES=1";
        let whole = first_device(Ok(FirstDevice { card: card.clone(), slice: None }), visible);
        let text = "models run on GPU 1 (GPU-1c3d): CUDA_VISIBLE_DEVICES=1";
        assert_eq!(whole, Finding::good(text));
        let slice = Some("MIG-77".to_owned());
        let slice = first_device(Ok(FirstDevice { card, slice }), visible).to_string();
        assert!(slice.contains("GPU 1 (GPU-1c3d, slice MIG-77)"), "{slice}");
        let unknown = first_device(Err("there is no card 1".to_owned()), visible).to_string();
        assert!(unknown.contains("CUDA_VISIBLE_DEVICES=1: there is no card 1"), "{unknown}");
    }

    #[test]
    fn engines_need_the_library_of_their_builder_and_a_writable_folder() {
        for builder in [EngineBuilder::Trt, EngineBuilder::Rtx] {
            let folder = tempfile::tempdir().unwrap();
            let folders = [folder.path().to_owned()];
            let check = |cache: &Path| {
                let findings = engines(cache, builder, &folders);
                findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n")
            };
            let nothing = check(&folder.path().join("absent"));
            assert_eq!(nothing.matches("WRONG").count(), 2, "{nothing}");
            fs::write(folder.path().join(engine_library(builder)), "").unwrap();
            let all = check(folder.path());
            assert_eq!(all.matches("ok").count(), 2, "{all}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left behind");
        }
    }

    #[test]
    fn advice_names_the_wheel_of_a_missing_library() {
        let error = "CUDA was requested but does not work: Failed to load library libonnxruntime_providers_cuda.so \
                     with error: libcudnn.so.9: cannot open shared object file: No such file or directory";
        assert_eq!(missing_library(error), Some("libcudnn.so.9"));
        assert!(advice(error).contains("nvidia-cudnn-cu13"), "{}", advice(error));
        let unversioned = error.replace("libcudnn.so.9", "libcudnn.so");
        assert!(advice(&unversioned).contains("nvidia-cudnn-cu13"), "{}", advice(&unversioned));
        let other = "x: libfoo.so.1: cannot open shared object file: No such file or directory";
        assert!(advice(other).contains("libfoo.so.1"));
        let engines = "RETOUCH_TENSORRT_CACHE is set, but TensorRT-RTX does not work: it is not enabled in this build";
        assert!(advice(engines).contains("set RETOUCH_TENSORRT,"), "{}", advice(engines));
        assert!(
            advice("CUDA execution provider is not enabled in this build")
                .contains("onnxruntime-gpu")
        );
    }

    #[test]
    fn a_library_is_found_in_the_first_folder_that_has_it() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(two.path().join("libcudnn.so.9.28.0"), "").unwrap();
        std::os::unix::fs::symlink("libcudnn.so.9.28.0", two.path().join("libcudnn.so.9")).unwrap();
        let folders = [one.path().to_owned(), two.path().to_owned()];
        let found = find("libcudnn.so.9", &folders).unwrap();
        assert!(found.ends_with("libcudnn.so.9.28.0"), "{}", found.display());
        assert_eq!(find("libcufft.so.12", &folders), None);
    }
}
