//! A load generator: many users run paid jobs, each as fast as possible or all at a steady rate, and it reports the
//! responses and latencies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Longer than the two minutes after which the API responds with the job.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(150);
/// The first and the longest delay before a retry.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// The load to generate.
#[derive(Args, Clone, Debug)]
pub struct Load {
    /// File with a JSON list of users, each `{"api": "http://…", "token": "…", "image": "…"}`. Each runs one job
    /// at a time; list a user twice to run two.
    #[arg(long)]
    users: PathBuf,
    /// Maximum number of jobs.
    #[arg(long, default_value_t = u64::MAX)]
    jobs: u64,
    /// How long to start new jobs, in seconds.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Start this many jobs per second, regardless of the responses.
    #[arg(long)]
    rate: Option<f64>,
    /// Retry with the same Idempotency-Key after 202, 429, 503 or no response, for up to this many seconds.
    #[arg(long, default_value_t = 0.0)]
    insist: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct User {
    api: String,
    token: String,
    image: String,
}

#[derive(Debug, Serialize)]
pub struct Report {
    /// The time from the first request to the last response.
    pub seconds: f64,
    pub begun: u64,
    /// Jobs whose result arrived.
    pub done: u64,
    pub done_per_second: f64,
    /// The number of responses by status; `none` counts requests without a response, `empty` 200 without a result.
    pub answers: BTreeMap<String, u64>,
    /// The median time from the first request of a job to its result.
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
}

/// The responses to one job, and how long it took if its result arrived.
#[derive(Debug, Default)]
struct Outcome {
    took: Option<Duration>,
    answers: Vec<String>,
}

impl Load {
    pub async fn run(&self) -> anyhow::Result<Report> {
        let file = std::fs::read(&self.users);
        let file = file.with_context(|| format!("reading {}", self.users.display()))?;
        let users: Vec<User> = serde_json::from_slice(&file).context("reading the users")?;
        anyhow::ensure!(!users.is_empty(), "there are no users");
        // Fails if another part of the process installed it already, which does no harm.
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = reqwest::Client::builder().no_proxy().timeout(REQUEST_TIMEOUT).build()?;
        let started = Instant::now();
        let outcomes = match self.rate {
            Some(rate) => self.run_at_rate(&http, &users, rate).await?,
            None => self.run_sequentially(&http, &users).await?,
        };
        Ok(Report::new(started.elapsed(), &outcomes))
    }

    /// Every user starts the next job when the previous one has ended.
    async fn run_sequentially(
        &self,
        http: &reqwest::Client,
        users: &[User],
    ) -> anyhow::Result<Vec<Outcome>> {
        let begun = Arc::new(AtomicU64::new(0));
        let end = Instant::now() + Duration::from_secs_f64(self.seconds);
        let mut lanes = JoinSet::new();
        for user in users {
            let (user, http) = (user.clone(), http.clone());
            let (begun, load) = (begun.clone(), self.clone());
            lanes.spawn(async move {
                let mut outcomes = Vec::new();
                while Instant::now() < end && begun.fetch_add(1, Ordering::Relaxed) < load.jobs {
                    outcomes.push(load.job(&http, &user).await);
                }
                outcomes
            });
        }
        let mut all = Vec::new();
        while let Some(outcomes) = lanes.join_next().await {
            all.extend(outcomes?);
        }
        Ok(all)
    }

    /// Starts jobs at a steady rate, for each user in turn.
    async fn run_at_rate(
        &self,
        http: &reqwest::Client,
        users: &[User],
        rate: f64,
    ) -> anyhow::Result<Vec<Outcome>> {
        let period = Duration::try_from_secs_f64(1.0 / rate).context("the rate must be above 0")?;
        let end = Instant::now() + Duration::from_secs_f64(self.seconds);
        let mut interval = tokio::time::interval(period);
        let mut jobs = JoinSet::new();
        let mut users = users.iter().cycle();
        for _ in 0..self.jobs {
            interval.tick().await;
            if Instant::now() >= end {
                break;
            }
            let Some(user) = users.next().cloned() else { break };
            let (http, load) = (http.clone(), self.clone());
            jobs.spawn(async move { load.job(&http, &user).await });
        }
        let mut all = Vec::new();
        while let Some(outcome) = jobs.join_next().await {
            all.push(outcome?);
        }
        Ok(all)
    }

