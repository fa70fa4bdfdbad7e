//! Settles payments, whether we learn of them from the provider's message, the buyer's return or our own check.

use std::slice;
use std::time::Duration;

use chrono::{DateTime, Utc};
use retouch_core::UserId;
use retouch_core::db;
use retouch_core::orders::{self, DueCheck, OrderStatus, Outcome};

use super::delete_account::close_pages;
use crate::error::ApiError;
use crate::payments::{MessageError, Payments, PaymentsError, SessionStatus};
use crate::state::App;

/// How often to check payments that no message has arrived for.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// Maximum number of payments that one process checks per round; other processes may take the next ones.
const CHECK_LIMIT: i64 = 20;
/// The text for a buyer while the provider does not answer; the page says the same.
const UNCHECKED: &str =
    "We could not check your payment. It is not lost: a paid order always gets its credits.";

/// The state of a checkout.
#[derive(Clone, Debug)]
pub struct CheckoutState {
    pub status: SessionStatus,
    pub email: Option<String>,
    /// The address of the payment page, while it is open.
    pub url: Option<String>,
    pub order: orders::Order,
}

impl CheckoutState {
    /// Returns what our order says.
    fn recorded(order: orders::Order) -> Self {
        let status = match order.status {
            OrderStatus::Open => SessionStatus::Open,
            OrderStatus::Expired => SessionStatus::Expired,
            OrderStatus::Unpaid
            | OrderStatus::Paid
            | OrderStatus::Failed
            | OrderStatus::Refunded
            | OrderStatus::Disputed => SessionStatus::Complete,
        };
        let url = order.checkout_url.clone().filter(|_| status == SessionStatus::Open);
        Self { status, email: order.email.clone(), url, order }
    }
}

/// Returns the state of the checkout `session`, and settles its payment. Users who ask too often get what our order says.
pub async fn checkout_state(
    app: &App,
    user: UserId,
    session: &str,
) -> Result<CheckoutState, ApiError> {
    let order = orders::for_session(&app.pool, user, session).await?;
    let order = order.ok_or(ApiError::NotFound("Payment"))?;
    let checks = &app.rate_limits.users.payment_checks;
    if order.fulfilled_at.is_some() || checks.count(user).await.is_err() {
        return Ok(CheckoutState::recorded(order));
    }
    let unchecked = || ApiError::Unavailable { detail: UNCHECKED.into(), retry_after_secs: 10 };
    let payments = app.payments.as_ref().ok_or_else(unchecked)?;
    let state = payments.retrieve(session).await.map_err(|error| {
        tracing::warn!(order.id = %order.id, "Could not check the payment of order {}: {error}", order.id);
        unchecked()
    })?;
    count("return", orders::settle(&app.pool, &state.payment).await?);
    let order = orders::owned(&app.pool, user, order.id).await?.unwrap_or(order);
    Ok(CheckoutState { status: state.status, email: state.payment.email, url: state.url, order })
}

/// Processes a message from the payment provider. An error makes the provider send it again.
pub async fn receive_message(
    app: &App,
    payload: &[u8],
    signature: &str,
    now: DateTime<Utc>,
) -> Result<(), ApiError> {
    let payments = app.payments.as_ref().ok_or(ApiError::NotFound("Payment"))?;
    let message = match payments.parse_message(payload, signature, now) {
        Ok(message) => message,
        Err(error) => {
            let outcome = match &error {
                MessageError::NotSigned => "not_signed",
                MessageError::Malformed(_) => "not_understood",
            };
            // A request without a signature is not the provider's, and must not set off the alert for its messages.
            if !signature.is_empty() {
                metrics::counter!("retouch_payment_messages_total", "outcome" => outcome)
                    .increment(1);
            }
            tracing::warn!("Rejected a message from the payment provider: {error}");
            return Err(ApiError::BadRequest(error.to_string()));
        }
    };
    let outcome = orders::receive(&app.pool, &message).await?;
    tracing::info!(
        event.id = message.id,
        event.kind = message.kind,
        outcome = outcome.as_str(),
        "Processed {} ({})",
        message.kind,
        outcome.as_str()
    );
    count("message", outcome);
    Ok(())
}

/// Checks pending payments until the process stops.
pub async fn watch_payments(app: App) {
    let Some(payments) = &app.payments else { return };
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            _ = interval.tick() => {}
        }
        if let Err(error) = check_pending_payments(&app, payments).await {
            tracing::warn!(%error, "Could not check pending payments; retrying in a minute");
        }
    }
}

/// Retrieves and settles the payments that are due for a check. Closes pages that the deletion of an account left open,
/// because the provider did not answer or the process ended.
pub async fn check_pending_payments(app: &App, payments: &Payments) -> anyhow::Result<()> {
    loop {
        let due = db::within(orders::due_for_check(&app.pool, CHECK_LIMIT)).await?;
        for DueCheck { session, buyer, is_buyer_deleted } in &due {
            match payments.retrieve(session).await {
                Ok(state) => {
                    if *is_buyer_deleted && state.status == SessionStatus::Open {
                        close_pages(app, *buyer, slice::from_ref(session)).await;
                    }
                    let settling = orders::settle(&app.pool, &state.payment);
                    count("question", db::within(settling).await?);
                }
                Err(PaymentsError::Unavailable(why)) => anyhow::bail!(why),
                Err(error) => tracing::warn!("Could not check a payment: {error}"),
            }
        }
        if due.is_empty() {
            return Ok(());
        }
    }
}

fn count(source: &'static str, outcome: Outcome) {
    metrics::counter!("retouch_payments_total", "way" => source, "outcome" => outcome.as_str())
        .increment(1);
}
