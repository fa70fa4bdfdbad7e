//! The driver, the card, and the libraries that ONNX Runtime needs for CUDA.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use retouch_inference::session::DevicePolicy;

use super::Finding;
use crate::commands::hardware;

/// The oldest driver that CUDA 13 works with.
const OLDEST_DRIVER: u32 = 580;
/// The oldest cards that CUDA 13 works with: Turing's compute capability.
const OLDEST_CAPABILITY: f32 = 7.5;
/// What the `TensorRT` provider of ONNX Runtime 1.31 loads.
const TENSORRT: &str = "libnvinfer.so.10";

/// What the CUDA provider of ONNX Runtime 1.31 loads.
const LIBRARIES: [(&str, &str); 7] = [
    ("libcudart.so.13", "nvidia-cuda-runtime"),
    ("libcublas.so.13", "nvidia-cublas"),
    ("libcublasLt.so.13", "nvidia-cublas"),
    ("libcudnn.so.9", "nvidia-cudnn-cu13"),
    ("libcufft.so.12", "nvidia-cufft"),
    ("libcurand.so.10", "nvidia-curand"),
    ("libnvrtc.so.13", "nvidia-cuda-nvrtc"),
];

/// Where they lie when nothing else is said.
const USUAL_FOLDERS: [&str; 5] = [
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// What is asked of the GPU.
pub struct Wanted<'a> {
    pub policy: DevicePolicy,
    /// Whether ONNX Runtime starts with it.
    pub runtime_starts: bool,
    /// Where the dynamic linker looks first.
    pub library_path: &'a str,
    /// Where `TensorRT` shall keep its engines.
    pub tensorrt_cache: Option<&'a Path>,
}

pub fn look(wanted: &Wanted<'_>) -> Vec<Finding> {
    let policy = wanted.policy;
    if policy == DevicePolicy::Cpu {
        return vec![Finding::note("not looked at: RETOUCH_DEVICE is cpu")];
    }
    let Some(driver) = hardware::driver_version() else {
        let text = "no NVIDIA driver is visible";
        return vec![match policy {
            DevicePolicy::Cuda => Finding::bad(
                text,
                "on the host, install the driver (580 or newer); in a container, install the NVIDIA container \
                 toolkit and give the service a GPU, as docker-compose.gpu.yml does",
            ),
            _ => Finding::note(format!("{text}: models run on the processor")),
        }];
    };
    let mut findings = vec![if major(&driver) >= OLDEST_DRIVER {
        Finding::good(format!("driver {driver}"))
    } else {
        let text = format!("driver {driver} is too old for CUDA 13");
        Finding::bad(text, format!("install driver {OLDEST_DRIVER} or newer on the host"))
    }];
    findings.extend(cards());
    let folders = wanted.library_path.split(':').filter(|folder| !folder.is_empty());
    let folders: Vec<_> =
        folders.map(PathBuf::from).chain(USUAL_FOLDERS.map(PathBuf::from)).collect();
    findings.extend(libraries(wanted.runtime_starts, &folders));
    if let Some(cache) = wanted.tensorrt_cache {
        findings.extend(tensorrt(cache, &folders));
    }
    findings
}

/// What `nvidia-smi` says of each card.
fn cards() -> Vec<Finding> {
    let asked = Command::new("nvidia-smi")
        .args([
            "--query-gpu=index,name,compute_cap,memory.total,memory.used",
            "--format=csv,noheader",
        ])
        .output();
    match asked {
        Ok(answer) if answer.status.success() => {
            let text = String::from_utf8_lossy(&answer.stdout).into_owned();
            let cards: Vec<_> = text.lines().map(card).collect();
            if cards.is_empty() {
                let advice = "name it in NVIDIA_VISIBLE_DEVICES, or give the service a device";
                return vec![Finding::bad("the driver shows this process no card", advice)];
            }
            cards
        }
        Ok(answer) => {
            let said = String::from_utf8_lossy(&answer.stdout);
            let said = said.lines().next().unwrap_or("it says nothing").to_owned();
            let advice =
                "a driver and its kernel module of different versions need a restart of the host";
            vec![Finding::bad(format!("nvidia-smi fails: {said}"), advice)]
        }
        Err(_) => vec![Finding::note(
            "nvidia-smi is not here (NVIDIA_DRIVER_CAPABILITIES=compute,utility brings it)",
        )],
    }
}

/// `0, NVIDIA H200, 9.0, 143771 MiB, 4 MiB`, as `nvidia-smi` writes it.
fn card(line: &str) -> Finding {
    let mut fields = line.split(',').map(str::trim);
    let (Some(index), Some(name), Some(capability)) = (fields.next(), fields.next(), fields.next())
    else {
        return Finding::good(format!("card {}", line.trim()));
    };
    let memory = fields.collect::<Vec<_>>().join(", used ");
    let text = format!("card {index}: {name}, compute capability {capability}, {memory}");
    // What cannot be read is no reason to refuse a card.
    if capability.parse().is_ok_and(|capability: f32| capability < OLDEST_CAPABILITY) {
        let advice = format!(
            "CUDA 13 needs {OLDEST_CAPABILITY} or newer (Turing, 2018): another card, or RETOUCH_DEVICE=cpu"
        );
        return Finding::bad(text, advice);
    }
    Finding::good(text)
}

