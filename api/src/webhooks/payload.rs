//! The body of a delivery.

use chrono::{DateTime, Utc};
use retouch_catalog::{FixMode, Tier, ToolName};
use retouch_core::webhooks::{Delivery, EventType, JobFacts};
use serde::Serialize;
use uuid::Uuid;

/// The body, as the Standard Webhooks specification recommends it.
#[derive(Serialize)]
struct Payload<'a> {
    #[serde(rename = "type")]
    event: EventType,
    timestamp: DateTime<Utc>,
    data: Data<'a>,
}

/// The event. Contains no secrets and no signed URLs: a delivery may wait for a day, and receivers may log it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(flatten)]
    job: Option<JobData<'a>>,
    /// The balance after the event, credits held for unfinished runs included.
    credits: i32,
    /// The threshold of `credits.low`.
    #[serde(skip_serializing_if = "Option::is_none")]
    credits_below: Option<i32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobData<'a> {
    job_id: Uuid,
    image_id: Option<Uuid>,
    tool: ToolName,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<i16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<FixMode>,
    tier: Tier,
    /// The credits that were debited.
    cost: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureData<'a>>,
    /// The URL of the job in the API.
    job_path: String,
    /// The URL of the picture in the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_path: Option<String>,
}

#[derive(Serialize)]
struct FailureData<'a> {
    code: &'a str,
    detail: &'a str,
}

impl<'a> JobData<'a> {
    fn new(job: &'a JobFacts, event: EventType) -> Self {
        let failure = job.failure.as_ref();
        Self {
            job_id: job.id.uuid(),
            image_id: job.image.map(retouch_core::ImageId::uuid),
            tool: job.tool,
            factor: job.factor,
            mode: job.mode,
            tier: job.tier,
            cost: if event == EventType::JobDone { job.cost } else { 0 },
            result_id: job.result.map(retouch_core::ResultId::uuid),
            failure: failure.map(|(code, detail)| FailureData { code, detail }),
            job_path: format!("/api/jobs/{}", job.id),
            result_path: job.result.map(|result| format!("/api/results/{result}/file")),
        }
    }
}

/// Returns the body of a delivery.
pub fn body(delivery: &Delivery) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Payload {
        event: delivery.event,
        timestamp: delivery.created_at,
        data: Data {
            job: delivery.job.as_ref().map(|job| JobData::new(job, delivery.event)),
            credits: delivery.balance,
            credits_below: delivery.credits_below,
        },
    })
}
