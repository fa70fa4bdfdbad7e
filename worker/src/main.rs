//! The worker's command line: parses the arguments and runs one of the library's commands.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use retouch_core::{telemetry, with_causes};
use retouch_inference::registry::wait_until_freed;
use retouch_worker::commands::{bench, credentials, doctor, models, run as tools, serve};
use retouch_worker::watchdog;

/// Edits images with ONNX models.
#[derive(Parser)]
#[command(name = "retouch-worker", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run jobs until SIGTERM or Ctrl-C.
    Serve(Box<serve::Serve>),
    /// Run a tool on files, without any server.
    #[command(subcommand)]
    Run(Box<tools::Run>),
    /// Check and verify models.
    #[command(subcommand)]
    Models(Box<models::Models>),
    /// Measure the speed of this machine.
    Bench(Box<bench::Bench>),
    /// Check everything that a worker needs and advise how to fix what is wrong.
    Doctor(Box<doctor::Doctor>),
    /// Show the marks of pictures: their Content Credentials, made here or elsewhere.
    Credentials(Box<credentials::Show>),
    /// Check that the worker which writes this health file is alive and working; for containers.
    Healthcheck {
        /// The health file that the worker writes.
        #[arg(long, env = "RETOUCH_HEALTH_FILE", value_name = "FILE")]
        health_file: PathBuf,
    },
}

/// Maximum wait at the end of a process for its models to be freed.
const FREEING_LIMIT: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let code = retouch_heif::decode_if_asked().unwrap_or_else(run);
    wait_until_freed(FREEING_LIMIT);
    code
}

#[tokio::main]
async fn run() -> ExitCode {
    let cli: Cli = retouch_core::config::parse();
    // Several TLS providers are linked in, so rustls needs to know which one to use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if !matches!(cli.command, Command::Serve(_)) {
        // ONNX Runtime warns about operators that belong on the CPU whenever a model is opened on a GPU.
        telemetry::log_to_stderr("warn,ort=error");
        retouch_core::telemetry::exit_on_broken_pipe();
    }
    let outcome = match cli.command {
        Command::Serve(command) => command.execute().await,
        Command::Run(command) => command.execute().await,
        Command::Models(command) => command.execute().await,
        Command::Bench(command) => command.execute().await,
        Command::Doctor(command) => command.execute().await,
        Command::Credentials(command) => command.execute(),
        Command::Healthcheck { health_file } => {
            watchdog::check(&health_file, retouch_core::Clock::system().now().into())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("retouch-worker: {}", with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
