//! `retouch-worker doctor`: everything that a worker needs, one line each, and what to do about what is missing.

mod gpu;
mod machine;
mod models;
mod services;

use std::fmt;

use anyhow::bail;
use clap::Args;
use retouch_inference::session::{Runtime, SessionError};

use super::ModelArgs;

/// `doctor`.
#[derive(Args)]
pub struct Doctor {
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    services: services::Addresses,
    /// Where the dynamic linker looks before its own folders.
    #[arg(long, env = "LD_LIBRARY_PATH", hide = true, default_value = "")]
    library_path: String,
}

impl Doctor {
    /// Looks at everything, however much of it is wrong.
    pub async fn execute(self) -> anyhow::Result<()> {
        let mut report = Report::default();
        report.area("machine", machine::look());
        let (device, runtime) = self.runtime();
        let wanted = gpu::Wanted {
            policy: self.models.device,
            runtime_starts: runtime.is_ok(),
            library_path: &self.library_path,
            tensorrt_cache: self.models.tensorrt_cache.as_deref(),
        };
        report.area("GPU", gpu::look(&wanted));
        let library = runtime.iter().map(|runtime| Finding::good(providers(runtime)));
        report.area("ONNX Runtime", [device].into_iter().chain(library).collect());
        report.area(
            "models",
            match runtime {
                Ok(runtime) => models::look(&self.models.models_dir, &runtime).await,
                Err(_) => vec![Finding::note("not looked at: they need ONNX Runtime")],
            },
        );
        report.area("services", services::look(&self.services).await);
        report.verdict()
    }

    fn runtime(&self) -> (Finding, Result<Runtime, SessionError>) {
        let library = self.models.library();
        let started = self.models.runtime();
        let finding = match &started {
            Ok(runtime) => {
                Finding::good(format!("models run on {} ({})", runtime.device(), library.display()))
            }
            Err(error) => Finding::bad(error.to_string(), gpu::advice(&error.to_string())),
        };
        (finding, started)
    }
}

/// What the library can run models on, whether this machine has it or not.
fn providers(runtime: &Runtime) -> String {
    format!("it was built with {}", runtime.providers().join(", "))
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    verdict: Verdict,
    text: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Note,
    Bad,
}

impl Finding {
    fn good(text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Good, text: text.into(), advice: None }
    }

    fn note(text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, text: text.into(), advice: None }
    }

    fn bad(text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Bad, text: text.into(), advice: Some(advice.into()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.verdict {
            Verdict::Good => "ok   ",
            Verdict::Note => "note ",
            Verdict::Bad => "WRONG",
        };
        write!(f, "  {mark} {}", self.text)?;
        match &self.advice {
            Some(advice) => write!(f, "\n        → {advice}"),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Report {
    wrong: usize,
}

impl Report {
    fn area(&mut self, name: &str, findings: Vec<Finding>) {
        println!("{name}");
        for finding in findings {
            println!("{finding}");
            self.wrong += usize::from(finding.verdict == Verdict::Bad);
        }
    }

    fn verdict(&self) -> anyhow::Result<()> {
        match self.wrong {
            0 => {
                println!("\nThis worker can serve.");
                Ok(())
            }
            1 => bail!("one thing is wrong; see the line marked WRONG"),
            many => bail!("{many} things are wrong; see the lines marked WRONG"),
        }
    }
}
