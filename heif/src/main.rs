//! The decoder as a program of its own, for the tests of this crate. With the argument `escape`, it attempts what
//! a decoder must not be able to do, and prints what succeeded.

use std::fs::File;
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    if let Some(ended) = retouch_heif::decode_if_asked() {
        return ended;
    }
    if std::env::args().nth(1).as_deref() != Some("escape") {
        return ExitCode::FAILURE;
    }
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
