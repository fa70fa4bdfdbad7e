//! What every request may touch.

use std::sync::Arc;

use anyhow::Context;
use retouch_core::Clock;
use retouch_core::db::PgPool;
use retouch_core::queue::Queue;
use retouch_core::storage::Storage;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::auth::Authenticator;
use crate::config::{ApiConfig, IdentityConfig, LimitsConfig, SiteConfig};
use crate::former::FormerUsers;
use crate::news::News;
use crate::payments::Payments;
use crate::rates::Rates;
use crate::signing::UrlSigner;
use crate::uploads::Uploads;
use crate::visitors::Visitors;

/// The services and settings of one API process; clones are the same.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// See [`App`].
pub struct Parts {
    pub pool: PgPool,
    pub queue: Queue,
    pub storage: Storage,
    pub news: News,
    pub authenticator: Authenticator,
    pub signer: UrlSigner,
    pub visitors: Visitors,
    pub former: FormerUsers,
    pub rates: Rates,
    /// Nothing where no key is configured: then credits cannot be bought.
    pub payments: Option<Payments>,
    pub clock: Clock,
    pub limits: LimitsConfig,
    pub identity: IdentityConfig,
    pub site: SiteConfig,
    /// One permit for each picture being decoded: bounds the memory that uploads take.
    pub decoders: Semaphore,
    /// And of what is sent.
    pub uploads: Arc<Uploads>,
    /// Ends streams that would otherwise outlive a shutdown.
    pub stopping: CancellationToken,
}

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl App {
    /// Prepares everything; nothing needs to be reachable yet.
    pub fn new(config: &ApiConfig, clock: Clock) -> anyhow::Result<Self> {
        Self::with_pool(config, clock, retouch_core::db::pool(&config.database)?)
    }

    /// The same on a database that is open already.
    pub fn with_pool(config: &ApiConfig, clock: Clock, pool: PgPool) -> anyhow::Result<Self> {
        // Several TLS libraries are linked in by now; say which one is meant.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let secret = config.url_secret.reveal().as_bytes();
        anyhow::ensure!(secret.len() >= 16, "RETOUCH_URL_SECRET must have at least 16 characters");
        Ok(Self(Arc::new(Parts {
            pool,
            queue: Queue::new(&config.redis)?,
            storage: Storage::new(&config.storage),
            news: News::default(),
            authenticator: Authenticator::new(&config.identity, clock.clone())
                .context("preparing sign-in")?,
            signer: UrlSigner::new(secret, clock.clone()),
            former: FormerUsers::new(secret),
            rates: Rates::new(&config.limits),
            visitors: Visitors::new(secret, &config.limits, &config.trusted_proxies),
            payments: Payments::new(&config.payments).context("preparing payments")?,
            clock,
            limits: config.limits.clone(),
            identity: config.identity.clone(),
            site: config.site.clone(),
            decoders: Semaphore::new(cores),
            uploads: Arc::new(Uploads::new(config.limits.upload_memory_mib << 20)),
            stopping: CancellationToken::new(),
        })))
    }
}
