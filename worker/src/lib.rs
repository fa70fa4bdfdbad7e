//! Claims jobs, runs tools, records results.
//!
//! `consumer → job → tools`: a [`consumer`] claims jobs, [`job`] takes one from its image in S3 to its recorded result,
//! and [`tools`] combine functions of `retouch-pixels` with models of `retouch-inference`. Beside
//! them, [`select`] answers clicks, and [`sample`] shows what a paid upscale would look like.

pub mod commands;
pub mod config;
pub mod consumer;
pub mod faults;
pub mod job;
pub mod lease;
pub mod pixel_pool;
pub mod requests;
pub mod sample;
pub mod select;
pub mod storage_probe;
pub mod sweeper;
pub mod tools;
pub mod watchdog;
