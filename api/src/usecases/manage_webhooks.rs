//! Creates and changes webhooks, and checks the owners' requests.

use retouch_core::webhooks::{
    self, Change, CreateError, EventType, NewWebhook, SendError, Webhook,
};
use retouch_core::{EventId, UserId, WebhookId, db};

use crate::error::ApiError;
use crate::random_secret::random_secret;
use crate::state::App;
use crate::webhooks::address::AddressError;
use crate::webhooks::signature::secret_text;

/// Maximum length of a description, in characters.
pub const MAX_DESCRIPTION_LENGTH: usize = 200;
/// The highest threshold of `credits.low`.
pub const MAX_CREDITS_BELOW: i32 = 1_000_000;

/// The requested properties of a webhook; `None` keeps the present value.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    pub url: Option<String>,
    pub description: Option<String>,
    pub events: Option<Vec<EventType>>,
    pub credits_below: Option<i32>,
    pub is_enabled: Option<bool>,
}

impl Wish {
    /// Checks all properties and converts them to their stored form.
    async fn checked(mut self, app: &App, owner: UserId) -> Result<Self, ApiError> {
        if let Some(url) = &mut self.url {
            app.rate_limits.users.webhook_addresses.count(owner).await?;
            let parsed = app.webhook_addresses.parse(url.trim()).map_err(refused)?;
            app.webhook_addresses.check_host(&parsed).await.map_err(refused)?;
            *url = parsed.into();
        }
        if let Some(description) = &mut self.description {
            *description = description.trim().to_owned();
            let is_long = description.chars().count() > MAX_DESCRIPTION_LENGTH;
            if is_long || description.chars().any(char::is_control) {
                return Err(bad("The description must have at most 200 characters."));
            }
        }
        if let Some(events) = &mut self.events {
            events.sort_unstable();
            events.dedup();
            let is_known = |event: &EventType| EventType::SUBSCRIBABLE.contains(event);
            if events.is_empty() || !events.iter().all(is_known) {
                return Err(bad("Choose at least one event."));
            }
        }
        if self.credits_below.is_some_and(|below| !(1..=MAX_CREDITS_BELOW).contains(&below)) {
            return Err(bad("The number of credits must be between 1 and 1000000."));
        }
        Ok(self)
    }
}

fn bad(detail: &str) -> ApiError {
    ApiError::BadRequest(detail.into())
}

fn refused(error: AddressError) -> ApiError {
    match error {
        AddressError::Private => ApiError::Unprocessable(error.to_string()),
        AddressError::Malformed
        | AddressError::Scheme
        | AddressError::UserInfo
        | AddressError::Port => ApiError::BadRequest(error.to_string()),
    }
}

impl From<SendError> for ApiError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NoSuchWebhook => Self::NotFound("Webhook"),
            SendError::NoSuchDelivery => Self::NotFound("Delivery"),
            SendError::Off => Self::Unprocessable(error.to_string()),
            SendError::Database(error) => error.into(),
        }
    }
}

/// Creates a webhook; returns it and its secret.
pub async fn create_webhook(
    app: &App,
    owner: UserId,
    wish: Wish,
) -> Result<(Webhook, String), ApiError> {
    let wish = wish.checked(app, owner).await?;
    let secret = random_secret()?;
    let pool = app.pool.clone();
    let creation = async move {
        let new = NewWebhook {
            url: wish.url.as_deref().unwrap_or_default(),
            description: wish.description.as_deref().unwrap_or_default(),
            events: wish.events.as_deref().unwrap_or_default(),
            credits_below: wish.credits_below.unwrap_or(1),
            secret: &secret,
        };
        webhooks::create(&pool, owner, &new).await
    };
    let made = app.in_turn_of(owner, creation).await?.map_err(|error| match error {
        CreateError::TooMany => ApiError::Unprocessable(error.to_string()),
        CreateError::OwnerGone => ApiError::AccountDeleted,
        CreateError::Database(error) => error.into(),
        CreateError::OutcomeUnknown(error) => {
            tracing::error!(%error, "The answer to the creation of a webhook was lost");
            let detail = "We don't know whether this webhook was created. If it is in your list, replace its secret, because nobody has it.";
            ApiError::OutcomeUnknown { detail, error }
        }
    })?;
    tracing::info!(user.id = %owner, webhook.id = %made.id, "Created webhook {}", made.id);
    Ok((made, secret_text(&secret)))
}

/// Changes a webhook.
pub async fn change_webhook(
    app: &App,
    owner: UserId,
    id: WebhookId,
    wish: Wish,
) -> Result<Webhook, ApiError> {
    let wish = wish.checked(app, owner).await?;
    let pool = app.pool.clone();
    let changing = async move {
        let change = Change {
            url: wish.url.as_deref(),
            description: wish.description.as_deref(),
            events: wish.events.as_deref(),
            credits_below: wish.credits_below,
            is_enabled: wish.is_enabled,
        };
        webhooks::change(&pool, owner, id, &change).await
    };
    app.in_turn_of(owner, changing).await??;
    owned_webhook(app, owner, id).await
}

/// Replaces the secret of a webhook; returns it and the new secret.
pub async fn rotate_secret(
    app: &App,
    owner: UserId,
    id: WebhookId,
) -> Result<(Webhook, String), ApiError> {
    let secret = random_secret()?;
    let pool = app.pool.clone();
    let rotation = async move { webhooks::rotate(&pool, owner, id, &secret).await };
    app.in_turn_of(owner, rotation).await??;
    let webhook = owned_webhook(app, owner, id).await?;
    tracing::info!(user.id = %owner, webhook.id = %id, "Replaced the secret of webhook {id}");
    Ok((webhook, secret_text(&secret)))
}

/// Returns a webhook of `owner`.
///
/// # Errors
/// [`ApiError::NotFound`], also for a webhook of another user.
pub async fn owned_webhook(app: &App, owner: UserId, id: WebhookId) -> Result<Webhook, ApiError> {
    let found = db::within(webhooks::get(&app.pool, owner, id)).await?;
    found.ok_or(ApiError::NotFound("Webhook"))
}

/// Sends a test event; returns its id.
pub async fn send_test(app: &App, owner: UserId, id: WebhookId) -> Result<EventId, ApiError> {
    app.rate_limits.users.deliveries.count(owner).await?;
    let pool = app.pool.clone();
    let sending = async move { webhooks::send_test(&pool, owner, id).await };
    Ok(app.in_turn_of(owner, sending).await??)
}

/// Sends a delivery again.
pub async fn send_again(
    app: &App,
    owner: UserId,
    webhook: WebhookId,
    id: EventId,
) -> Result<(), ApiError> {
    app.rate_limits.users.deliveries.count(owner).await?;
    let pool = app.pool.clone();
    let sending = async move { webhooks::send_again(&pool, owner, webhook, id).await };
    Ok(app.in_turn_of(owner, sending).await??)
}
