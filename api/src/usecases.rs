//! One file for each thing a person can do; rules only, nothing of HTTP.

pub mod magic_fix;
pub mod run_tool;
pub mod run_visitor_tool;
pub mod sign_in;
pub mod upload_image;
