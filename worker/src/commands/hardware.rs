//! What models run on, in words: the card and its driver, or the processor.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use retouch_inference::device::Device;

/// `NVIDIA H200, driver 580.65.06`, or `AMD EPYC 9B14, 2 cores`.
pub fn of(device: Device) -> String {
    match device {
        Device::Cuda => first_card().unwrap_or_else(|| {
            let driver = driver_version().unwrap_or_else(|| "unknown".to_owned());
            format!("NVIDIA, driver {driver}")
        }),
        Device::Cpu => processor(),
    }
}

/// The driver of NVIDIA's cards, if it is loaded.
pub fn driver_version() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    version_in(&text)
}

/// The card that this process sees first, which is the one it uses.
fn first_card() -> Option<String> {
    let asked = Command::new("nvidia-smi")
        .args(["--query-gpu=name,driver_version", "--format=csv,noheader"])
        .output()
        .ok()?;
    let text = String::from_utf8(asked.stdout).ok().filter(|_| asked.status.success())?;
    let (name, driver) = text.lines().next()?.split_once(',')?;
    Some(format!("{}, driver {}", name.trim(), driver.trim()))
}

fn processor() -> String {
    let cores = available_parallelism().map_or(1, usize::from);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = processor_in(&text).unwrap_or("processor");
    format!("{name}, {cores} {}", if cores == 1 { "core" } else { "cores" })
}

/// The name that the kernel has for the processor; ARM's have none.
fn processor_in(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim())
}

/// `580.65.06` of what the kernel module says of itself.
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
    fn the_drivers_version_is_read_from_its_own_words() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 12.2.0\n";
        assert_eq!(version_in(text).as_deref(), Some("580.65.06"));
        assert_eq!(version_in("nothing of the kind"), None);
    }

    #[test]
    fn a_processor_has_a_name_and_cores() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 9B14\nprocessor\t: 1\nmodel name\t: AMD EPYC 9B14\n";
        assert_eq!(processor_in(text), Some("AMD EPYC 9B14"));
        assert_eq!(processor_in("CPU part\t: 0xd40\n"), None);
        assert!(of(Device::Cpu).contains(" core"), "{}", of(Device::Cpu));
    }
}
