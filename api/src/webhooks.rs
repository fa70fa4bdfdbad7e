//! Sends deliveries to webhooks, as the Standard Webhooks specification describes. `retouch_core::webhooks` stores both.

pub mod address;
pub mod payload;
pub mod sender;
pub mod signature;
