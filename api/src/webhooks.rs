//! Sends deliveries to webhooks, as the Standard Webhooks specification describes. `retouch_core::webhooks` stores both.

pub mod address;
mod attempts;
mod lanes;
pub mod payload;
pub mod sender;
pub mod signature;
