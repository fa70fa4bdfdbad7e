//! Jobs that run only for the requests that wait for them. Once all their clients have hung up, they are canceled, so
//! that nobody pays for a result that no client receives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use retouch_core::JobId;
use tokio::runtime::Handle;

/// Grace period for a job after its last client hung up: a client that gives up and retries immediately joins it.
const PATIENCE: Duration = Duration::from_secs(3);

/// The attended jobs that this process submitted.
#[derive(Clone, Default)]
pub struct AttendedJobs(Arc<Mutex<HashMap<JobId, Weak<Attended>>>>);

/// A request's wait for an attended job. If it is dropped before [`Attendance::end`], the client hung up.
pub struct Attendance(Option<Arc<Attended>>);

struct Attended {
    job: JobId,
    /// Cancels the job; `None` once it needs no cancellation.
    cancel: Mutex<Option<BoxFuture<'static, ()>>>,
    all: AttendedJobs,
}

impl AttendedJobs {
    /// Attends a job that is about to be submitted. `cancel` runs if all its clients hang up.
    pub fn attend(&self, job: JobId, cancel: BoxFuture<'static, ()>) -> Attendance {
        let attended = Attended { job, cancel: Mutex::new(Some(cancel)), all: self.clone() };
        let attended = Arc::new(attended);
        self.lock().insert(job, Arc::downgrade(&attended));
        Attendance(Some(attended))
    }

    /// Attends the job of an earlier request. If another process submitted it, that process decides alone.
    pub fn join(&self, job: JobId) -> Attendance {
        Attendance(self.lock().get(&job).and_then(Weak::upgrade))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Weak<Attended>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attended {
    fn take_cancel(&self) -> Option<BoxFuture<'static, ()>> {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Attendance {
    /// Ends the attendance: the job has ended, was refused, or is being canceled.
    pub fn end(&mut self) {
        if let Some(attended) = self.0.take() {
            drop(attended.take_cancel());
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if let (Some(attended), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                drop(attended);
            });
        }
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.all.lock().remove(&self.job);
        if let (Some(cancel), Ok(runtime)) = (self.take_cancel(), Handle::try_current()) {
            runtime.spawn(cancel);
        }
    }
}
