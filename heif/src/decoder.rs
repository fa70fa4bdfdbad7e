//! The decoder: a process that reads a file from standard input and writes a JPEG or PNG to standard output.
//!
//! `<program> decode-picture LIBRARY probe` says which codecs the library has, and
//! `<program> decode-picture LIBRARY MEMORY_BYTES CPU_SECS` decodes a picture.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use retouch_pixels::{Picture, upload};

use crate::library::{DecodeError, Decoded, LibHeif, Samples};
use crate::sandbox;

/// The first argument that makes a program a decoder.
pub const COMMAND: &str = "decode-picture";
/// The second argument for [`probe`].
pub const PROBE: &str = "probe";

/// The exit statuses of a decoder that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Damaged = 2,
    NoDecoder = 3,
    NoSandbox = 4,
    Failed = 5,
}

/// Decodes a picture and returns the exit status, if the program was started for that. A program calls this first, while
/// it has a single thread.
pub fn decode_if_asked() -> Option<ExitCode> {
    // Programs that are started for something else may have arguments that are not Unicode, such as names of files.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != COMMAND {
        return None;
    }
    let arguments: Vec<String> =
        arguments.map(|argument| argument.into_string().ok()).collect::<Option<_>>()?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match *arguments.as_slice() {
        [library, PROBE] => probe(library),
        [library, memory, time] => match (memory.parse(), time.parse()) {
            (Ok(memory_bytes), Ok(cpu_secs)) => decode(library, memory_bytes, cpu_secs),
            _ => Err((Ending::Failed, "expected memory and time as numbers".to_owned())),
        },
        _ => return None,
    };
    Some(match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err((ending, reason)) => {
            eprintln!("{reason}");
            ExitCode::from(ending as u8)
        }
    })
}

type Ended = Result<(), (Ending, String)>;

/// Prints the library's version and its codecs, after the sandbox has proved to work.
fn probe(library: &str) -> Ended {
    let heif = LibHeif::load(library).map_err(|reason| (Ending::NoDecoder, reason))?;
    let (has_hevc, has_av1) = heif.codecs();
    let version = heif.version();
    sandbox::enter(1 << 20, 1).map_err(|reason| (Ending::NoSandbox, reason))?;
    print(format!("{version} {has_hevc} {has_av1}").as_bytes())
}

fn decode(library: &str, memory_bytes: u64, cpu_secs: u64) -> Ended {
    let heif = LibHeif::load(library).map_err(|reason| (Ending::NoDecoder, reason))?;
    sandbox::enter(memory_bytes, cpu_secs).map_err(|reason| (Ending::NoSandbox, reason))?;
    let mut file = Vec::new();
    io::stdin().lock().read_to_end(&mut file).map_err(|error| failed(&error))?;
    let decoded = heif.decode(file.leak()).map_err(|error| match error {
        DecodeError::NoDecoder(reason) => (Ending::NoDecoder, reason),
        DecodeError::Damaged(reason) => (Ending::Damaged, reason),
    })?;
    let picture = picture(decoded);
    print(&upload::encode_upright(&picture).map_err(|error| failed(&error))?)
}

fn picture(decoded: Decoded) -> Picture {
    let Decoded { width, height, samples } = decoded;
    let (rgba, icc) = match samples {
        Samples::Deep { pairs, bits, nclx } => (nclx.tone_map(&pairs, bits), None),
        Samples::Shallow { rgba, icc, nclx } => (rgba, icc.or_else(|| nclx?.profile())),
    };
    Picture::from_rgba(width, height, rgba, icc)
}

fn print(bytes: &[u8]) -> Ended {
    let mut output = io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> (Ending, String) {
    (Ending::Failed, error.to_string())
}
