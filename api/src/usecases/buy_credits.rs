//! Buys a pack of credits: records the order, then opens a payment page for it.

use retouch_core::credits::PACKS;
use retouch_core::orders;
use retouch_core::users::User;

use super::delete_account;
use crate::error::ApiError;
use crate::payments::PaymentsError;
use crate::state::App;

/// Places an order for pack `number` and returns the address of its payment page. A repeated click, or a repeat with
/// the same idempotency key, returns the same page.
pub async fn buy_credits(
    app: &App,
    user: &User,
    number: u8,
    idempotency_key: Option<&str>,
) -> Result<String, ApiError> {
    let pack = PACKS.iter().find(|pack| pack.number == number).ok_or(ApiError::NotFound("Pack"))?;
    let payments = app.payments.as_ref().ok_or(ApiError::PaymentsUnavailable)?;
    app.rate_limits.users.purchases.count(user.id).await?;
    let (pool, owner, key) = (app.pool.clone(), user.id, idempotency_key.map(str::to_owned));
    let placing = async move { orders::place(&pool, owner, pack, key.as_deref()).await };
    let order = app.in_turn_of(owner, placing).await??;
    if let Some(url) = order.checkout_url {
        return Ok(url);
    }
    let page = match payments.open(&order, user.email.as_deref()).await {
        Ok(page) => page,
        Err(error) => {
            tracing::error!(order.id = %order.id, "Could not open a payment page for order {}: {error}", order.id);
            if matches!(error, PaymentsError::Rejected(_)) {
                orders::refuse(&app.pool, order.id).await?;
            }
            return Err(ApiError::PaymentsUnavailable);
        }
    };
    let url = orders::attach_session(&app.pool, &order, &page.session, &page.url).await?;
    if url.is_none() {
        delete_account::close_pages(app, user.id, &[page.session]).await;
    }
    url.ok_or(ApiError::AccountDeleted)
}
