//! What the API and the workers of Retouch share: the life of a job, the ledger, orders, the queue, storage and
//! configuration. Knows no HTTP, no pixels and no models.
//!
//! `docs/architecture.md` has the glossary.

pub mod accounts;
pub mod api_keys;
mod attempt;
pub mod audit;
mod causes;
mod chores;
pub mod clock;
pub mod config;
pub mod credits;
pub mod db;
pub mod id;
pub mod images;
pub mod janitor;
pub mod jobs;
pub mod orders;
pub mod queue;
pub mod restored;
pub mod results;
pub mod sample;
pub mod selection;
pub mod storage;
pub mod telemetry;
pub mod users;
pub mod webhooks;
pub mod workers;

pub use attempt::Attempt;
pub use causes::with_causes;
pub use clock::Clock;
pub use id::{
    ApiKeyId, EventId, Id, ImageId, JobId, OrderId, ResultId, UserId, WebhookId, WorkerId,
};
