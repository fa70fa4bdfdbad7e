//! Starts decoder processes, and ends them when their time is up.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use retouch_pixels::decode::Foreign;
use retouch_pixels::{Limits, PixelError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::decoder::{COMMAND, Ending, PROBE};
use crate::header::{Codec, Header};

/// The processor time of a decoder, in seconds. A photo of 50 megapixels takes three.
const CPU_SECS: u64 = 30;
/// Maximum time for a decoder, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Maximum time for a probe. It decodes nothing, callers wait for it, and the next call tries again.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);
/// The maximum length of an error message that is read from a decoder, in bytes.
const MAX_REASON_BYTES: u64 = 500;
/// The reason for refusing a file whose decoder was ended.
const TOO_MUCH: &str = "decoding it takes more memory or time than its size justifies";

/// The settings of the decoder for HEIC and AVIF.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "HEIC and AVIF")]
pub struct HeifConfig {
    /// libheif, the library that decodes HEIC and AVIF: its file name, or its path. Without it, or if this is empty, such
    /// files are refused.
    #[arg(long, env = "RETOUCH_HEIF_LIBRARY", default_value = "libheif.so.1")]
    pub heif_library: String,
    /// The decoder's program; for tests, which run in other programs.
    #[arg(long, hide = true)]
    pub picture_decoder: Option<PathBuf>,
}

/// Decodes HEIC and AVIF files in processes of their own.
#[derive(Debug)]
pub struct Heif {
    program: PathBuf,
    library: String,
    patience: Duration,
    support: OnceCell<Support>,
}

/// The formats that can be decoded here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Support {
    pub heic: bool,
    pub avif: bool,
    /// The library's version, or why there is none.
    pub detail: String,
}

impl Support {
    const fn has(&self, codec: Codec) -> bool {
        match codec {
            Codec::Heic => self.heic,
            Codec::Avif => self.avif,
        }
    }
}

impl Heif {
    /// Decodes with the running program, whose `main` calls [`crate::decode_if_asked`]. Starts nothing yet.
    ///
    /// # Errors
    /// If the system does not tell which program is running.
    pub fn new(config: &HeifConfig) -> io::Result<Self> {
        let HeifConfig { heif_library, picture_decoder } = config.clone();
        let program = picture_decoder.map_or_else(std::env::current_exe, Ok)?;
        Ok(Self { program, library: heif_library, patience: PATIENCE, support: OnceCell::new() })
    }

    /// Replaces the maximum time for a decoder.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Returns a file that the rest of Retouch can read: this file, or its conversion.
    ///
    /// # Errors
    /// Same as [`Self::convert`].
    pub async fn readable(&self, file: Bytes, limits: &Limits) -> Result<Bytes, PixelError> {
        if Codec::of(&file).is_none() {
            return Ok(file);
        }
        let header = Header::read(&file, limits)?;
        self.convert(file, &header).await
    }

    /// Returns the formats that can be decoded here. The first call starts a decoder to find out.
    pub async fn support(&self) -> Support {
        let without = |detail: String| Support { detail, ..Support::default() };
        if self.library.is_empty() {
            return without("turned off".to_owned());
        }
        match self.support.get_or_try_init(|| self.probe()).await {
            Ok(support) => support.clone(),
            // The machine may have been short of processes, memory, or time, so the next call tries again.
            Err(error) => without(format!("starting {}: {error}", self.program.display())),
        }
    }

    async fn probe(&self) -> io::Result<Support> {
        let without = |detail: String| Support { detail, ..Support::default() };
        let patience = self.patience.min(PROBE_PATIENCE);
        let ended = self.run(&[PROBE.as_ref()], Bytes::new(), 200, patience).await?;
        let said = match ended {
            Outcome::Done(said) => said,
            Outcome::Failed(..) => return Ok(without(ended.to_string())),
            Outcome::Killed(_) => return Err(io::Error::other(ended.to_string())),
        };
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok(match *said.split(' ').collect::<Vec<_>>().as_slice() {
            [version, heic, avif] => {
                let detail = format!("libheif {version}");
                Support { heic: heic == "true", avif: avif == "true", detail }
            }
            _ => without(format!("{} is no decoder", self.program.display())),
        })
    }

