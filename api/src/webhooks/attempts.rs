//! Attempts to send a delivery: connects to permitted addresses only, and records the outcome.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use chrono::{DateTime, Utc};
use reqwest::header::{self, HeaderMap};
use reqwest::{Client, Response, StatusCode, redirect};
use retouch_core::db;
use retouch_core::webhooks::{
    self, Attempt, Delivery, DeliveryProblem, DisabledReason, Lane, Outcome, Recorded,
};
use tokio::sync::Semaphore;

use super::address::{ResolveError, Resolver};
use super::lanes::lookups;
use super::{payload, signature};
use crate::state::App;

/// Maximum time for reading the rest of a response, which is discarded.
const REST_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of bytes read of the rest.
const MAX_REST: usize = 64 * 1024;

/// Makes single attempts.
pub struct Attempts {
    app: App,
    timeout: Duration,
    fast: Exit,
    slow: Exit,
}

/// The HTTP clients of one lane.
struct Exit {
    encrypted: Client,
    plain: Client,
    lookups: Arc<Semaphore>,
}

impl Attempts {
    pub fn new(app: App, timeout: Duration) -> anyhow::Result<Self> {
        let (fast, slow) = (Exit::new(&app, Lane::Fast)?, Exit::new(&app, Lane::Slow)?);
        Ok(Self { app, timeout, fast, slow })
    }

    /// Returns how many more names can be resolved at once.
    pub fn free_lookups(&self, lane: Lane) -> usize {
        self.exit(lane).lookups.available_permits()
    }

    const fn exit(&self, lane: Lane) -> &Exit {
        match lane {
            Lane::Fast => &self.fast,
            Lane::Slow => &self.slow,
        }
    }

    /// Makes one attempt and records its outcome.
    pub async fn make(&self, lane: Lane, delivery: &Delivery) {
        let started = Instant::now();
        let sent = tokio::time::timeout(self.timeout, self.send(lane, delivery)).await;
        let took = started.elapsed();
        let (outcome, status, retry_after) = match sent {
            Ok(Ok(response)) => {
                let (status, now) = (response.status(), self.app.clock.now());
                let retry_after = retry_after(status, response.headers(), now);
                read_rest(response).await;
                (outcome_of(status), Some(status.as_u16()), retry_after)
            }
            Ok(Err(problem)) => (Outcome::Failed(problem), None, None),
            Err(_) => (Outcome::Failed(DeliveryProblem::Timeout), None, None),
        };
        let duration_ms = took.as_millis() as i32;
        let attempt = Attempt { outcome, status, duration_ms, retry_after };
        metrics::histogram!("retouch_webhook_seconds").record(took);
        match db::within(webhooks::record(&self.app.pool, delivery, attempt)).await {
            Ok(recorded) => report(delivery, attempt, recorded),
            // The lease expires, and it is sent again.
            Err(error) => {
                let id = delivery.id;
                tracing::warn!(%error, delivery.id = %id, "Could not record the outcome of delivery {id}");
            }
        }
    }

    /// Sends the request and returns the receiver's answer, of which only the head is read.
    async fn send(&self, lane: Lane, delivery: &Delivery) -> Result<Response, DeliveryProblem> {
        // The rules may have become stricter since the address was registered.
        let url = self.app.webhook_addresses.parse(&delivery.url);
        let url = url.map_err(|_| DeliveryProblem::Address)?;
        let Exit { encrypted, plain, .. } = self.exit(lane);
        let client = if url.scheme() == "http" { plain } else { encrypted };
        let body = payload::body(delivery).map_err(|error| {
            tracing::error!(%error, delivery.id = %delivery.id, "Could not write the body of a delivery");
            DeliveryProblem::Connection
        })?;
        let (id, now) = (delivery.id.to_string(), self.app.clock.now());
        let request = client
            .post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", now.timestamp())
            .header("webhook-signature", signature::sign(&delivery.secrets, &id, now, &body))
            .body(body);
        request.send().await.map_err(|error| problem_of(&error))
    }
}

