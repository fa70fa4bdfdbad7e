//! The payment provider: Stripe Checkout. Only this module names it.
//!
//! Prices and credits come from our own order; the provider's amounts are only compared with them.

mod message;

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use retouch_core::config::Secret;
use retouch_core::orders::{Message, Order, Payment, PaymentStatus};
use stripe::{Client, ClientBuilder, IdempotencyKey, RequestStrategy, StripeError, StripeRequest};
use stripe_checkout::checkout_session::{
    CreateCheckoutSession, CreateCheckoutSessionAdaptivePricing, CreateCheckoutSessionLineItems,
    CreateCheckoutSessionLineItemsPriceData, CreateCheckoutSessionPaymentIntentData,
    ExpireCheckoutSession, ProductData, RetrieveCheckoutSession,
};
use stripe_checkout::{
    CheckoutSession, CheckoutSessionMode, CheckoutSessionPaymentStatus, CheckoutSessionStatus,
    CheckoutSessionUiMode,
};
use stripe_types::Currency;

use url::Url;

use crate::config::PaymentsConfig;
use message::{id, is_storable};

pub use message::MessageError;

/// The timeout of a request to the provider.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ATTEMPTS: u32 = 3;
/// How long a payment page stays open, in seconds: the provider's maximum minus a margin for clock differences.
const OPEN_SECS: i64 = 24 * 3600 - 600;

/// The client of the payment provider.
pub struct Payments {
    client: Client,
    webhook_secrets: Vec<Secret>,
    is_live: bool,
    public_url: Url,
}

/// A payment page (a checkout session).
#[derive(Clone, Debug)]
pub struct CheckoutPage {
    /// The provider's id of the session.
    pub session: String,
    pub url: String,
}

/// A checkout session as the provider reports it.
#[derive(Clone, Debug)]
pub struct SessionState {
    pub payment: Payment,
    pub status: SessionStatus,
    /// The address of the page, while it is open.
    pub url: Option<String>,
}

/// The status of a payment page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// The buyer has not paid yet.
    Open,
    /// The buyer has finished; the payment may still be processing.
    Complete,
    /// The page closed before the buyer paid.
    Expired,
}

/// Why a request to the provider failed.
#[derive(Debug, thiserror::Error)]
pub enum PaymentsError {
    /// The provider is unavailable. A retry may succeed.
    #[error("the payment provider is unavailable: {0}")]
    Unavailable(String),
    /// The provider rejected the request. A retry would fail again.
    #[error("the payment provider rejected the request: {0}")]
    Rejected(String),
}

impl Payments {
    /// Creates the client; `None` if no secret key is configured.
    pub fn new(config: &PaymentsConfig, public_url: &Url) -> anyhow::Result<Option<Self>> {
        let Some(key) = config.stripe_secret_key.as_ref().filter(|key| !key.reveal().is_empty())
        else {
            return Ok(None);
        };
        // The messages do not repeat the keys: they go to the log.
        let is_secret = ["sk_", "rk_"].iter().any(|kind| key.reveal().starts_with(kind));
        anyhow::ensure!(
            is_secret,
            "STRIPE_SECRET_KEY must be a secret key (sk_…) or a restricted key (rk_…), not a publishable key or a webhook secret"
        );
        let secrets = config.stripe_webhook_secrets();
        anyhow::ensure!(
            secrets.iter().all(|secret| secret.reveal().starts_with("whsec_")),
            "STRIPE_WEBHOOK_SECRET must be a signing secret of a webhook (whsec_…)"
        );
        anyhow::ensure!(
            !secrets.is_empty(),
            "STRIPE_SECRET_KEY is set, but STRIPE_WEBHOOK_SECRET is not. Set both, or buyers would not get their credits."
        );
        let mut client = ClientBuilder::new(key.reveal()).timeout(REQUEST_TIMEOUT);
        if let Some(address) = &config.stripe_api_url {
            client = client.url(address.as_str());
        }
        let client = client.build().context("creating the Stripe client")?;
        let is_live = key.reveal().starts_with("sk_live_") || key.reveal().starts_with("rk_live_");
        let public_url = public_url.clone();
        Ok(Some(Self { client, webhook_secrets: secrets, is_live, public_url }))
    }

    /// Opens a payment page for `order`. Repeating the call for the same order returns the same page.
    pub async fn open(
        &self,
        order: &Order,
        buyer_email: Option<&str>,
    ) -> Result<CheckoutPage, PaymentsError> {
        match self.create(order, buyer_email, &order.id.to_string()).await {
            // The address only fills in the form, and identity providers accept some that the provider refuses.
            Err(PaymentsError::Rejected(_)) if buyer_email.is_some() => {
                self.create(order, None, &format!("{}-without-email", order.id)).await
            }
            opened => opened,
        }
    }

    async fn create(
        &self,
        order: &Order,
        buyer_email: Option<&str>,
        key: &str,
    ) -> Result<CheckoutPage, PaymentsError> {
        let request = self.request_for(order, buyer_email);
        let key =
            IdempotencyKey::new(key).map_err(|error| PaymentsError::Rejected(error.to_string()))?;
        let strategy = RequestStrategy::Idempotent(key);
        let session: CheckoutSession = with_retries(|| {
            request.customize().request_strategy(strategy.clone()).send(&self.client)
        })
        .await?;
        let url = session
            .url
            .clone()
            .ok_or_else(|| PaymentsError::Rejected("the payment page is closed".into()))?;
        Ok(CheckoutPage { session: session.id.to_string(), url })
    }

