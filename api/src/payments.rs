//! The payment provider: Stripe Checkout. The only place that names it.
//!
//! Prices and credits come from our own order; what the provider says of them is compared, never believed.

mod close;
mod message;

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use retouch_core::OrderId;
use retouch_core::config::Secret;
use retouch_core::orders::{Message, Order, Payment, Progress};
use stripe::{Client, ClientBuilder, IdempotencyKey, RequestStrategy, StripeError, StripeRequest};
use stripe_checkout::checkout_session::{
    CreateCheckoutSession, CreateCheckoutSessionLineItems, CreateCheckoutSessionLineItemsPriceData,
    CreateCheckoutSessionPaymentIntentData, ProductData, RetrieveCheckoutSession,
};
use stripe_checkout::{
    CheckoutSession, CheckoutSessionMode, CheckoutSessionPaymentStatus, CheckoutSessionStatus,
    CheckoutSessionUiMode,
};
use stripe_types::Currency;
use stripe_webhook::{Webhook, WebhookError};
use url::Url;

use crate::config::PaymentsConfig;

/// How long one request to the provider may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a request is sent before it is given up.
const TRIES: u32 = 3;
/// How long a page to pay on stays open, in seconds: what the provider allows at most, less what clocks differ.
const OPEN_SECS: i64 = 24 * 3600 - 600;

/// Takes payments for orders.
pub struct Payments {
    client: Client,
    webhook_secrets: Vec<Secret>,
    is_live: bool,
    public_url: Url,
}

/// A page to pay on.
#[derive(Clone, Debug)]
pub struct CheckoutPage {
    /// The provider's name for it.
    pub session: String,
    /// Its address.
    pub url: String,
}

/// What the provider says of a page to pay on.
#[derive(Clone, Debug)]
pub struct SessionState {
    /// How far the payment is.
    pub payment: Payment,
    /// Whether the page is still open, done with, or closed.
    pub is: SessionIs,
    /// Its address, while it is open.
    pub url: Option<String>,
}

/// Whether a page can still be paid on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionIs {
    /// It can.
    Open,
    /// The buyer has done what was to do there.
    Complete,
    /// The buyer did not.
    Expired,
}

/// Why the provider gave no answer to use.
#[derive(Debug, thiserror::Error)]
pub enum PaymentsError {
    /// It did not answer, or is in trouble. Trying again may help.
    #[error("the payment provider does not answer: {0}")]
    Unavailable(String),
    /// It refused. Trying again will not help.
    #[error("the payment provider refused: {0}")]
    Refused(String),
}

/// Why a message is not believed.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It is not signed by the provider, or long ago.
    #[error("This message is not signed by the payment provider")]
    NotSigned,
    /// It is signed and means nothing, or is from the other mode (live or test).
    #[error("This message is not understood: {0}")]
    NotUnderstood(String),
}

impl Payments {
    /// Prepares payments; `None` where no key is configured.
    pub fn new(config: &PaymentsConfig) -> anyhow::Result<Option<Self>> {
        let Some(key) = config.stripe_secret_key.as_ref().filter(|key| !key.reveal().is_empty())
        else {
            return Ok(None);
        };
        let secrets = config.stripe_webhook_secrets();
        anyhow::ensure!(
            !secrets.is_empty(),
            "STRIPE_SECRET_KEY is set, but STRIPE_WEBHOOK_SECRET is not: nobody would be given what they paid for"
        );
        let mut client = ClientBuilder::new(key.reveal()).timeout(PATIENCE);
        if let Some(address) = &config.stripe_api_url {
            client = client.url(address.as_str());
        }
        let client = client.build().context("preparing the Stripe client")?;
        let is_live = key.reveal().starts_with("sk_live_") || key.reveal().starts_with("rk_live_");
        let public_url = config.public_url.clone();
        Ok(Some(Self { client, webhook_secrets: secrets, is_live, public_url }))
    }

    /// Opens a page to pay `order` on. Asking again for the same order returns the same page.
    pub async fn open(
        &self,
        order: &Order,
        buyer_email: Option<&str>,
    ) -> Result<CheckoutPage, PaymentsError> {
        let request = self.request_for(order, buyer_email);
        let key = IdempotencyKey::new(order.id.to_string())
            .map_err(|error| PaymentsError::Refused(error.to_string()))?;
        let strategy = RequestStrategy::Idempotent(key);
        let session: CheckoutSession =
            patiently(|| request.customize().request_strategy(strategy.clone()).send(&self.client))
                .await?;
        let url = session
            .url
            .clone()
            .ok_or_else(|| PaymentsError::Refused("the page to pay on is closed already".into()))?;
        Ok(CheckoutPage { session: session.id.to_string(), url })
    }

