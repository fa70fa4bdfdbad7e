//! The problems that keep this worker from running jobs, or from running them as configured, for its row in the database.

use std::sync::Arc;
use std::time::Duration;

use retouch_core::Clock;
use retouch_core::workers::{CONTENT_CREDENTIALS, OBJECT_STORE, Worker, WorkerProblem};
use retouch_credentials::Credentials;
use retouch_inference::registry::{Problem, Registry};
use tokio::sync::watch;

use crate::storage_probe::{BucketState, StorageProbe};

/// How often the certificate of Content Credentials is checked.
const CREDENTIALS_INTERVAL: Duration = Duration::from_hours(1);

/// Everything that can have problems.
#[derive(Clone)]
pub(super) struct State {
    pub registry: Arc<Registry>,
    pub storage: StorageProbe,
    pub credentials: Credentials,
}

impl State {
    pub fn problems(&self) -> Vec<WorkerProblem> {
        let of_model = |Problem { model, step, reason }| WorkerProblem {
            model,
            step: step.as_str().to_owned(),
            reason,
        };
        let reason = match self.storage.state() {
            BucketState::Unknown | BucketState::Available => None,
            BucketState::Unavailable => Some(
                "The object store is unavailable. This worker claims no jobs until it is back.",
            ),
            BucketState::Foreign => Some(
                "The bucket does not belong to this database. This worker claims no jobs. Check S3_BUCKET and DATABASE_URL.",
            ),
        };
        let storage = reason.map(|reason| WorkerProblem {
            model: OBJECT_STORE.into(),
            step: "storage".into(),
            reason: reason.into(),
        });
        let signing = self.credentials.problem(Clock::system().now()).map(|reason| WorkerProblem {
            model: CONTENT_CREDENTIALS.into(),
            step: "signing".into(),
            reason,
        });
        let models = self.registry.problems().into_iter().map(of_model);
        models.chain(storage).chain(signing).collect()
    }

    /// Reports when the object store becomes unavailable, and when it is back.
    pub async fn report_storage(self, worker: Arc<watch::Sender<Worker>>) {
        let mut changes = self.storage.subscribe();
        // The store may have become unavailable before this task started.
        changes.mark_changed();
        while changes.changed().await.is_ok() {
            worker.send_modify(|worker| worker.problems = self.problems());
        }
    }

    /// Reports when the certificate of Content Credentials is about to expire.
    pub async fn report_credentials(self, worker: Arc<watch::Sender<Worker>>) {
        loop {
            tokio::time::sleep(CREDENTIALS_INTERVAL).await;
            worker.send_modify(|worker| worker.problems = self.problems());
        }
    }
}
