//! Drops a decoder's access to everything that it does not need: memory, time, files, the network, other processes.
//!
//! Namespaces would need rights that containers rarely have, so a filter of system calls does the work: without `open`,
//! `socket`, and `execve`, only standard input, output, and error are left.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as ArgLen, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch, apply_filter,
};

/// Extra address space for stacks and heaps of threads, which stay empty.
const EMPTY_BYTES: u64 = 128 << 20;
const PAGE_BYTES: u64 = 4096;

/// The system calls for decoding, encoding, and threads of one process; all others fail with `EPERM`.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Limits memory and processor time, and allows the process only to compute, read its input and write its output.
/// Libraries must be loaded before.
///
/// # Errors
/// If the system refuses; then nothing may be decoded.
pub fn enter(memory_bytes: u64, cpu_secs: u64) -> Result<(), String> {
    let space = used_bytes()? + EMPTY_BYTES + memory_bytes;
    for (resource, most) in [
        (Resource::As, space),
        (Resource::Cpu, cpu_secs),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| format!("limiting {resource:?}: {error}"))?;
    }
    let failed = |error: seccompiler::Error| format!("filtering system calls: {error}");
    // The C library then uses `clone`, whose flags can be checked.
    let no_clone3 = [(libc::SYS_clone3, Vec::new())].into();
    let errno = |number: i32| SeccompAction::Errno(number as u32);
    apply_filter(&compiled(no_clone3, SeccompAction::Allow, errno(libc::ENOSYS))?)
        .map_err(failed)?;
    let allowed = allowed().map_err(|error| error.to_string())?;
    apply_filter(&compiled(allowed, errno(libc::EPERM), SeccompAction::Allow)?).map_err(failed)
}

fn allowed() -> Result<BTreeMap<i64, Vec<Rule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<Rule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let thread = libc::CLONE_THREAD as u64;
    let is_thread = Condition::new(0, ArgLen::Qword, Op::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![Rule::new(vec![is_thread])?]);
    rules.insert(libc::SYS_clone3, Vec::new());
    let names_thread = Condition::new(0, ArgLen::Dword, Op::Eq, libc::PR_SET_NAME as u64)?;
    rules.insert(libc::SYS_prctl, vec![Rule::new(vec![names_thread])?]);
    // `abort` signals its own thread. Without the condition, a decoder could end any process of its user.
    let this_process = u64::from(std::process::id());
    let signals_itself = Condition::new(0, ArgLen::Dword, Op::Eq, this_process)?;
    rules.insert(libc::SYS_tgkill, vec![Rule::new(vec![signals_itself])?]);
    Ok(rules)
}

fn compiled(
    rules: BTreeMap<i64, Vec<Rule>>,
    otherwise: SeccompAction,
    matching: SeccompAction,
) -> Result<BpfProgram, String> {
    let architecture: TargetArch = std::env::consts::ARCH
        .try_into()
        .map_err(|_| format!("no filter for {} processors", std::env::consts::ARCH))?;
    let filter = SeccompFilter::new(rules, otherwise, matching, architecture);
    filter.and_then(TryInto::try_into).map_err(|error: seccompiler::BackendError| error.to_string())
}

/// Returns the address space that this process uses.
fn used_bytes() -> Result<u64, String> {
    let statm = fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
    let pages = statm.split_whitespace().next().and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or("cannot read /proc/self/statm")? * PAGE_BYTES)
}