    /// Turns a file into a JPEG, or a PNG if it has transparency: upright, 8 bits a channel, with its color profile,
    /// without other metadata. Takes up to [`Header::convert_bytes`] of memory in another process, which ends when the
    /// returned future is dropped.
    ///
    /// # Errors
    /// [`PixelError::Foreign`] if nothing here decodes it, [`PixelError::Unreadable`] if it is damaged or takes more
    /// memory or time than its size justifies, [`PixelError::Internal`] if no decoder can be started.
    pub async fn convert(&self, file: Bytes, header: &Header) -> Result<Bytes, PixelError> {
        let unavailable = || PixelError::Foreign(Foreign::Unavailable(header.codec.name()));
        if !self.support().await.has(header.codec) {
            return Err(unavailable());
        }
        let (memory, time) = (header.convert_bytes().to_string(), CPU_SECS.to_string());
        let arguments = [memory.as_ref(), time.as_ref()];
        let internal = |reason: String| PixelError::Internal(format!("decoding: {reason}"));
        let ended = self.run(&arguments, file, header.result_bytes(), self.patience).await;
        match ended.map_err(|error| internal(error.to_string()))? {
            Outcome::Done(picture) => Ok(picture),
            Outcome::Killed(signal) => {
                tracing::info!(signal, "A decoder was ended");
                Err(PixelError::Unreadable(TOO_MUCH.to_owned()))
            }
            Outcome::Failed(status, reason) => {
                let ending = |ending: Ending| status == ending as i32;
                tracing::info!(status, reason, "A picture cannot be decoded");
                if ending(Ending::Damaged) {
                    Err(PixelError::Unreadable("it is damaged".to_owned()))
                } else if ending(Ending::NoDecoder) {
                    Err(unavailable())
                } else {
                    Err(internal(reason))
                }
            }
        }
    }

    /// Runs a decoder to its end. It has no environment, so no secret either.
    async fn run(
        &self,
        arguments: &[&OsStr],
        input: Bytes,
        max_output: u64,
        patience: Duration,
    ) -> io::Result<Outcome> {
        let mut decoder = Command::new(&self.program)
            .arg(COMMAND)
            .arg(&self.library)
            .args(arguments)
            .env_clear()
            // Each heap reserves address space, which is limited.
            .env("MALLOC_ARENA_MAX", "1")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout, stderr) =
            (decoder.stdin.take(), decoder.stdout.take(), decoder.stderr.take());
        let send = async {
            let Some(mut stdin) = stdin else { return };
            // A decoder that has ended reads no more input; its exit status says why.
            let _ = stdin.write_all(&input).await;
        };
        let talk = async {
            let ((), output, reason) =
                tokio::join!(send, read(stdout, max_output), read(stderr, MAX_REASON_BYTES));
            Ok::<_, io::Error>((output?, reason?, decoder.wait().await?))
        };
        let Ok(ended) = timeout(patience, talk).await else {
            return Ok(Outcome::Killed(libc::SIGKILL));
        };
        let (output, reason, status) = ended?;
        Ok(match (status.code(), status.signal()) {
            (Some(0), _) => Outcome::Done(output.into()),
            (Some(code), _) => {
                Outcome::Failed(code, String::from_utf8_lossy(&reason).trim().to_owned())
            }
            (None, signal) => Outcome::Killed(signal.unwrap_or(libc::SIGKILL)),
        })
    }
}

/// Reads up to `most` bytes, and then closes the pipe, so that a writer of more fails.
async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

#[derive(Debug)]
enum Outcome {
    Done(Bytes),
    /// The exit status and the error message.
    Failed(i32, String),
    /// The signal.
    Killed(i32),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done(output) => write!(f, "done, {} bytes", output.len()),
            Self::Failed(_, reason) => f.write_str(reason),
            Self::Killed(signal) => write!(f, "ended by signal {signal}"),
        }
    }
}
