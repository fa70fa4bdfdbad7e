//! `retouch-standins s3` and `retouch-standins stripe`: the servers that `scripts/up` starts where none is configured; and
//! `retouch-standins load`, the users of a benchmark.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Parser};
use retouch_standins::load::Load;
use retouch_standins::s3::{self, Faults, Keys};
use retouch_standins::stripe::{self, Delivery, Failure, Settings};
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
        #[command(flatten)]
        faults: Faults,
    },
    /// Run billed jobs as many users at once, and print what that was like for them.
    Load(Load),
    /// Serve the part of Stripe that sells credits; no money moves.
    Stripe(StripeOptions),
}

#[derive(Args)]
struct StripeOptions {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:19001")]
    listen: SocketAddr,
    /// Where the buyer's browser reaches it; by default where it listens.
    #[arg(long)]
    public_url: Option<String>,
    /// Where events are sent; may be repeated.
    #[arg(long = "webhook")]
    webhooks: Vec<String>,
    /// The folder that keeps sessions and events; without one they are forgotten at the end.
    #[arg(long)]
    data: Option<PathBuf>,
    /// The key that is accepted.
    #[arg(long, env = "STRIPE_SECRET_KEY", hide_env_values = true)]
    secret_key: String,
    /// The secret that events are signed with.
    #[arg(long, env = "STRIPE_WEBHOOK_SECRET", hide_env_values = true)]
    webhook_secret: String,
    #[command(flatten)]
    delivery: Delivery,
    /// How the first requests to create a session go wrong.
    #[arg(long, requires = "fail_next")]
    fail_with: Option<Failure>,
    /// How many of them do.
    #[arg(long, requires = "fail_with")]
    fail_next: Option<usize>,
}

impl From<StripeOptions> for Settings {
    fn from(options: StripeOptions) -> Self {
        let public_url = options.public_url.unwrap_or_else(|| format!("http://{}", options.listen));
        Self {
            secret_key: options.secret_key,
            webhook_secret: options.webhook_secret,
            public_url: public_url.trim_end_matches('/').to_owned(),
            webhooks: options.webhooks,
            data: options.data,
            delivery: options.delivery,
            failing: options.fail_with.zip(options.fail_next),
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match Command::parse() {
        Command::S3 { root, listen, access_key, secret_key, faults } => {
            let listener = TcpListener::bind(listen)
                .await
                .with_context(|| format!("listening at {listen}"))?;
            let keys = Keys { access_key, secret_key };
            tracing::info!(%listen, root = %root.display(), "Serving S3");
            tokio::select! {
                served = s3::serve(listener, &root, &keys, faults) => served,
                () = stopped() => Ok(()),
            }
        }
        Command::Load(load) => {
            println!("{}", serde_json::to_string(&load.run().await?)?);
            Ok(())
        }
        Command::Stripe(options) => {
            let listen = options.listen;
            let listener = TcpListener::bind(listen)
                .await
                .with_context(|| format!("listening at {listen}"))?;
            tracing::info!(%listen, "Serving the Stripe stand-in");
            tokio::select! {
                served = stripe::serve(listener, options.into()) => served,
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
