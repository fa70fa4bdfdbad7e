//! `retouch-standins`: the S3 and Stripe servers that `scripts/up` starts by default, and the load generator of the
//! benchmarks.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Parser};
use retouch_core::telemetry::shutdown_signal;
use retouch_standins::load::Load;
use retouch_standins::s3::{self, Faults, Keys};
use retouch_standins::stripe::{self, Settings};
use tokio::net::TcpListener;

/// Stand-ins for the services that Retouch needs, for laptops.
#[derive(Parser)]
enum Command {
    /// Serve a folder over the S3 protocol.
    S3 {
        /// Folder to serve; its subfolders are the buckets.
        #[arg(long)]
        root: PathBuf,
        /// Address and port to listen on.
        #[arg(long, default_value = "127.0.0.1:19000")]
        listen: SocketAddr,
        /// Access key id to accept.
        #[arg(long, env = "S3_ACCESS_KEY_ID")]
        access_key: String,
        /// Secret of the access key.
        #[arg(long, env = "S3_SECRET_ACCESS_KEY", hide_env_values = true)]
        secret_key: String,
        #[command(flatten)]
        faults: Faults,
    },
    /// Run paid jobs as many users at once and report latencies.
    Load(Load),
    /// Serve the part of Stripe that sells credits. No money moves.
    Stripe(StripeOptions),
}

#[derive(Args)]
struct StripeOptions {
    /// Address and port to listen on.
    #[arg(long, default_value = "127.0.0.1:19001")]
    listen: SocketAddr,
    /// Address at which browsers reach the stand-in. Default: the listen address.
    #[arg(long)]
    public_url: Option<String>,
    /// Address to send events to.
    #[arg(long)]
    webhook: Option<String>,
    /// Folder to store sessions and events in. Without it, they are lost at the end.
    #[arg(long)]
    data: Option<PathBuf>,
    /// API key to accept.
    #[arg(long, env = "STRIPE_SECRET_KEY", hide_env_values = true)]
    secret_key: String,
    /// Secret that signs events.
    #[arg(long, env = "STRIPE_WEBHOOK_SECRET", hide_env_values = true)]
    webhook_secret: String,
}

impl From<StripeOptions> for Settings {
    fn from(options: StripeOptions) -> Self {
        let public_url = options.public_url.unwrap_or_else(|| format!("http://{}", options.listen));
        Self {
            secret_key: options.secret_key,
            webhook_secret: options.webhook_secret,
            public_url: public_url.trim_end_matches('/').to_owned(),
            webhook: options.webhook,
            data: options.data,
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match Command::parse() {
        Command::S3 { root, listen, access_key, secret_key, faults } => {
            let listener = bind(listen).await?;
            let keys = Keys { access_key, secret_key };
            tracing::info!(%listen, root = %root.display(), "Serving S3");
            tokio::select! {
                served = s3::serve(listener, &root, &keys, faults) => served,
                () = shutdown_signal() => Ok(()),
            }
        }
        Command::Load(load) => {
            println!("{}", serde_json::to_string(&load.run().await?)?);
            Ok(())
        }
        Command::Stripe(options) => {
            let listen = options.listen;
            let listener = bind(listen).await?;
            tracing::info!(%listen, "Serving the Stripe stand-in");
            tokio::select! {
                served = stripe::serve(listener, options.into()) => served,
                () = shutdown_signal() => Ok(()),
            }
        }
    }
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))
}