    fn request_for(&self, order: &Order, buyer_email: Option<&str>) -> CreateCheckoutSession {
        let named = [("order".to_owned(), order.id.to_string())];
        let named = std::collections::HashMap::from(named);
        let currency: Currency =
            order.currency.parse().unwrap_or_else(|never: std::convert::Infallible| match never {});
        let mut price = CreateCheckoutSessionLineItemsPriceData::new(currency);
        price.unit_amount = Some(order.amount_cents);
        price.product_data = Some(ProductData::new(format!("{} credits", order.credits)));
        let mut item = CreateCheckoutSessionLineItems::new();
        item.price_data = Some(price);
        item.quantity = Some(1);
        let mut payment = CreateCheckoutSessionPaymentIntentData::new();
        payment.metadata = Some(named.clone());
        // A repeat must say the same to the letter, or the provider refuses it: nothing here may depend on
        // when it is asked.
        let closes = order.created_at.timestamp() + OPEN_SECS;
        let mut request = CreateCheckoutSession::new()
            .mode(CheckoutSessionMode::Payment)
            .ui_mode(CheckoutSessionUiMode::HostedPage)
            .line_items(vec![item])
            .client_reference_id(order.user.to_string())
            .metadata(named)
            .payment_intent_data(payment)
            .expires_at(closes)
            .success_url(self.page("return?session_id={CHECKOUT_SESSION_ID}"))
            .cancel_url(self.page("pricing"));
        if let Some(email) = buyer_email {
            request = request.customer_email(email);
        }
        request
    }

    /// An address of our page. Not through `Url`, which would escape the braces of the provider's placeholder.
    fn page(&self, path: &str) -> String {
        format!("{}/{path}", self.public_url.as_str().trim_end_matches('/'))
    }

    /// Asks how far the payment on the page called `session` is.
    pub async fn look(&self, session: &str) -> Result<SessionState, PaymentsError> {
        let request = RetrieveCheckoutSession::new(session);
        let found = patiently(|| request.customize().send(&self.client)).await?;
        if found.livemode != self.is_live {
            return Err(PaymentsError::Refused("that session is of the other mode".into()));
        }
        Ok(state_of(found))
    }

    /// Reads a message that came with `signature` at `now`: who signed it, when, and what it says.
    pub fn read(
        &self,
        payload: &[u8],
        signature: &str,
        now: DateTime<Utc>,
    ) -> Result<Message, MessageError> {
        let payload = std::str::from_utf8(payload).map_err(|_| MessageError::NotSigned)?;
        let is_signed = self.webhook_secrets.iter().any(|secret| {
            let read = Webhook::construct_event_with_timestamp(
                payload,
                signature,
                secret.reveal(),
                now.timestamp(),
            );
            // The signature is checked first: what then cannot be parsed is still the provider's.
            matches!(read, Ok(_) | Err(WebhookError::BadParse(_)))
        });
        if !is_signed {
            return Err(MessageError::NotSigned);
        }
        message::read(payload, self.is_live)
    }
}

fn state_of(session: CheckoutSession) -> SessionState {
    let is = match &session.status {
        Some(CheckoutSessionStatus::Open) => SessionIs::Open,
        Some(CheckoutSessionStatus::Complete) => SessionIs::Complete,
        _ => SessionIs::Expired,
    };
    let is_paid = session.payment_status == CheckoutSessionPaymentStatus::Paid;
    let progress = match is {
        SessionIs::Open => Progress::Open,
        SessionIs::Complete if is_paid => Progress::Paid,
        SessionIs::Complete => Progress::Unpaid,
        SessionIs::Expired => Progress::Expired,
    };
    let given = session.customer_details.and_then(|details| details.email);
    SessionState {
        is,
        url: session.url,
        payment: Payment {
            session: session.id.to_string(),
            order: order_named(session.metadata.unwrap_or_default().get("order")),
            progress,
            amount_cents: session.amount_total,
            currency: session.currency.map(|currency| currency.to_string()),
            payment_intent: session.payment_intent.map(|intent| intent.id().to_string()),
            email: given.or(session.customer_email),
        },
    }
}

fn order_named(name: Option<&String>) -> Option<OrderId> {
    name.and_then(|name| name.parse().ok())
}

/// Sends a request until it is answered, a few times. Only for requests that may be sent twice.
async fn patiently<T, F>(mut send: impl FnMut() -> F) -> Result<T, PaymentsError>
where
    F: Future<Output = Result<T, StripeError>>,
{
    let mut tried = 0;
    loop {
        tried += 1;
        let error = match send().await {
            Ok(answer) => return Ok(answer),
            Err(error) => judge(&error),
        };
        let may_pass = matches!(error, PaymentsError::Unavailable(_));
        if !may_pass || tried == TRIES {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(250) * 2_u32.pow(tried)).await;
    }
}

fn judge(error: &StripeError) -> PaymentsError {
    match error {
        StripeError::Stripe(problem, status) => {
            // Not the whole problem: it repeats what was sent, a person's address among it.
            let text =
                format!("{status} {}", problem.code.as_ref().map_or("", |code| code.as_str()));
            // 409: the same request is still being worked on.
            if matches!(status, 409 | 429 | 500..) {
                PaymentsError::Unavailable(text)
            } else {
                PaymentsError::Refused(text)
            }
        }
        StripeError::ConfigError(text) | StripeError::JSONDeserialize(text) => {
            PaymentsError::Refused(text.clone())
        }
        StripeError::ClientError(text) => PaymentsError::Unavailable(text.clone()),
        StripeError::Timeout => PaymentsError::Unavailable("it took too long".into()),
    }
}
