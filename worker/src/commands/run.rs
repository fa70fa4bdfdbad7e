//! `retouch-worker run`: runs a tool on files, without any server.

mod batch;
mod choose;
mod factor;
mod fix;
mod format;
mod metadata;
mod output;
mod pictures;
mod progress;
mod remove_bg;
mod report;
mod tool;
mod upscale;

use clap::Subcommand;
use retouch_core::telemetry;

pub use choose::choose_model;
pub use factor::parse_factor;
use fix::FixArgs;
use remove_bg::RemoveBgArgs;
pub use report::millis;
use upscale::UpscaleArgs;

/// The conventional exit status of a program ended by Ctrl-C (128 + SIGINT).
const EXIT_INTERRUPTED: i32 = 130;

/// The tools.
#[derive(Subcommand)]
pub enum Run {
    /// Cut the subjects of pictures out of their backgrounds.
    RemoveBg(RemoveBgArgs),
    /// Enlarge pictures.
    Upscale(UpscaleArgs),
    /// Repaint a masked area of pictures as a prompt says.
    Fix(FixArgs),
}

impl Run {
    /// Runs the tool. An interrupt leaves no partial file behind.
    pub async fn execute(self) -> anyhow::Result<()> {
        let work = async {
            match self {
                Self::RemoveBg(command) => command.execute().await,
                Self::Upscale(command) => command.execute().await,
                Self::Fix(command) => command.execute().await,
            }
        };
        let ended = tokio::select! {
            done = work => Ok(done),
            () = telemetry::shutdown_signal() => Err(()),
        };
        ended.unwrap_or_else(|()| {
            eprintln!("retouch-worker: interrupted; no unfinished result was written");
            // A running model cannot be canceled, so this does not wait for it.
            std::process::exit(EXIT_INTERRUPTED)
        })
    }
}
