//! Describes the hardware that models run on: the GPU and its driver, or the CPU.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use retouch_inference::device::Device;
use retouch_inference::memory::{Probe, Reading};
use tracing::warn;

use super::cuda_card::{CudaArgs, FirstDevice};

/// Returns a description such as `NVIDIA H200, driver 580.65.06` or `AMD EPYC 9B14, 2 cores`.
pub fn describe(device: Device, cuda: &CudaArgs) -> String {
    match device {
        Device::Cuda => {
            let driver = driver_version().unwrap_or_else(|| "unknown".to_owned());
            let name = cuda.first_device().map_or_else(
                |_| "NVIDIA".to_owned(),
                |FirstDevice { card, slice }| match slice {
                    Some(_) => format!("{}, MIG slice", card.name),
                    None => card.name,
                },
            );
            format!("{name}, driver {driver}")
        }
        Device::Cpu => cpu(),
    }
}

/// Returns a probe that reads the memory of CUDA's device 0, or of this process. `nvidia-smi` does not report the free
/// memory of a MIG slice.
pub fn probe(cuda: CudaArgs) -> Probe {
    let first = OnceLock::new();
    Probe::new(move |device, reading| match device {
        Device::Cpu => own_memory(reading),
        Device::Cuda => {
            let first = first.get_or_init(|| {
                let first = cuda.first_device();
                first.map_err(|reason| warn!(reason, "CUDA's device 0 is not known")).ok()
            });
            let FirstDevice { card, slice } = first.as_ref()?;
            slice.is_none().then(|| gpu_memory(&card.uuid, reading))?
        }
    })
}

/// Reads the memory of a GPU in bytes.
fn gpu_memory(uuid: &str, reading: Reading) -> Option<u64> {
    let field = match reading {
        Reading::Free => "memory.free",
        // Loaded sessions on a GPU release no memory, so the used memory is also the peak.
        Reading::Used | Reading::Peak => "memory.used",
    };
    let output = Command::new("nvidia-smi")
        .args([
            &format!("--id={uuid}"),
            &format!("--query-gpu={field}"),
            "--format=csv,noheader,nounits",
        ])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    text.trim().parse::<u64>().ok().map(|mib| mib << 20)
}

/// Reads the memory of this process in bytes.
fn own_memory(reading: Reading) -> Option<u64> {
    let field = match reading {
        Reading::Free => return None,
        Reading::Used => {
            // The peak starts again from here. Where the kernel forbids that, it starts from an earlier one.
            let _ = fs::write("/proc/self/clear_refs", "5");
            "VmRSS:"
        }
        Reading::Peak => "VmHWM:",
    };
    kib_in(&fs::read_to_string("/proc/self/status").ok()?, field).map(|kib| kib << 10)
}

/// Finds a field of `/proc/self/status`, in KiB.
fn kib_in(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Returns the version of the NVIDIA driver, if it is loaded.
pub fn driver_version() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    version_in(&text)
}

fn cpu() -> String {
    let cores = available_parallelism().map_or(1, usize::from);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpu_name_in(&text).unwrap_or("CPU");
    format!("{name}, {cores} {}", if cores == 1 { "core" } else { "cores" })
}

/// Finds the CPU's name in `/proc/cpuinfo`, which has none on ARM.
fn cpu_name_in(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim())
}

/// Finds a version such as `580.65.06` in `/proc/driver/nvidia/version`.
fn version_in(text: &str) -> Option<String> {
    let first = text.lines().next()?;
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    first.split_whitespace().find(is_version).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_version_is_parsed() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 12.2.0\n";
        assert_eq!(version_in(text).as_deref(), Some("580.65.06"));
        assert_eq!(version_in("no version"), None);
    }

    #[test]
    fn the_peak_of_memory_starts_again_with_each_reading() {
        let text = "VmPeak:\t  9 kB\nVmHWM:\t    4312 kB\nVmRSS:\t    4100 kB\n";
        assert_eq!((kib_in(text, "VmHWM:"), kib_in(text, "VmRSS:")), (Some(4312), Some(4100)));
        let before = own_memory(Reading::Used).unwrap();
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        let peak = own_memory(Reading::Peak).unwrap();
        assert!(peak >= before + (60 << 20), "{peak} after {before}");
    }

    #[test]
    fn the_cpu_has_a_name_and_cores() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 9B14\nprocessor\t: 1\nmodel name\t: AMD EPYC 9B14\n";
        assert_eq!(cpu_name_in(text), Some("AMD EPYC 9B14"));
        assert_eq!(cpu_name_in("CPU part\t: 0xd40\n"), None);
        let found = describe(Device::Cpu, &CudaArgs::default());
        assert!(found.contains(" core"), "{found}");
    }
}
