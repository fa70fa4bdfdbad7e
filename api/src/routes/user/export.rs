//! `/api/user/export`: everything stored about the caller, in a document that is written while it is read.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures::stream;
use retouch_core::accounts::PaymentMessage;
use retouch_core::credits::LedgerEntry;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::caller::TokenUser;
use crate::http::json;
use crate::http::problem::Problem;
use crate::routes::checkouts::CheckoutView;
use crate::routes::keys::KeyView;
use crate::routes::views::{ImageView, JobView, ResultView};
use crate::routes::webhooks::WebhookView;
use crate::state::App;
use crate::usecases::export_account::{Export, Page};

/// Everything stored about the caller, as one JSON document. Images are included as URLs that work for at least an
/// hour.
#[utoipa::path(get, path = "/api/user/export", tag = "user",
    responses((status = 200, body = AccountExport), (status = 401, body = Problem), (status = 403, body = Problem)),
    security(("token" = [])))]
pub async fn export_user(
    State(app): State<App>,
    TokenUser(user): TokenUser,
) -> Result<Response, ApiError> {
    let export = Export::begin(&app, user.id).await?;
    let document = Document { app, export, section: None, is_done: false };
    let pieces = stream::unfold(document, Document::next);
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"retouch-account.json\""),
    ];
    Ok((headers, json::body_of(pieces)).into_response())
}

/// An export that is being written.
struct Document {
    app: App,
    export: Export,
    /// The list that is open; `None` before the first.
    section: Option<&'static str>,
    is_done: bool,
}

impl Document {
    /// Returns the next chunk; an error ends the document.
    async fn next(mut self) -> Option<(Result<String, ApiError>, Self)> {
        if self.is_done {
            return None;
        }
        let chunk = self.chunk().await.inspect_err(|error| {
            self.is_done = true;
            tracing::warn!("An export failed: {error}");
        });
        Some((chunk, self))
    }

    async fn chunk(&mut self) -> Result<String, ApiError> {
        let Some(page) = self.export.next().await? else {
            self.is_done = true;
            return Ok("]}".into());
        };
        let signer = &self.app.signer;
        let (section, items) = match page {
            Page::Images(images) => {
                ("images", json::items(images.iter().map(|image| ImageView::new(image, signer)))?)
            }
            Page::Results(results) => (
                "results",
                json::items(results.iter().map(|result| ResultView::new(result, signer)))?,
            ),
            Page::Jobs(jobs) => (
                "jobs",
                json::items(jobs.iter().map(|job| JobView::new(job, None, None, Vec::new())))?,
            ),
            Page::Ledger(entries) => {
                ("ledger", json::items(entries.into_iter().map(LedgerEntryView::from))?)
            }
            Page::Orders(orders) => {
                ("checkouts", json::items(orders.into_iter().map(CheckoutView::from))?)
            }
            Page::PaymentMessages(messages) => (
                "paymentMessages",
                json::items(messages.into_iter().map(PaymentMessageView::from))?,
            ),
            Page::Keys(keys) => ("keys", json::items(keys.into_iter().map(KeyView::from))?),
            Page::Webhooks(webhooks) => {
                ("webhooks", json::items(webhooks.into_iter().map(WebhookView::from))?)
            }
        };
        let before = match self.section {
            Some(open) if open == section => String::new(),
            Some(_) => format!("],\"{section}\":["),
            None => format!("{},\"{section}\":[", self.head()?),
        };
        // A page that continues a list follows a full page, so the comma always has an item on its left.
        let comma = if before.is_empty() && !items.is_empty() { "," } else { "" };
        self.section = Some(section);
        Ok(before + comma + &items)
    }

    /// The document up to its first list, without the closing brace.
    fn head(&self) -> Result<String, ApiError> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            exported_at: DateTime<Utc>,
            user: ProfileView,
        }
        let account = &self.export.account;
        let user = ProfileView {
            id: account.id.uuid(),
            email: account.email.clone(),
            issuer: account.issuer.clone(),
            subject: account.subject.clone(),
            credits: account.credits,
            reserved: account.reserved,
            created_at: account.created_at,
        };
        let mut text = json::text(&Head { exported_at: self.app.clock.now(), user })?;
        text.pop();
        Ok(text)
    }
}

/// Everything stored about a user.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents a response that is written in chunks")]
pub struct AccountExport {
    exported_at: DateTime<Utc>,
    user: ProfileView,
    images: Vec<ImageView>,
    results: Vec<ResultView>,
    /// All runs. `results` lists what they produced.
    jobs: Vec<JobView>,
    ledger: Vec<LedgerEntryView>,
    checkouts: Vec<CheckoutView>,
    payment_messages: Vec<PaymentMessageView>,
    keys: Vec<KeyView>,
    webhooks: Vec<WebhookView>,
}

/// The user's account.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Profile)]
pub struct ProfileView {
    id: Uuid,
    email: Option<String>,
    /// The identity provider.
    issuer: String,
    /// The user's id at the identity provider.
    subject: String,
    credits: i32,
    reserved: i32,
    created_at: DateTime<Utc>,
}

/// A change of the balance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LedgerEntry)]
pub struct LedgerEntryView {
    id: i64,
    /// `signup_grant`, `purchase`, `job`, `refund`, `dispute`, `admin` or `forfeit`.
    #[schema(example = "job")]
    kind: &'static str,
    #[schema(example = -5)]
    amount: i32,
    job_id: Option<Uuid>,
    order_id: Option<Uuid>,
    /// An operator's note.
    note: Option<String>,
    created_at: DateTime<Utc>,
}

/// A message of the payment provider about a purchase.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PaymentMessage)]
pub struct PaymentMessageView {
    /// The provider's id.
    id: String,
    /// The provider's event type.
    #[schema(example = "checkout.session.completed")]
    kind: String,
    order_id: Uuid,
    /// The message as received, which is JSON; empty if there was none.
    text: String,
    received_at: DateTime<Utc>,
}

impl From<PaymentMessage> for PaymentMessageView {
    fn from(message: PaymentMessage) -> Self {
        Self {
            id: message.id,
            kind: message.kind,
            order_id: message.order.uuid(),
            text: message.payload,
            received_at: message.received_at,
        }
    }
}

impl From<LedgerEntry> for LedgerEntryView {
    fn from(entry: LedgerEntry) -> Self {
        Self {
            id: entry.id,
            kind: entry.kind.as_str(),
            amount: entry.amount,
            job_id: entry.job.map(retouch_core::JobId::uuid),
            order_id: entry.order.map(retouch_core::OrderId::uuid),
            note: entry.note,
            created_at: entry.created_at,
        }
    }
}
