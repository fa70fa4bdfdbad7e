//! Stand-ins that speak the real protocols: an S3 server for a laptop, and for tests also Redis servers
//! to break, an identity provider to lie with, and a bucket that is gone when the test ends.

pub mod issuer;
pub mod redis_server;
pub mod s3;
pub mod testing;
