//! The parts of HTTP that routes share: callers, bodies, uploads, and problems. Knows no route.

pub mod base64_file;
pub mod body;
pub mod caller;
pub mod form_data;
pub mod json;
pub mod multipart;
pub mod object;
pub mod problem;
pub mod request;
pub mod signature;