    fn request_for(&self, order: &Order, buyer_email: Option<&str>) -> CreateCheckoutSession {
        let metadata = [("order".to_owned(), order.id.to_string())];
        let metadata = std::collections::HashMap::from(metadata);
        let currency: Currency =
            order.currency.parse().unwrap_or_else(|never: std::convert::Infallible| match never {});
        let mut price = CreateCheckoutSessionLineItemsPriceData::new(currency);
        price.unit_amount = Some(order.amount_cents);
        price.product_data = Some(ProductData::new(format!("{} credits", order.credits)));
        let mut item = CreateCheckoutSessionLineItems::new();
        item.price_data = Some(price);
        item.quantity = Some(1);
        let mut payment = CreateCheckoutSessionPaymentIntentData::new();
        payment.metadata = Some(metadata.clone());
        // The provider rejects a repeat that differs from the first request, so nothing here may depend on the
        // current time.
        let expires_at = order.created_at.timestamp() + OPEN_SECS;
        let mut request = CreateCheckoutSession::new()
            // Without this, a setting in the provider's dashboard could charge another currency than the order's.
            .adaptive_pricing(CreateCheckoutSessionAdaptivePricing { enabled: Some(false) })
            .mode(CheckoutSessionMode::Payment)
            .ui_mode(CheckoutSessionUiMode::HostedPage)
            .line_items(vec![item])
            .client_reference_id(order.user.to_string())
            .metadata(metadata)
            .payment_intent_data(payment)
            .expires_at(expires_at)
            .success_url(self.page("return?session_id={CHECKOUT_SESSION_ID}"))
            .cancel_url(self.page("pricing"));
        if let Some(email) = buyer_email {
            request = request.customer_email(email);
        }
        request
    }

    /// Returns the address of one of our pages. `Url` would escape the braces of the provider's placeholder.
    fn page(&self, path: &str) -> String {
        format!("{}/{path}", self.public_url.as_str().trim_end_matches('/'))
    }

    /// Retrieves a checkout session.
    pub async fn retrieve(&self, session: &str) -> Result<SessionState, PaymentsError> {
        let request = RetrieveCheckoutSession::new(session);
        let session = with_retries(|| request.customize().send(&self.client)).await?;
        if session.livemode != self.is_live {
            let detail = "the session belongs to the other mode (test or live)";
            return Err(PaymentsError::Rejected(detail.into()));
        }
        Ok(state_of(session))
    }

    /// Closes the payment page of `session`. The provider rejects this if the page is complete or has expired.
    pub async fn close(&self, session: &str) -> Result<(), PaymentsError> {
        let request = ExpireCheckoutSession::new(session);
        with_retries(|| request.customize().send(&self.client)).await.map(drop)
    }

    /// Verifies the signature and age of a message and parses it.
    pub fn parse_message(
        &self,
        payload: &[u8],
        signature: &str,
        now: DateTime<Utc>,
    ) -> Result<Message, MessageError> {
        let payload = message::verify(payload, signature, &self.webhook_secrets, now)?;
        message::parse(payload, self.is_live)
    }
}

fn state_of(session: CheckoutSession) -> SessionState {
    let status = match &session.status {
        Some(CheckoutSessionStatus::Open) => SessionStatus::Open,
        Some(CheckoutSessionStatus::Complete) => SessionStatus::Complete,
        _ => SessionStatus::Expired,
    };
    let is_paid = session.payment_status == CheckoutSessionPaymentStatus::Paid;
    let payment_status = match status {
        SessionStatus::Open => PaymentStatus::Open,
        SessionStatus::Complete if is_paid => PaymentStatus::Paid,
        SessionStatus::Complete => PaymentStatus::Unpaid,
        SessionStatus::Expired => PaymentStatus::Expired,
    };
    let entered = session.customer_details.and_then(|details| details.email);
    SessionState {
        status,
        url: session.url,
        payment: Payment {
            session: session.id.to_string(),
            order: id(session.metadata.unwrap_or_default().get("order")),
            buyer: id(session.client_reference_id.as_ref()),
            status: payment_status,
            amount_cents: session.amount_total,
            currency: session.currency.map(|currency| currency.to_string()),
            payment_intent: session.payment_intent.map(|intent| intent.id().to_string()),
            email: entered.or(session.customer_email).filter(|email| is_storable(email)),
        },
    }
}

/// Sends an idempotent request, and repeats it while the provider is unavailable.
async fn with_retries<T, F>(mut send: impl FnMut() -> F) -> Result<T, PaymentsError>
where
    F: Future<Output = Result<T, StripeError>>,
{
    let mut attempt = 0;
    loop {
        attempt += 1;
        let error = match send().await {
            Ok(response) => return Ok(response),
            Err(error) => PaymentsError::from(error),
        };
        let is_transient = matches!(error, PaymentsError::Unavailable(_));
        if !is_transient || attempt == MAX_ATTEMPTS {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(250) * 2_u32.pow(attempt)).await;
    }
}

impl From<StripeError> for PaymentsError {
    fn from(error: StripeError) -> Self {
        match error {
            StripeError::Stripe(problem, status) => {
                // Without the message, which may quote the buyer's email address.
                let text =
                    format!("{status} {}", problem.code.as_ref().map_or("", |code| code.as_str()));
                // 409: a request with the same idempotency key is still in progress.
                if matches!(status, 409 | 429 | 500..) {
                    Self::Unavailable(text)
                } else {
                    Self::Rejected(text)
                }
            }
            StripeError::ConfigError(text) | StripeError::JSONDeserialize(text) => {
                Self::Rejected(text)
            }
            StripeError::ClientError(text) => Self::Unavailable(text),
            StripeError::Timeout => Self::Unavailable("the request timed out".into()),
        }
    }
}