    /// Runs one job, with retries.
    async fn job(&self, http: &reqwest::Client, user: &User) -> Outcome {
        let started = Instant::now();
        let key = Uuid::now_v7().to_string();
        let mut outcome = Outcome::default();
        let mut delay = RETRY_DELAYS.0;
        loop {
            let (answer, is_final) = send(http, user, &key).await;
            if answer == "200" {
                outcome.took = Some(started.elapsed());
            }
            let retry = !is_final && started.elapsed().as_secs_f64() < self.insist;
            if retry && answer != "202" {
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(RETRY_DELAYS.1);
            }
            outcome.answers.push(answer);
            if !retry {
                return outcome;
            }
        }
    }
}

/// Sends a request. Returns the status for [`Report::answers`], and whether a retry is pointless.
async fn send(http: &reqwest::Client, user: &User, key: &str) -> (String, bool) {
    let address = format!("{}/api/rmbg-images/remove-bg-ai?imageId={}", user.api, user.image);
    let request = http.post(address).bearer_auth(&user.token).header("Idempotency-Key", key);
    let Ok(response) = request.send().await else { return ("none".into(), false) };
    let status = response.status();
    let Ok(body) = response.bytes().await else { return ("none".into(), false) };
    match status {
        StatusCode::OK => {
            let results: Vec<Value> = serde_json::from_slice(&body).unwrap_or_default();
            (if results.is_empty() { "empty".into() } else { "200".into() }, true)
        }
        StatusCode::ACCEPTED | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            (status.as_str().to_owned(), false)
        }
        _ => (status.as_str().to_owned(), true),
    }
}

impl Report {
    fn new(elapsed: Duration, outcomes: &[Outcome]) -> Self {
        let mut times: Vec<Duration> = outcomes.iter().filter_map(|outcome| outcome.took).collect();
        times.sort_unstable();
        let mut answers = BTreeMap::new();
        for answer in outcomes.iter().flat_map(|outcome| &outcome.answers) {
            *answers.entry(answer.clone()).or_default() += 1;
        }
        let seconds = elapsed.as_secs_f64();
        Self {
            seconds,
            begun: outcomes.len() as u64,
            done: times.len() as u64,
            done_per_second: times.len() as f64 / seconds,
            answers,
            p50_ms: percentile_ms(&times, 50),
            p95_ms: percentile_ms(&times, 95),
            p99_ms: percentile_ms(&times, 99),
        }
    }
}

/// Returns the smallest duration that at least `percent` of `sorted` do not exceed, in milliseconds.
fn percentile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).map_or(0.0, |took| took.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::extract::State;
    use axum::http::HeaderMap;
    use axum::routing::post;
    use axum::{Json, Router};

    use super::*;

    type Keys = Arc<Mutex<Vec<String>>>;

    async fn refuse_every_second(
        State(keys): State<Keys>,
        headers: HeaderMap,
    ) -> (StatusCode, Json<Value>) {
        let mut keys = keys.lock().unwrap();
        keys.push(headers["idempotency-key"].to_str().unwrap().to_owned());
        if keys.len() % 2 == 1 {
            (StatusCode::SERVICE_UNAVAILABLE, Json(Value::Null))
        } else {
            (StatusCode::OK, Json(serde_json::json!([{}])))
        }
    }

    async fn load_of(insist: f64, rate: Option<f64>) -> (Report, Vec<String>) {
        let keys = Keys::default();
        let path = "/api/rmbg-images/remove-bg-ai";
        let app = Router::new().route(path, post(refuse_every_second)).with_state(keys.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let file = tempfile::NamedTempFile::new().unwrap();
        let users = serde_json::json!([{ "api": api, "token": "t", "image": "i" }]);
        std::fs::write(file.path(), users.to_string()).unwrap();
        let load = Load { users: file.path().into(), jobs: 4, seconds: 60.0, rate, insist };
        let report = load.run().await.unwrap();
        let keys = keys.lock().unwrap().clone();
        (report, keys)
    }

    #[tokio::test]
    async fn retries_use_the_same_key() {
        let (report, keys) = load_of(30.0, None).await;
        assert_eq!((report.begun, report.done), (4, 4));
        assert_eq!(report.answers, BTreeMap::from([("200".into(), 4), ("503".into(), 4)]));
        assert!(keys.chunks(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
        assert!(keys.chunks(2).map(|pair| &pair[0]).is_sorted_by(|one, next| one != next));
        assert!(report.p99_ms >= 100.0, "the delay counts: {report:?}");
    }

    #[tokio::test]
    async fn without_retries_the_first_response_counts() {
        for rate in [None, Some(100.0)] {
            let (report, _) = load_of(0.0, rate).await;
            assert_eq!((report.begun, report.done), (4, 2));
            assert_eq!(report.answers, BTreeMap::from([("200".into(), 2), ("503".into(), 2)]));
        }
    }

    #[test]
    fn percentiles_are_computed_by_nearest_rank() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        let at = |percent| percentile_ms(&times, percent).round() as u32;
        assert_eq!([at(50), at(95), at(99)], [100, 190, 198]);
        assert!(percentile_ms(&[], 99).abs() < f64::EPSILON);
    }
}
