//! The decoder as a program of its own, for the tests of this crate. With the argument `escape`, it attempts actions
//! that a decoder must not be able to do, and prints the ones that succeeded.
#![expect(unsafe_code, reason = "no safe function signals a single thread")]

use std::fs::File;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::process::parent_id;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    if let Some(ended) = retouch_heif::decode_if_asked() {
        return ended;
    }
    if std::env::args_os().nth(1).is_none_or(|argument| argument != "escape") {
        return ExitCode::FAILURE;
    }
    let (this_process, parent) = (std::process::id(), parent_id());
    if let Err(error) = retouch_heif::give_up_rights(64 << 20, 1) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let mut memory = Vec::<u8>::new();
    for (name, could) in [
        ("read", File::open("/proc/self/environ").is_ok()),
        ("write", File::create("/tmp/escaped").is_ok()),
        ("listen", TcpListener::bind("127.0.0.1:0").is_ok()),
        ("send", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("run", Command::new("/bin/true").spawn().is_ok()),
        ("fill", memory.try_reserve_exact(1 << 30).is_ok()),
        ("kill", signal(parent) != Err(libc::EPERM)),
        // These two are allowed.
        ("abort", signal(this_process).is_err()),
        ("wait", std::thread::spawn(|| ()).join().is_err()),
    ] {
        if could {
            println!("{name}");
        }
    }
    println!("end");
    // Ends by the limit of processor time.
    loop {
        std::hint::spin_loop();
    }
}

/// Sends signal 0, which only checks the permission, to the first thread of a process. Returns the error number.
fn signal(process: u32) -> Result<(), i32> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process, process, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) }
}
