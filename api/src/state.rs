//! The services and settings that request handlers share.

mod recent;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use retouch_core::db::{self, DatabaseError, PgPool};
use retouch_core::jobs::{self, TypicalTime};
use retouch_core::queue::{MAX_WAITING, Queue};
use retouch_core::storage::{OwnerError, Storage, check_owner};
use retouch_core::workers::{self, ServedModel};
use retouch_core::{Clock, UserId};
use retouch_credentials::{Credentials, Verifier};
use retouch_heif::Heif;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use url::Url;

use crate::auth::Authenticator;
use crate::auth::deleted_users::DeletedUsers;
use crate::auth::visitors::Visitors;
use crate::config::{ApiConfig, IdentityConfig, LimitsConfig, SiteConfig, check_secret};
use crate::limits::container;
use crate::limits::decode_budget::{DecodeBudget, UserOrVisitor};
use crate::limits::fair_budget::FairBudget;
use crate::limits::rate_limits::RateLimits;
use crate::limits::turns::Turns;
use crate::payments::Payments;
use crate::signing::UrlSigner;
use crate::waiting::attended_jobs::AttendedJobs;
use crate::waiting::job_events::JobEvents;
use crate::webhooks::address::AddressRules;
use recent::Recent;

/// Maximum concurrent renderings per caller. Each may take most of the memory for pictures, and renderings get memory
/// in order of arrival, so a caller with many would block the others.
const RENDERINGS_OF_CALLER: usize = 2;

/// Maximum number of a user's transactions that lock their row at once. All but one wait for the lock, and each keeps a
/// connection to the database (`DATABASE_CONNECTIONS`, 16 by default) while it waits.
const TRANSACTIONS_OF_OWNER: usize = 4;

/// How long readiness, models and typical times are reused: anybody may ask for them, as often as they like.
const READINESS_AGE: Duration = Duration::from_secs(1);
const MODELS_AGE: Duration = Duration::from_secs(2);
const TIMES_AGE: Duration = Duration::from_secs(10);

/// The services and settings of one API process. Clones share them.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// See [`App`].
pub struct Parts {
    pub pool: PgPool,
    pub queue: Queue,
    pub storage: Storage,
    pub job_events: JobEvents,
    pub attended_jobs: AttendedJobs,
    pub authenticator: Authenticator,
    pub signer: UrlSigner,
    pub visitors: Visitors,
    pub deleted_users: DeletedUsers,
    pub rate_limits: RateLimits,
    /// `None` without a configured key; credits cannot be bought then.
    pub payments: Option<Payments>,
    pub clock: Clock,
    pub limits: LimitsConfig,
    pub identity: IdentityConfig,
    pub site: SiteConfig,
    /// Marks files as configured by the operator.
    pub credentials: Credentials,
    /// Reads the marks of files.
    pub verifier: Verifier,
    /// Address at which browsers and programs reach this installation.
    pub public_url: Url,
    /// Reads HEIC and AVIF.
    pub heif: Heif,
    /// Which addresses webhooks may call.
    pub webhook_addresses: AddressRules,
    pub decoders: DecodeBudget,
    /// Renderings in progress.
    pub renderings: Turns<UserOrVisitor>,
    /// Transactions that lock the row of a user; see [`App::in_turn_of`].
    pub transactions: Turns<UserId>,
    /// The memory for uploads in progress, in bytes.
    pub upload_budget: Arc<FairBudget>,
    /// Open connections.
    pub connections: Arc<FairBudget>,
    /// Requests in flight.
    pub requests: Arc<FairBudget>,
    /// Samples that wait for a worker.
    pub samples: Arc<FairBudget>,
    /// Selections that wait for a worker.
    pub selections: Arc<FairBudget<UserId>>,
    typical_times: Recent<Vec<TypicalTime>>,
    models: Recent<Vec<ServedModel>>,
    readiness: Recent<Dependencies>,
    /// Canceled on shutdown; ends event streams and background tasks.
    pub stopping: CancellationToken,
    /// Short tasks that outlive their requests; a stopping process waits for them.
    pub tasks: TaskTracker,
}

