//! What is heard of payments, by whichever way it comes: the provider's message, the buyer's return, our own
//! question. All of them end in the same step of the order's life.

use std::time::Duration;

use chrono::{DateTime, Utc};
use retouch_core::UserId;
use retouch_core::orders::{self, Outcome};

use crate::error::ApiError;
use crate::payments::{MessageError, Payments, PaymentsError, SessionIs};
use crate::state::App;

/// How often we ask about payments that nobody told us of.
const ROUND: Duration = Duration::from_mins(1);
/// How many payments are asked about in a round.
const MOST: i64 = 20;

/// How a payment stands, for its buyer.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Whether the page is open, done with or closed.
    pub is: SessionIs,
    /// What the buyer gave as their address.
    pub email: Option<String>,
    /// Where to go on, while it is open.
    pub url: Option<String>,
    /// The order.
    pub order: orders::Order,
}

/// How the payment of `user` on the page called `session` stands; grants what is paid for on the way.
pub async fn payment_status(app: &App, user: UserId, session: &str) -> Result<Standing, ApiError> {
    let found = orders::of_session(&app.pool, user, session).await?;
    let order = found.ok_or(ApiError::NotFound("Payment"))?;
    if order.fulfilled_at.is_some() {
        let email = order.email.clone();
        return Ok(Standing { is: SessionIs::Complete, email, url: None, order });
    }
    let payments = app.payments.as_ref().ok_or(ApiError::NoPayments)?;
    let state = payments.look(session).await.map_err(|error| {
        tracing::warn!(order.id = %order.id, "Could not ask about order {}: {error}", order.id);
        ApiError::NoPayments
    })?;
    count("return", orders::settle(&app.pool, &state.payment).await?);
    let order = orders::owned(&app.pool, user, order.id).await?.unwrap_or(order);
    Ok(Standing { is: state.is, email: state.payment.email, url: state.url, order })
}

/// Takes in a message of the payment provider. Refused when it is not the provider's; done with, so that it is
/// not sent again, in all other cases.
pub async fn receive_message(
    app: &App,
    payload: &[u8],
    signature: &str,
    now: DateTime<Utc>,
) -> Result<(), ApiError> {
    let payments = app.payments.as_ref().ok_or(ApiError::NotFound("Payment"))?;
    let message = match payments.read(payload, signature, now) {
        Ok(message) => message,
        Err(error) => {
            let why = match &error {
                MessageError::NotSigned => "not_signed",
                MessageError::NotUnderstood(_) => "not_understood",
            };
            metrics::counter!("retouch_payment_messages_total", "kind" => "unknown", "outcome" => why)
                .increment(1);
            tracing::warn!("Refused a message of the payment provider: {error}");
            return Err(ApiError::BadRequest(error.to_string()));
        }
    };
    let outcome = orders::receive(&app.pool, &message).await?;
    tracing::info!(
        event.id = message.id,
        event.kind = message.kind,
        outcome = outcome.as_str(),
        "Took in {} ({})",
        message.kind,
        outcome.as_str()
    );
    count("message", outcome);
    Ok(())
}

/// Asks about payments that nobody told us of, until the process stops.
pub async fn watch_payments(app: App) {
    let Some(payments) = &app.payments else { return };
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            _ = rounds.tick() => {}
        }
        if let Err(error) = ask_about_silent(&app, payments).await {
            tracing::warn!(%error, "Asking about payments broke off; the next round goes on");
        }
    }
}

/// One round.
pub async fn ask_about_silent(app: &App, payments: &Payments) -> anyhow::Result<()> {
    for session in orders::due_for_check(&app.pool, MOST).await? {
        match payments.look(&session).await {
            Ok(state) => count("question", orders::settle(&app.pool, &state.payment).await?),
            Err(PaymentsError::Unavailable(why)) => anyhow::bail!(why),
            Err(error) => tracing::warn!("A payment cannot be asked about: {error}"),
        }
    }
    Ok(())
}

fn count(way: &'static str, outcome: Outcome) {
    metrics::counter!("retouch_payments_total", "way" => way, "outcome" => outcome.as_str())
        .increment(1);
}
