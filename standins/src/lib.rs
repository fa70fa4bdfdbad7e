//! Stand-ins for services that speak their real protocols: S3 and Stripe for laptops and tests; Redis and an identity
//! provider for tests alone; test fixtures; and a load generator.

pub mod issuer;
pub mod load;
pub mod log;
pub mod redis_server;
pub mod s3;
pub mod stripe;
pub mod testing;
