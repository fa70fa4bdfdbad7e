//! Handing out all that is kept of a person, a page at a time, so that any account fits into little memory.

use retouch_core::accounts::{self, LedgerEntry, Profile};
use retouch_core::api_keys::{self, ApiKey};
use retouch_core::images::Image;
use retouch_core::jobs::Job;
use retouch_core::orders::{self, Order};
use retouch_core::results::ResultImage;
use retouch_core::{ImageId, JobId, ResultId, UserId};

use crate::error::ApiError;
use crate::state::App;

/// Rows of a page.
const PAGE: i64 = 500;

/// Some of what is kept. Kinds come one after the other, each with one page at least.
pub enum Page {
    /// Uploaded pictures.
    Images(Vec<Image>),
    /// What was made from them.
    Results(Vec<ResultImage>),
    /// Runs.
    Jobs(Vec<Job>),
    /// Changes of the balance.
    Ledger(Vec<LedgerEntry>),
    /// Purchases.
    Orders(Vec<Order>),
    /// Keys, without what makes them keys.
    Keys(Vec<ApiKey>),
}

/// An export under way.
pub struct Export {
    app: App,
    /// Whose.
    pub profile: Profile,
    next: Option<Next>,
}

/// What the next page is to hold, and after which row it begins.
enum Next {
    Images(Option<ImageId>),
    Results(Option<ResultId>),
    Jobs(Option<JobId>),
    Ledger(i64),
    Orders,
    Keys,
}

impl Export {
    /// Begins an export of all that is kept of `user`.
    pub async fn begin(app: &App, user: UserId) -> Result<Self, ApiError> {
        let profile = accounts::profile(&app.pool, user).await?;
        let profile = profile.ok_or(ApiError::NotFound("Account"))?;
        Ok(Self { app: app.clone(), profile, next: Some(Next::Images(None)) })
    }

    /// The next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Page>, ApiError> {
        let (pool, user) = (&self.app.pool, self.profile.id);
        let Some(next) = self.next.take() else { return Ok(None) };
        let (page, then) = match next {
            Next::Images(after) => {
                let rows = accounts::images_after(pool, user, after, PAGE).await?;
                let last = last_of_full(&rows).map(|row| row.id);
                let then = last.map_or(Next::Results(None), |id| Next::Images(Some(id)));
                (Page::Images(rows), Some(then))
            }
            Next::Results(after) => {
                let rows = accounts::results_after(pool, user, after, PAGE).await?;
                let last = last_of_full(&rows).map(|row| row.id);
                let then = last.map_or(Next::Jobs(None), |id| Next::Results(Some(id)));
                (Page::Results(rows), Some(then))
            }
            Next::Jobs(after) => {
                let rows = accounts::jobs_after(pool, user, after, PAGE).await?;
                let last = last_of_full(&rows).map(|row| row.id);
                let then = last.map_or(Next::Ledger(0), |id| Next::Jobs(Some(id)));
                (Page::Jobs(rows), Some(then))
            }
            Next::Ledger(after) => {
                let rows = accounts::ledger_after(pool, user, after, PAGE).await?;
                let last = last_of_full(&rows).map(|row| row.id);
                let then = last.map_or(Next::Orders, Next::Ledger);
                (Page::Ledger(rows), Some(then))
            }
            Next::Orders => (Page::Orders(orders::list(pool, user).await?), Some(Next::Keys)),
            Next::Keys => (Page::Keys(api_keys::list(pool, user).await?), None),
        };
        self.next = then;
        Ok(Some(page))
    }
}

/// The last row of a page after which there may be another.
fn last_of_full<T>(rows: &[T]) -> Option<&T> {
    rows.last().filter(|_| i64::try_from(rows.len()).is_ok_and(|count| count == PAGE))
}
