//! `retouch-local s3`: the S3 server that `scripts/up` starts where none is configured.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use retouch_local::s3::{self, Keys};
use tokio::net::TcpListener;

/// Stand-ins for the services that Retouch needs, for one machine.
#[derive(Parser)]
enum Command {
    /// Serve a folder over the S3 protocol.
    S3 {
        /// The folder; buckets are its sub-folders.
        #[arg(long)]
        root: PathBuf,
        /// Where to listen.
        #[arg(long, default_value = "127.0.0.1:19000")]
        listen: SocketAddr,
        /// The access key id that is accepted.
        #[arg(long, env = "S3_ACCESS_KEY_ID")]
        access_key: String,
        /// Its secret.
        #[arg(long, env = "S3_SECRET_ACCESS_KEY", hide_env_values = true)]
        secret_key: String,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match Command::parse() {
        Command::S3 { root, listen, access_key, secret_key } => {
            let listener = TcpListener::bind(listen)
                .await
                .with_context(|| format!("listening at {listen}"))?;
            let keys = Keys { access_key, secret_key };
            tracing::info!(%listen, root = %root.display(), "Serving S3");
            tokio::select! {
                served = s3::serve(listener, &root, &keys) => served,
                () = stopped() => Ok(()),
            }
        }
    }
}

async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
