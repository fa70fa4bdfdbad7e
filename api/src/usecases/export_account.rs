//! Exports an account, one page of rows at a time, so that memory use does not depend on the account's size.

use chrono::{DateTime, Utc};
use retouch_core::accounts::{self, Account, PaymentMessage};
use retouch_core::api_keys::{self, ApiKey};
use retouch_core::credits::{self, LedgerEntry};
use retouch_core::db::{self, DatabaseError};
use retouch_core::images::{Cursor, Image};
use retouch_core::jobs::{self, Job};
use retouch_core::orders::{self, Order};
use retouch_core::results::ResultImage;
use retouch_core::webhooks::{self, Webhook};
use retouch_core::{JobId, ResultId, UserId};

use crate::error::ApiError;
use crate::state::App;

/// The maximum number of rows per page.
const PAGE_SIZE: i64 = 500;

/// A page of rows. The export has at least one page of each kind, in this order.
pub enum Page {
    Images(Vec<Image>),
    Results(Vec<ResultImage>),
    Jobs(Vec<Job>),
    /// Changes of the balance.
    Ledger(Vec<LedgerEntry>),
    Orders(Vec<Order>),
    /// What the payment provider reported about the orders.
    PaymentMessages(Vec<PaymentMessage>),
    /// API keys, without their secrets.
    Keys(Vec<ApiKey>),
    /// Webhooks, without their secrets.
    Webhooks(Vec<Webhook>),
}

/// An export in progress.
pub struct Export {
    app: App,
    /// The exported user.
    pub account: Account,
    next: Option<Next>,
}

/// The kind of the next page, and the row after which it starts.
enum Next {
    Images(Option<Cursor>),
    Results(Option<ResultId>),
    Jobs(Option<JobId>),
    Ledger(i64),
    Orders,
    PaymentMessages(Option<(DateTime<Utc>, String)>),
    Keys,
    Webhooks,
}

impl Export {
    /// Starts an export of `user`.
    pub async fn begin(app: &App, user: UserId) -> Result<Self, ApiError> {
        let account = accounts::get_active(&app.pool, user).await?;
        let account = account.ok_or(ApiError::NotFound("Account"))?;
        Ok(Self { app: app.clone(), account, next: Some(Next::Images(None)) })
    }

    /// Returns the next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Page>, ApiError> {
        let Some(next) = self.next.take() else { return Ok(None) };
        let (page, then) = db::within(self.read(next)).await?;
        self.next = then;
        Ok(Some(page))
    }

    /// Returns a page, and the one after it.
    async fn read(&self, next: Next) -> Result<(Page, Option<Next>), DatabaseError> {
        let (pool, user) = (&self.app.pool, self.account.id);
        Ok(match next {
            Next::Images(after) => {
                let rows = accounts::images_after(pool, user, after, PAGE_SIZE).await?;
                let last = last_of_full(&rows).map(Image::cursor);
                let then = last.map_or(Next::Results(None), |last| Next::Images(Some(last)));
                (Page::Images(rows), Some(then))
            }
            Next::Results(after) => {
                let rows = accounts::results_after(pool, user, after, PAGE_SIZE).await?;
                let last = last_of_full(&rows).map(|row| row.id);
                let then = last.map_or(Next::Jobs(None), |id| Next::Results(Some(id)));
                (Page::Results(rows), Some(then))
            }
            Next::Jobs(after) => {
                let ids = accounts::jobs_after(pool, user, after, PAGE_SIZE).await?;
                let last = last_of_full(&ids).copied();
                let then = last.map_or(Next::Ledger(0), |id| Next::Jobs(Some(id)));
                // The janitor may have deleted some of them since.
                (Page::Jobs(jobs::load(pool, &ids).await?), Some(then))
            }
            Next::Ledger(after) => {
                let rows = credits::ledger_after(pool, user, after, PAGE_SIZE).await?;
                let last = last_of_full(&rows).map(|row| row.id);
                let then = last.map_or(Next::Orders, Next::Ledger);
                (Page::Ledger(rows), Some(then))
            }
            Next::Orders => {
                let then = Next::PaymentMessages(None);
                (Page::Orders(orders::list(pool, user).await?), Some(then))
            }
            Next::PaymentMessages(after) => {
                let rows = accounts::payment_messages_after(pool, user, after, PAGE_SIZE).await?;
                let last = last_of_full(&rows).map(|row| (row.received_at, row.id.clone()));
                let then = last.map_or(Next::Keys, |last| Next::PaymentMessages(Some(last)));
                (Page::PaymentMessages(rows), Some(then))
            }
            Next::Keys => (Page::Keys(api_keys::list(pool, user).await?), Some(Next::Webhooks)),
            Next::Webhooks => (Page::Webhooks(webhooks::list(pool, user).await?), None),
        })
    }
}

/// Returns the last row of a full page, after which more rows may follow.
fn last_of_full<T>(rows: &[T]) -> Option<&T> {
    rows.last().filter(|_| i64::try_from(rows.len()).is_ok_and(|count| count == PAGE_SIZE))
}