/// Reads the rest of a response, so that receivers that write a long one do not see it break. The status alone counts.
async fn read_rest(mut response: Response) {
    let rest = async {
        let mut read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            read += chunk.len();
            if read > MAX_REST {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(REST_TIMEOUT, rest).await;
}

impl Exit {
    fn new(app: &App, lane: Lane) -> anyhow::Result<Self> {
        let lookups = Arc::new(Semaphore::new(lookups(lane)));
        let client = |is_plain| {
            let (rules, lookups) = (app.webhook_addresses.clone(), Arc::clone(&lookups));
            Client::builder()
                .user_agent("Retouch-Webhooks/1")
                .redirect(redirect::Policy::none())
                // A proxy would connect to addresses that we have not checked.
                .no_proxy()
                // A new connection for each attempt, so that each checks the addresses of its host.
                .pool_max_idle_per_host(0)
                .dns_resolver(Arc::new(Resolver { rules, is_plain, lookups }))
                .https_only(!is_plain)
                .build()
                .context("creating the HTTP client")
        };
        let (encrypted, plain) = (client(false)?, client(true)?);
        Ok(Self { encrypted, plain, lookups })
    }
}

/// Returns how long a receiver that is busy or down asks to wait: `Retry-After` is a number of seconds or a date
/// (RFC 9110, section 10.2.3).
fn retry_after(status: StatusCode, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let asked = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match asked.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => (DateTime::parse_from_rfc2822(asked).ok()?.to_utc() - now).to_std().ok(),
    }
}

fn outcome_of(status: StatusCode) -> Outcome {
    match status {
        StatusCode::GONE => Outcome::Gone,
        status if status.is_success() => Outcome::Delivered,
        status if status.is_redirection() => Outcome::Failed(DeliveryProblem::Redirect),
        _ => Outcome::Failed(DeliveryProblem::Status),
    }
}

/// Returns why there was no response, from the errors that led to `error`.
fn problem_of(error: &reqwest::Error) -> DeliveryProblem {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = cause {
        match current.downcast_ref::<ResolveError>() {
            Some(ResolveError::Address(_)) => return DeliveryProblem::Address,
            Some(ResolveError::Dns(_)) => return DeliveryProblem::Dns,
            None => {}
        }
        if current.is::<rustls::Error>() {
            return DeliveryProblem::Tls;
        }
        // `io::Error::source` skips the error that it wraps.
        let inner = current.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| current.source());
    }
    DeliveryProblem::Connection
}

fn report(delivery: &Delivery, attempt: Attempt, recorded: Recorded) {
    let outcome = match recorded {
        Recorded::Delivered => "delivered",
        Recorded::Waiting => "waiting",
        Recorded::Failed => "failed",
        Recorded::Disabled(_) => "disabled",
        Recorded::LeaseLost => "lease_lost",
    };
    metrics::counter!("retouch_webhook_attempts_total", "outcome" => outcome).increment(1);
    let (id, webhook) = (delivery.id, delivery.webhook);
    tracing::debug!(delivery.id = %id, webhook.id = %webhook, ?attempt, outcome, "Tried delivery {id}");
    if let Recorded::Disabled(reason) = recorded {
        let why = match reason {
            DisabledReason::Gone => "its receiver answered 410",
            DisabledReason::Failing => "every attempt failed for days",
        };
        tracing::info!(webhook.id = %webhook, user.id = %delivery.owner, "Turned webhook {webhook} off: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_receiver_is_asked_again_when_it_says() {
        let now = DateTime::parse_from_rfc3339("2026-11-25T08:00:00Z").unwrap().to_utc();
        let asked = |status: u16, value: &str| {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, value.parse().unwrap())]);
            let wait = retry_after(StatusCode::from_u16(status).unwrap(), &headers, now);
            wait.map(|wait| wait.as_secs())
        };
        assert_eq!(asked(429, "120"), Some(120));
        assert_eq!(asked(503, "Wed, 25 Nov 2026 08:30:00 GMT"), Some(1800));
        // A date in the past, nonsense, and a status that does not ask for a pause.
        for (status, value) in [(503, "Wed, 25 Nov 2026 07:30:00 GMT"), (503, "soon"), (500, "120")]
        {
            assert_eq!(asked(status, value), None, "{status} {value}");
        }
        assert_eq!(retry_after(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new(), now), None);
    }
}
