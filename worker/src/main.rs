//! The worker's command line. Each subcommand has a file of its own under `commands/`.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{bench, models, run, serve};

/// Edits images with ONNX models.
#[derive(Parser)]
#[command(name = "retouch-worker", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Take jobs until told to stop.
    Serve(Box<serve::Serve>),
    /// Run a tool on a file, without any server.
    #[command(subcommand)]
    Run(run::Run),
    /// Look after the models.
    #[command(subcommand)]
    Models(models::Models),
    /// Measure how fast this machine is.
    #[command(subcommand)]
    Bench(bench::Bench),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    // Several TLS libraries are linked in; say which one is meant.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if !matches!(cli.command, Command::Serve(_)) {
        commands::log_to_stderr();
    }
    let outcome = match cli.command {
        Command::Serve(command) => command.execute().await,
        Command::Run(command) => command.execute().await,
        Command::Models(command) => command.execute().await,
        Command::Bench(command) => command.execute().await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("retouch-worker: {error:#}");
            ExitCode::FAILURE
        }
    }
}
