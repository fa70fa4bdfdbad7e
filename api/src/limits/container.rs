//! The resources that this process may use: the limits of its container and its system.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the memory that the process may use, in bytes; `None` if the system does not tell.
pub fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    [limit_of_groups(Path::new("/sys/fs/cgroup"), &groups), machine].into_iter().flatten().min()
}

/// Returns how many files and connections the process may open; `None` if the system does not tell.
pub fn open_files() -> Option<usize> {
    soft_limit(&fs::read_to_string("/proc/self/limits").ok()?)
}

fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the smallest limit of the control groups in `/proc/self/cgroup`, whose lines are `number:controllers:path`.
/// Version 2 has one line without controllers (cgroups(7)).
fn limit_of_groups(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        smallest(&folder, path, file)
    });
    limits.min()
}

/// Returns the smallest limit of a group and the groups around it. In a container the outer ones are hidden, and the
/// container's own is at the root.
fn smallest(folder: &Path, path: &str, file: &str) -> Option<u64> {
    let mut group: PathBuf = folder.join(path.trim_start_matches('/'));
    let mut least = None;
    loop {
        let text = fs::read_to_string(group.join(file)).unwrap_or_default();
        // Without a limit, the file says `max`, or a number near the largest one.
        least = [least, text.trim().parse().ok()].into_iter().flatten().min();
        if group == folder || !group.pop() {
            return least;
        }
    }
}

/// Returns the machine's memory from `/proc/meminfo`, in bytes.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: PathBuf, text: &str) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("created");
        fs::write(file, text).expect("written");
    }

    #[test]
    fn the_smallest_limit_of_all_groups_counts() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let root = folder.path();
        assert_eq!(limit_of_groups(root, "0::/\n"), None, "there is no such file");
        write(root.join("memory.max"), "1073741824\n");
        assert_eq!(limit_of_groups(root, "0::/\n"), Some(1 << 30), "a container");
        write(root.join("a/b/memory.max"), "max\n");
        write(root.join("a/memory.max"), "1000\n");
        assert_eq!(limit_of_groups(root, "0::/a/b\n"), Some(1000), "a service in a slice");
        write(root.join("memory/c/memory.limit_in_bytes"), "500\n");
        write(root.join("memory/memory.limit_in_bytes"), "9223372036854771712\n");
        let first_version = "5:cpu,cpuacct:/c\n4:memory:/c\n0::/\n";
        assert_eq!(limit_of_groups(root, first_version), Some(500));
        assert_eq!(limit_of_groups(root, "4:memory:/hidden\n"), Some(9_223_372_036_854_771_712));
    }

    #[test]
    fn the_machine_tells_its_memory() {
        assert_eq!(total("MemTotal:       24683564 kB\nMemFree: 1 kB\n"), Some(24_683_564 << 10));
        assert!(memory_limit().is_some_and(|bytes| bytes > 64 << 20));
    }

    #[test]
    fn the_soft_limit_of_files_counts() {
        let limits =
            "Max processes     12   34   processes\nMax open files    1024  524288  files\n";
        assert_eq!(soft_limit(limits), Some(1024));
        assert_eq!(soft_limit("Max open files    unlimited  unlimited  files\n"), None);
        assert!(open_files().is_some_and(|files| files >= 256));
    }
}
