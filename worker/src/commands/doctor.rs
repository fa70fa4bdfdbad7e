//! `retouch-worker doctor`: checks everything that a worker needs, one line each, with advice on how to fix what is wrong.

mod credentials;
mod finding;
mod gpu;
mod machine;
mod models;
mod pictures;
mod services;

use anyhow::bail;
use clap::Args;
use retouch_credentials::CredentialsConfig;
use retouch_heif::HeifConfig;
use retouch_inference::session::{Runtime, SessionError};

use super::ModelArgs;
use finding::Finding;

/// The arguments of `doctor`.
#[derive(Args)]
pub struct Doctor {
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    services: services::Addresses,
    #[command(flatten)]
    credentials: CredentialsConfig,
    #[command(flatten)]
    heif: HeifConfig,
    /// The folders that the dynamic linker searches first, separated by colons.
    #[arg(long, env = "LD_LIBRARY_PATH", hide = true, default_value = "")]
    library_path: String,
}

impl Doctor {
    /// Runs every check, even after one has failed.
    pub async fn execute(self) -> anyhow::Result<()> {
        let mut report = Report::default();
        report.area("machine", machine::check());
        let (device, runtime) = self.runtime();
        let requirements = gpu::Requirements {
            policy: self.models.device,
            runtime_starts: runtime.is_ok(),
            library_path: &self.library_path,
            cuda: &self.models.cuda,
            engines: self
                .models
                .tensorrt_cache
                .as_deref()
                .map(|folder| (folder, self.models.tensorrt)),
        };
        report.area("GPU", gpu::check(&requirements));
        let library = runtime.iter().map(|runtime| Finding::good(providers(runtime)));
        report.area("ONNX Runtime", [device].into_iter().chain(library).collect());
        report.area(
            "models",
            match runtime {
                Ok(runtime) => models::check(&self.models.models_dir, &runtime).await,
                Err(_) => vec![Finding::note("not checked, because ONNX Runtime does not start")],
            },
        );
        report.area("services", services::check(&self.services).await);
        report.area("pictures", vec![pictures::check(&self.heif).await]);
        report.area("Content Credentials", vec![credentials::check(&self.credentials)]);
        report.finish()
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

/// Lists the execution providers that the library was built with; this machine may not support all of them.
fn providers(runtime: &Runtime) -> String {
    format!("execution providers of this library: {}", runtime.providers().join(", "))
}

#[derive(Default)]
struct Report {
    problems: usize,
}

impl Report {
    fn area(&mut self, name: &str, findings: Vec<Finding>) {
        println!("{name}");
        for finding in findings {
            println!("{finding}");
            self.problems += usize::from(finding.is_bad());
        }
    }

    fn finish(&self) -> anyhow::Result<()> {
        match self.problems {
            0 => {
                println!("\nThis worker is ready to serve.");
                Ok(())
            }
            1 => bail!("found 1 problem; see the line marked WRONG"),
            count => bail!("found {count} problems; see the lines marked WRONG"),
        }
    }
}
