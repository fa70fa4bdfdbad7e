//! The identity of one attempt at a job.

use crate::{JobId, WorkerId};

/// One attempt of a worker at a job. Only the current attempt can end the job: the same worker may have lost it in an
/// outage and claimed it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub job: JobId,
    pub worker: WorkerId,
    /// The number of the attempt, from 1. No two attempts at a job share one.
    pub number: i32,
}
