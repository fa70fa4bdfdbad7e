//! Describes the hardware that models run on: the GPU and its driver, or the CPU.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use retouch_inference::device::Device;
use retouch_inference::memory::Reading;

/// Returns a description such as `NVIDIA H200, driver 580.65.06` or `AMD EPYC 9B14, 2 cores`.
pub fn describe(device: Device) -> String {
    match device {
        Device::Cuda => first_gpu().unwrap_or_else(|| {
            let driver = driver_version().unwrap_or_else(|| "unknown".to_owned());
            format!("NVIDIA, driver {driver}")
        }),
        Device::Cpu => cpu(),
    }
}

/// Reads the memory of a device in bytes: of the first GPU, or of this process.
pub fn read_memory(device: Device, reading: Reading) -> Option<u64> {
    match (device, reading) {
        (Device::Cuda, Reading::Free) => gpu_memory_mib("memory.free").map(|mib| mib << 20),
        // Sessions on a GPU keep what they once took.
        (Device::Cuda, Reading::Used | Reading::Peak) => {
            gpu_memory_mib("memory.used").map(|mib| mib << 20)
        }
        (Device::Cpu, Reading::Free) => None,
        (Device::Cpu, Reading::Used) => {
            // The peak starts again from here. Where the kernel forbids that, it starts from an earlier one.
            let _ = fs::write("/proc/self/clear_refs", "5");
            kib_in(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:").map(|kib| kib << 10)
        }
        (Device::Cpu, Reading::Peak) => {
            kib_in(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:").map(|kib| kib << 10)
        }
    }
}

fn gpu_memory_mib(field: &str) -> Option<u64> {
    let output = Command::new("nvidia-smi")
        .args(["--id=0", &format!("--query-gpu={field}"), "--format=csv,noheader,nounits"])
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?.trim().parse().ok()
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

/// Describes the first GPU that this process sees, which is the one it uses.
fn first_gpu() -> Option<String> {
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=name,driver_version", "--format=csv,noheader"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let (name, driver) = text.lines().next()?.split_once(',')?;
    Some(format!("{}, driver {}", name.trim(), driver.trim()))
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
        let before = read_memory(Device::Cpu, Reading::Used).unwrap();
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        let peak = read_memory(Device::Cpu, Reading::Peak).unwrap();
        assert!(peak >= before + (60 << 20), "{peak} after {before}");
    }

    #[test]
    fn the_cpu_has_a_name_and_cores() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 9B14\nprocessor\t: 1\nmodel name\t: AMD EPYC 9B14\n";
        assert_eq!(cpu_name_in(text), Some("AMD EPYC 9B14"));
        assert_eq!(cpu_name_in("CPU part\t: 0xd40\n"), None);
        assert!(describe(Device::Cpu).contains(" core"), "{}", describe(Device::Cpu));
    }
}
