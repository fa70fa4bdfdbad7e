//! Object ids.

use uuid::Uuid;

/// Returns an id like Stripe's: a prefix, then letters and digits. Later ids sort after earlier ones.
pub fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}
