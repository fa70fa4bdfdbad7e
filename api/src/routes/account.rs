//! `/api/user`: leaving, and taking along what is kept.

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures::StreamExt;
use retouch_core::accounts::LedgerEntry;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::caller::InPerson;
use super::checkouts::CheckoutView;
use super::keys::KeyView;
use super::problem::Problem;
use super::run::tell_of_cancelled;
use super::views::{ImageView, JobView, ResultView};
use crate::error::{ACCOUNT_DELETED, ApiError};
use crate::state::App;
use crate::usecases::delete_account;
use crate::usecases::export_account::{Export, Page};

/// Deletes the caller's account, at once and for good: pictures, results, keys and what is left of the
/// credits go, runs are called off. What the books need stays, under no name.
///
/// Tokens made before this open nothing any more; repeating the call with one of them is answered like the
/// first. Whoever signs in again begins a new account, for twelve months without the free credits.
#[utoipa::path(delete, path = "/api/user", tag = "user",
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem)),
    security(("token" = [])))]
pub async fn delete_user(
    State(app): State<App>,
    caller: Result<InPerson, ApiError>,
) -> Result<StatusCode, ApiError> {
    let user = match caller {
        Ok(InPerson(user)) => user.id,
        Err(ApiError::Unauthorized(ACCOUNT_DELETED)) => return Ok(StatusCode::NO_CONTENT),
        Err(error) => return Err(error),
    };
    let cancelled = delete_account::delete_account(&app, user).await?;
    tell_of_cancelled(&app, &cancelled).await;
    Ok(StatusCode::NO_CONTENT)
}

/// All that is kept of the caller, as one JSON document. Pictures are named by addresses that work for an
/// hour at least.
#[utoipa::path(get, path = "/api/user/export", tag = "user",
    responses((status = 200, body = AccountExport), (status = 401, body = Problem), (status = 403, body = Problem)),
    security(("token" = [])))]
pub async fn export_user(
    State(app): State<App>,
    InPerson(user): InPerson,
) -> Result<Response, ApiError> {
    let export = Export::begin(&app, user.id).await?;
    let document = Document { app, export, section: None, is_done: false };
    let pieces = futures::stream::unfold(document, Document::next);
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"retouch-account.json\""),
        (header::CACHE_CONTROL, "no-store"),
    ];
    // Whoever compresses it may ask for more after the end.
    Ok((headers, Body::from_stream(pieces.fuse())).into_response())
}

/// The document as it is written, piece by piece.
struct Document {
    app: App,
    export: Export,
    /// The list that is being written; nothing before the first.
    section: Option<&'static str>,
    is_done: bool,
}

impl Document {
    /// The next piece. An error breaks the answer off, so that nobody takes a part for the whole.
    async fn next(mut self) -> Option<(Result<String, ApiError>, Self)> {
        if self.is_done {
            return None;
        }
        let piece = self.piece().await.inspect_err(|error| {
            self.is_done = true;
            tracing::warn!("An export broke off: {error}");
        });
        Some((piece, self))
    }

    async fn piece(&mut self) -> Result<String, ApiError> {
        let Some(page) = self.export.next().await? else {
            self.is_done = true;
            return Ok("]}".into());
        };
        let signer = &self.app.signer;
        let (section, items) = match page {
            Page::Images(images) => {
                ("images", texts(images.iter().map(|image| ImageView::new(image, signer)))?)
            }
            Page::Results(results) => {
                ("results", texts(results.iter().map(|result| ResultView::new(result, signer)))?)
            }
            Page::Jobs(jobs) => {
                ("jobs", texts(jobs.iter().map(|job| JobView::new(job, None, None, Vec::new())))?)
            }
            Page::Ledger(entries) => {
                ("ledger", texts(entries.into_iter().map(LedgerEntryView::from))?)
            }
            Page::Orders(orders) => {
                ("checkouts", texts(orders.into_iter().map(CheckoutView::from))?)
            }
            Page::Keys(keys) => ("keys", texts(keys.into_iter().map(KeyView::from))?),
        };
        let before = match self.section {
            Some(open) if open == section => String::new(),
            Some(_) => format!("],\"{section}\":["),
            None => format!("{},\"{section}\":[", self.head()?),
        };
        // A page that goes on where one ended has items, and so had that one.
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
        let profile = &self.export.profile;
        let user = ProfileView {
            id: profile.id.uuid(),
            email: profile.email.clone(),
            issuer: profile.issuer.clone(),
            subject: profile.subject.clone(),
            credits: profile.credits,
            reserved: profile.reserved,
            created_at: profile.created_at,
        };
        let mut text = text(&Head { exported_at: self.app.clock.now(), user })?;
        text.pop();
        Ok(text)
    }
}

/// Items of a list, separated by commas.
fn texts(items: impl Iterator<Item = impl Serialize>) -> Result<String, ApiError> {
    let texts: Result<Vec<String>, ApiError> = items.map(|item| text(&item)).collect();
    Ok(texts?.join(","))
}

fn text(value: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(|error| ApiError::Internal(error.into()))
}

/// All that is kept of a person.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a document that is written piece by piece")]
pub struct AccountExport {
    exported_at: DateTime<Utc>,
    user: ProfileView,
    images: Vec<ImageView>,
    results: Vec<ResultView>,
    /// All runs, the words of each among them. Their results are in the list of those.
    jobs: Vec<JobView>,
    ledger: Vec<LedgerEntryView>,
    checkouts: Vec<CheckoutView>,
    keys: Vec<KeyView>,
}

/// Who somebody is to us.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Profile)]
pub struct ProfileView {
    id: Uuid,
    email: Option<String>,
    /// Who signs them in.
    issuer: String,
    /// What that provider calls them.
    subject: String,
    credits: i32,
    reserved: i32,
    created_at: DateTime<Utc>,
}

/// One change of a balance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LedgerEntry)]
pub struct LedgerEntryView {
    id: i64,
    /// Why: `signup_grant`, `purchase`, `job`, `refund`, `dispute`, `admin` or `forfeit`.
    #[schema(example = "job")]
    kind: &'static str,
    #[schema(example = -5)]
    amount: i32,
    job_id: Option<Uuid>,
    order_id: Option<Uuid>,
    /// What an operator wrote beside it.
    note: Option<String>,
    created_at: DateTime<Utc>,
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
