//! The driver, the card, and the libraries that ONNX Runtime needs for CUDA.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use retouch_worker::models::session::DevicePolicy;

use super::Finding;

/// The oldest driver that CUDA 13 works with.
const OLDEST_DRIVER: u32 = 580;

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

pub fn look(policy: DevicePolicy, runtime_starts: bool, library_path: &str) -> Vec<Finding> {
    if policy == DevicePolicy::Cpu {
        return vec![Finding::note("not looked at: RETOUCH_DEVICE is cpu")];
    }
    let version = fs::read_to_string("/proc/driver/nvidia/version").ok();
    let Some(driver) = version.as_deref().and_then(driver_version) else {
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
    findings.extend(libraries(runtime_starts, library_path));
    findings
}

/// What `nvidia-smi` says of each card.
fn cards() -> Vec<Finding> {
    let asked = Command::new("nvidia-smi")
        .args(["--query-gpu=index,name,memory.total,memory.used", "--format=csv,noheader"])
        .output();
    match asked {
        Ok(answer) if answer.status.success() => {
            let text = String::from_utf8_lossy(&answer.stdout).into_owned();
            let cards = text.lines().map(|line| Finding::good(format!("card {}", line.trim())));
            let cards: Vec<_> = cards.collect();
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

fn libraries(runtime_starts: bool, library_path: &str) -> Vec<Finding> {
    let folders = library_path.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folders: Vec<_> = folders.chain(USUAL_FOLDERS.map(PathBuf::from)).collect();
    let findings = LIBRARIES.iter().map(|(name, wheel)| match find(name, &folders) {
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

/// `580.65.06` of what the kernel module says of itself.
fn driver_version(text: &str) -> Option<String> {
    let first = text.lines().next()?;
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    first.split_whitespace().find(is_version).map(ToOwned::to_owned)
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
    fn the_drivers_version_is_read_from_its_own_words() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 12.2.0\n";
        assert_eq!(driver_version(text).as_deref(), Some("580.65.06"));
        assert_eq!(driver_version("nothing of the kind"), None);
        assert_eq!((major("580.65.06"), major("535.1")), (580, 535));
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
