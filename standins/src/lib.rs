//! Stand-ins that speak the real protocols: an S3 server and a Stripe for a laptop, and for tests also Redis servers
//! to break, an identity provider to lie with, a bucket that is gone when the test ends, and users who want much.

pub mod issuer;
pub mod load;
pub mod log;
pub mod redis_server;
pub mod s3;
pub mod stripe;
pub mod testing;