/// Which dependencies are available.
#[derive(Clone, Copy, Debug)]
pub struct Dependencies {
    /// With the migrations of this version.
    pub postgres: bool,
    pub redis: bool,
    /// With the bucket of this database.
    pub storage: bool,
}

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl App {
    /// Creates the clients. Does not connect to anything.
    pub fn new(config: &ApiConfig, clock: Clock) -> anyhow::Result<Self> {
        Self::with_pool(config, clock, db::pool(&config.database).context("DATABASE_URL")?)
    }

    /// [`Self::new`] with an existing connection pool.
    pub fn with_pool(config: &ApiConfig, clock: Clock, pool: PgPool) -> anyhow::Result<Self> {
        // rustls panics if several crypto providers are linked and none is the default.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A request may open as many files as its connection: to the database or the object store.
        let max_files = container::open_files().map_or(usize::MAX, |files| files / 2);
        let max_connections = config.limits.max_connections.min(max_files);
        let secret = check_secret(&config.url_secret)?;
        let queue = Queue::new(&config.redis)?;
        let credentials = Credentials::open(&config.credentials, clock.now())?;
        let verifier = credentials.verifier().map_err(anyhow::Error::msg)?;
        Ok(Self(Arc::new(Parts {
            pool,
            rate_limits: RateLimits::new(&config.limits, &queue),
            queue,
            storage: Storage::new(&config.storage),
            job_events: JobEvents::default(),
            attended_jobs: AttendedJobs::default(),
            authenticator: Authenticator::new(&config.identity, clock.clone())
                .context("preparing sign-in")?,
            signer: UrlSigner::new(secret, clock.clone()),
            deleted_users: DeletedUsers::new(secret),
            visitors: Visitors::new(secret, &config.trusted_proxies),
            payments: Payments::new(&config.payments, &config.public_url)
                .context("preparing payments")?,
            clock,
            limits: config.limits.clone(),
            identity: config.identity.clone(),
            site: config.site.clone(),
            credentials,
            verifier,
            public_url: config.public_url.clone(),
            heif: Heif::new(&config.heif).context("finding the program that decodes pictures")?,
            webhook_addresses: AddressRules::new(&config.webhooks.allow_private),
            renderings: Turns::new(RENDERINGS_OF_CALLER),
            transactions: Turns::new(TRANSACTIONS_OF_OWNER),
            decoders: DecodeBudget::new(&config.limits),
            upload_budget: Arc::new(FairBudget::new(config.limits.upload_memory_mib << 20)),
            connections: Arc::new(FairBudget::new(max_connections)),
            requests: Arc::new(FairBudget::new(max_connections)),
            samples: Arc::new(FairBudget::new(MAX_WAITING)),
            selections: Arc::new(FairBudget::new(MAX_WAITING)),
            typical_times: Recent::new(TIMES_AGE),
            models: Recent::new(MODELS_AGE),
            readiness: Recent::new(READINESS_AGE),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })))
    }

    /// Runs `work`, which locks the row of `owner`, when fewer than [`TRANSACTIONS_OF_OWNER`] others of theirs run, so that no
    /// account takes all connections to the database. Once started, `work` continues even if the client hangs up: the
    /// database would, too.
    ///
    /// # Errors
    /// If `work` panics.
    pub async fn in_turn_of<T: Send + 'static>(
        &self,
        owner: UserId,
        work: impl Future<Output = T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let turn = self.transactions.next(owner).await?;
        let work = async move {
            let done = work.await;
            drop(turn);
            done
        };
        self.tasks.spawn(work.in_current_span()).await.context("changing an account")
    }

    /// Returns the models of all known workers, as they were at most two seconds ago.
    pub async fn known_models(&self) -> Result<Vec<ServedModel>, DatabaseError> {
        db::within(self.models.get(workers::known_models(&self.pool))).await
    }

    /// Returns the typical times of runs, as they were at most ten seconds ago.
    pub async fn typical_times(&self) -> Result<Vec<TypicalTime>, DatabaseError> {
        db::within(self.typical_times.get(jobs::typical_times(&self.pool))).await
    }

    /// Returns which dependencies are available, or were a second ago.
    pub async fn dependencies(&self) -> Dependencies {
        let checks = async {
            let (postgres, redis, storage) =
                tokio::join!(db::check(&self.pool), self.queue.ping(), self.storage_is_ready());
            let (postgres, redis) = (postgres.is_ok(), redis.is_ok());
            Ok::<_, Infallible>(Dependencies { postgres, redis, storage })
        };
        let Ok(dependencies) = self.readiness.get(checks).await;
        dependencies
    }

    /// Returns true if the object store answers and the bucket belongs to this database.
    pub async fn storage_is_ready(&self) -> bool {
        match check_owner(&self.pool, &self.storage).await {
            // The database reports its own outages.
            Ok(()) | Err(OwnerError::Database(_)) => true,
            Err(error) => {
                tracing::error!("The bucket is not ready: {error}");
                false
            }
        }
    }
}
