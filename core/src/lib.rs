//! What the API and the workers of Retouch must agree on: prices, a job's life, the ledger, the rows,
//! the queue, the storage and the configuration. No HTTP, no pixels, no ONNX.
//!
//! | word | meaning |
//! |---|---|
//! | *image* | a picture somebody uploaded |
//! | *job* | one run of a tool on an image; [`jobs`] is its life |
//! | *result* | the picture a job made |
//! | *credit* | what a paid job costs; [`credits`] is the only hand on a balance |
//! | *pack* | an amount of credits on sale |
//! | *order* | somebody's purchase of a pack; [`orders`] is its life |
//! | *hold* | credits set aside for a job that has not ended (`users.reserved`) |
//! | *doorbell* | a message in Redis that says "there is work"; the work itself is the row in Postgres |
//! | *mode* | what a Magic Fix is asked to do; [`magic_fix`] reads it from the prompt |
//! | *lease* | how long a worker may stay silent before its job is given to another |

pub mod accounts;
pub mod api_keys;
pub mod audit;
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
pub mod queue;
pub mod results;
pub mod storage;
pub mod telemetry;
pub mod users;
pub mod workers;

pub use clock::Clock;
pub use id::{ApiKeyId, Id, ImageId, JobId, OrderId, ResultId, UserId, WorkerId};
