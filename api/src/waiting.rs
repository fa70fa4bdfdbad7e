//! Requests and event streams that wait for jobs.

pub mod attended_jobs;
pub mod job_events;
