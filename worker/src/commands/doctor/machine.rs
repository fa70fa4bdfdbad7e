//! Reports the CPU cores and checks the memory.

use std::fs;
use std::thread::available_parallelism;

use super::finding::Finding;

/// The minimum to run a model and upscale a large picture.
const ENOUGH_GIB: f64 = 3.5;

pub fn check() -> Vec<Finding> {
    let cores = available_parallelism().map_or(1, usize::from);
    let mut findings = vec![Finding::good(format!("{cores} CPU cores, {}", kernel()))];
    findings.push(match memory_gib() {
        Some(gib) if gib < ENOUGH_GIB => Finding::bad(
            format!("{gib:.1} GiB of memory"),
            "use 4 GiB or more, or lower RETOUCH_JOBS_IN_FLIGHT and RETOUCH_PICTURE_MEMORY_MIB",
        ),
        Some(gib) => Finding::good(format!("{gib:.1} GiB of memory")),
        None => Finding::note("cannot determine how much memory there is"),
    });
    findings
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// Returns the memory that this process may use: the machine's, or the container's limit.
fn memory_gib() -> Option<f64> {
    let all = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text))?;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    Some(all.min(limit) as f64 / f64::from(1 << 30))
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::total_bytes;

    #[test]
    fn the_total_memory_is_parsed() {
        let text = "MemTotal:       24626476 kB\nMemFree:          123 kB\n";
        assert_eq!(total_bytes(text), Some(24_626_476 << 10));
        assert_eq!(total_bytes("MemFree: 1 kB"), None);
    }
}
