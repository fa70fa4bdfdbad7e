//! The state that the API and the workers of Retouch share: the life of a job, the ledger, orders, the queue, the
//! storage and the configuration. No HTTP, no pixels, no models.
//!
//! | word | meaning |
//! |---|---|
//! | *image* | a picture that somebody uploaded; [`images`] |
//! | *job* | one run of a tool on an image; [`jobs`] is its life |
//! | *result* | the picture that a job made; [`results`] |
//! | *lease* | how long a silent worker keeps its job; [`jobs::renew`] |
//! | *suspect* | a job that has lost a worker and runs alone; [`jobs::Isolation`] |
//! | *doorbell* | a message in Redis that a class has work; [`queue`] |
//! | *event* | a message in Redis that a job changed; [`queue::JobEvent`] |
//! | *credit* | the unit of payment; only [`credits`] changes a balance |
//! | *hold* | credits reserved for an active job (`users.reserved`) |
//! | *debit* | the ledger entry of a finished job |
//! | *pack* | an amount of credits on sale; [`credits::Pack`] |
//! | *order* | a user's purchase of a pack; [`orders`] is its life |
//! | *webhook* | an address that receives the events of an account; [`webhooks`] |
//! | *delivery* | one event on its way to one webhook |
//! | *selection* | the pixels of what somebody clicked on; [`selection`] |
//! | *mode* | what a prompt asks Magic Fix to do; [`magic_fix`] finds it |
//!
//! `docs/architecture.md` has the whole glossary.

pub mod accounts;
mod advisory_lock;
pub mod api_keys;
mod attempt;
pub mod audit;
mod chores;
pub mod clock;
pub mod config;
pub mod credits;
pub mod db;
pub mod id;
pub mod images;
pub mod janitor;
pub mod jobs;
pub mod magic_fix;
pub mod orders;
mod pages;
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
pub use clock::Clock;
pub use id::{
    ApiKeyId, EventId, Id, ImageId, JobId, OrderId, ResultId, UserId, WebhookId, WorkerId,
};