/// The folder that engines are kept in, and the library that builds them.
fn tensorrt(cache: &Path, folders: &[PathBuf]) -> Vec<Finding> {
    let library = match find(TENSORRT, folders) {
        Some(file) => Finding::good(format!("{TENSORRT}: {}", file.display())),
        None => Finding::bad(
            format!(
                "RETOUCH_TENSORRT_CACHE is set, but {TENSORRT} is in none of {} folders",
                folders.len()
            ),
            "build the image with its TensorRT stage, put its folder into LD_LIBRARY_PATH, or unset \
             RETOUCH_TENSORRT_CACHE",
        ),
    };
    let folder = match tempfile::tempfile_in(cache) {
        Ok(_) => Finding::good(format!("TensorRT's engines are kept in {}", cache.display())),
        Err(error) => Finding::bad(
            format!("TensorRT's engines cannot be kept in {}: {error}", cache.display()),
            "give this process a folder that it may write to, and that outlives it",
        ),
    };
    vec![library, folder]
}

fn libraries(runtime_starts: bool, folders: &[PathBuf]) -> Vec<Finding> {
    let findings = LIBRARIES.iter().map(|(name, wheel)| match find(name, folders) {
        Some(file) => Finding::good(format!("{name}: {}", file.display())),
        // The dynamic linker has more places than these.
        None if runtime_starts => Finding::note(format!("{name} is not where it usually is")),
        None => Finding::bad(
            format!("{name} is in none of {} folders", folders.len()),
            format!("it is part of the Python wheel {wheel}; put its folder into LD_LIBRARY_PATH"),
        ),
    });
    findings.collect()
}

/// The library's file, with the version that its links end at.
fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let found = folders.iter().map(|folder| folder.join(name)).find(|file| file.exists())?;
    Some(fs::canonicalize(&found).unwrap_or(found))
}

fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

/// What to do about a runtime that does not start.
pub fn advice(error: &str) -> String {
    if let Some(library) = missing_library(error) {
        let wheel = LIBRARIES.iter().find(|(name, _)| *name == library).map(|(_, wheel)| *wheel);
        return match wheel {
            Some(wheel) => {
                format!(
                    "{library} is part of the Python wheel {wheel}; put its folder into LD_LIBRARY_PATH"
                )
            }
            None => {
                format!("install what brings {library}, or put its folder into LD_LIBRARY_PATH")
            }
        };
    }
    if error.contains("there is no ONNX Runtime library") {
        "run `scripts/models runtime`, or set ORT_DYLIB_PATH".to_owned()
    } else if error.contains("not enabled in this build") {
        "this library has no CUDA: take libonnxruntime.so of the wheel onnxruntime-gpu 1.31.1"
            .to_owned()
    } else if error.contains("no CUDA-capable device") || error.contains("CUDA failure 100") {
        "no card is visible to this process: see the lines under GPU".to_owned()
    } else {
        "see the lines under GPU; RETOUCH_DEVICE=cpu serves without one".to_owned()
    }
}

/// The library that the dynamic linker did not find.
fn missing_library(error: &str) -> Option<&str> {
    let (before, _) = error.split_once(": cannot open shared object file")?;
    let name = before.rsplit([' ', '\'', '"']).next()?;
    Path::new(name).file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_and_cards_that_are_too_old_are_known() {
        assert_eq!((major("580.65.06"), major("535.1")), (580, 535));
        let new = card("0, NVIDIA H200, 9.0, 143771 MiB, 4 MiB");
        let text = "card 0: NVIDIA H200, compute capability 9.0, 143771 MiB, used 4 MiB";
        assert_eq!(new, Finding::good(text));
        let old = card("1, Tesla V100-SXM2-16GB, 7.0, 16384 MiB, 4 MiB").to_string();
        assert!(old.contains("WRONG") && old.contains("7.5 or newer"), "{old}");
        let unknown = card("0, NVIDIA Thing, [N/A], 1 MiB, 0 MiB").to_string();
        assert!(unknown.contains("ok"), "{unknown}");
    }

    #[test]
    fn engines_need_their_library_and_a_folder_to_be_kept_in() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let told = |cache: &Path| {
            let findings = tensorrt(cache, &folders);
            findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n")
        };
        let nothing = told(&folder.path().join("absent"));
        assert_eq!(nothing.matches("WRONG").count(), 2, "{nothing}");
        fs::write(folder.path().join(TENSORRT), "").unwrap();
        let all = told(folder.path());
        assert_eq!(all.matches("ok").count(), 2, "{all}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_missing_library_is_named_with_what_brings_it() {
        let error = "CUDA was asked for and cannot be used: Failed to load library libonnxruntime_providers_cuda.so \
                     with error: libcudnn.so.9: cannot open shared object file: No such file or directory";
        assert_eq!(missing_library(error), Some("libcudnn.so.9"));
        assert!(advice(error).contains("nvidia-cudnn-cu13"), "{}", advice(error));
        let other = "x: libfoo.so.1: cannot open shared object file: No such file or directory";
        assert!(advice(other).contains("libfoo.so.1"));
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
