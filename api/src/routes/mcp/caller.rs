//! The caller of a tool, and the id by which the call can be canceled.

use std::time::Duration;

use retouch_core::UserId;
use retouch_core::users::User;
use sha2::{Digest, Sha256};
use tracing::Span;

use crate::state::App;

/// How often a call looks for its cancellation.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The sender of a message.
#[derive(Clone)]
pub struct ToolCaller {
    pub user: User,
    session: Option<String>,
    /// The span of the request; the library handles it in a task of its own.
    pub span: Span,
}

impl ToolCaller {
    pub fn new(user: User, session: Option<String>) -> Self {
        Self { user, session, span: Span::current() }
    }

    /// Waits for a notification that cancels the request with this id. Never ends without one.
    pub async fn canceled(&self, app: &App, request: &serde_json::Value) {
        let Some(session) = &self.session else { return std::future::pending().await };
        let call = call_name(self.user.id, session, request);
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            match app.queue.is_cancellation_requested(&call).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "Could not look for a cancellation"),
            }
        }
    }
}

/// Returns a name that only the requests of this account with this session and id have.
pub fn call_name(user: UserId, session: &str, request: &serde_json::Value) -> String {
    hex::encode(Sha256::digest(format!("{user} {session} {request}")))
}
