//! `retouch-worker bench`: measures how fast this machine is, and how close the tools come to its limit.

mod card;
mod overlap;
mod select;
mod steps;
mod suite;
mod throughput;

use clap::{Args, Subcommand};
use retouch_catalog::Tool;

use self::select::SelectArgs;
use self::steps::StepsArgs;
use self::suite::{CaseArgs, SuiteArgs};
use self::throughput::{ThroughputArgs, UpscaleThroughputArgs};

/// The arguments of `bench`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Bench {
    #[command(subcommand)]
    one: Option<One>,
    #[command(flatten)]
    suite: SuiteArgs,
}

/// The measurements, one by one.
#[derive(Subcommand)]
enum One {
    /// Measure the throughput of background removal, with stages of several pictures overlapping.
    RemoveBg(ThroughputArgs),
    /// Measure the throughput of upscaling, with tiles and stages overlapping.
    Upscale(UpscaleThroughputArgs),
    /// Measure the steps per second of a text-guided pipeline, and of its net alone.
    Steps(StepsArgs),
    /// Measure how well and how fast one click selects, on pictures whose masks are known.
    Select(SelectArgs),
    /// Measure one model under one setting; `bench --all` starts this as a process of its own.
    #[command(hide = true)]
    Case(Box<CaseArgs>),
}

impl Bench {
    pub async fn execute(self) -> anyhow::Result<()> {
        match self.one {
            None => self.suite.execute(),
            Some(One::RemoveBg(command)) => {
                command.execute(Tool::RemoveBackground, (4000, 3000)).await
            }
            Some(One::Upscale(command)) => {
                let tool = Tool::Upscale(command.factor);
                command.throughput.execute(tool, (512, 512)).await
            }
            Some(One::Steps(command)) => command.execute(),
            Some(One::Select(command)) => command.execute().await,
            Some(One::Case(command)) => command.execute().await,
        }
    }
}
