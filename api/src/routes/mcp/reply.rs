//! What a call returns: a sentence, the same as JSON, and a small copy of the result for the model to look at.

use axum::http::StatusCode;
use retouch_catalog::{Factor, FixMode, Tool};
use retouch_core::credits::price;
use retouch_core::jobs::Job;
use retouch_core::results::ResultImage;
use retouch_core::users::User;
use retouch_core::{UserId, with_causes};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::copy::small_copy;
use crate::error::ApiError;
use crate::signing::File;
use crate::state::App;
use crate::usecases::magic_fix::fix_offer;
use crate::usecases::run_tool::RunOutcome;

/// The outcome of a run.
#[derive(Serialize, JsonSchema)]
pub struct RunOutput {
    /// `done`, or `running` if it takes longer: then call the tool again with the same arguments, at no further cost.
    state: &'static str,
    job_id: String,
    /// The result; null while the run has not ended.
    result: Option<ResultOutput>,
}

/// A result.
#[derive(Serialize, JsonSchema)]
pub struct ResultOutput {
    /// The id, for further calls.
    id: String,
    /// The image that the run worked on.
    image_id: String,
    /// The address of the PNG. It works for at least an hour.
    url: String,
    width: i32,
    height: i32,
    size_bytes: i64,
    /// The price of the run.
    credits: i32,
    model: String,
    /// True if the model is a demo with limited abilities.
    demo: bool,
}

/// The account of the caller.
#[derive(Serialize, JsonSchema)]
pub struct AccountOutput {
    /// The credits that are not held for unfinished runs.
    available_credits: i32,
    /// The credits that are held for unfinished runs.
    held_credits: i32,
    email: Option<String>,
    prices: Prices,
    /// The abilities of Magic Fix on this server.
    magic_fix_modes: Vec<&'static str>,
    /// The words that its text-guided model knows; null if it knows all.
    magic_fix_words: Option<Vec<String>>,
}

/// The prices of the tools, in credits.
#[derive(Serialize, JsonSchema)]
pub struct Prices {
    remove_background: i32,
    upscale_2: i32,
    upscale_4: i32,
    magic_fix: i32,
}

/// Returns the answer to a call in which `user` ran a tool.
pub async fn of_run(
    app: &App,
    user: UserId,
    outcome: RunOutcome,
) -> Result<CallToolResult, ApiError> {
    match outcome {
        RunOutcome::Done(mut results) => {
            if let Some(result) = results.pop() {
                return done(app, user, &result).await;
            }
            let detail =
                "The result of this run was deleted. Send another idempotency_key to run it again.";
            Err(ApiError::Unprocessable(detail.into()))
        }
        RunOutcome::Pending(job) => running(&job),
    }
}

async fn done(app: &App, user: UserId, result: &ResultImage) -> Result<CallToolResult, ApiError> {
    let url = app.public_url.join(&app.signer.sign(File::Result(result.id)));
    let url = url.map_err(anyhow::Error::from)?.to_string();
    let ResultImage { width, height, credits, .. } = result;
    let text = format!(
        "Done: result {}, a PNG of {width} × {height} pixels. The run cost {credits} credits. It can be downloaded for \
         at least an hour from {url}",
        result.id
    );
    let output = RunOutput {
        state: "done",
        job_id: result.job.to_string(),
        result: Some(ResultOutput {
            id: result.id.to_string(),
            image_id: result.image.to_string(),
            url,
            width: *width,
            height: *height,
            size_bytes: result.size_bytes,
            credits: *credits,
            model: result.model.clone(),
            demo: result.is_demo,
        }),
    };
    let copy = small_copy(app, user, result).await;
    answer(text, &output, copy)
}

fn running(job: &Job) -> Result<CallToolResult, ApiError> {
    let text = "The run has not ended yet. Call the tool again with the same arguments to wait for its result: that \
                joins the run and costs nothing more.";
    let output = RunOutput { state: "running", job_id: job.id.to_string(), result: None };
    answer(text.to_owned(), &output, None)
}

/// Returns the answer to a call of `account`.
pub async fn of_account(app: &App, user: &User) -> Result<CallToolResult, ApiError> {
    let offer = fix_offer(app).await?;
    let output = AccountOutput {
        available_credits: user.credits - user.reserved,
        held_credits: user.reserved,
        email: user.email.clone(),
        prices: Prices {
            remove_background: price(Tool::RemoveBackground),
            upscale_2: price(Tool::Upscale(Factor::X2)),
            upscale_4: price(Tool::Upscale(Factor::X4)),
            magic_fix: price(Tool::MagicFix(FixMode::Remove)),
        },
        magic_fix_modes: offer.modes.iter().map(|mode| mode.as_str()).collect(),
        magic_fix_words: offer.vocabulary,
    };
    let AccountOutput { available_credits, held_credits, prices, magic_fix_modes, .. } = &output;
    // Many assistants see only the text.
    let fixes = if magic_fix_modes.is_empty() {
        "Magic fixes are not available at the moment.".to_owned()
    } else {
        format!("Magic fixes can {}.", magic_fix_modes.join(", "))
    };
    let words = output.magic_fix_words.as_ref().map_or(String::new(), |words| {
        format!(" Their model knows only these words: {}.", words.join(", "))
    });
    let text = format!(
        "{available_credits} credits are available, {held_credits} are held for unfinished runs. A run costs {} credits to \
         remove a background, {} to upscale twofold, {} fourfold, and {} for a magic fix. {fixes}{words}",
        prices.remove_background, prices.upscale_2, prices.upscale_4, prices.magic_fix
    );
    answer(text, &output, None)
}

fn answer(
    text: String,
    output: &impl Serialize,
    copy: Option<ContentBlock>,
) -> Result<CallToolResult, ApiError> {
    let content = std::iter::once(ContentBlock::text(text)).chain(copy).collect();
    let mut answer = CallToolResult::success(content);
    answer.structured_content = Some(serde_json::to_value(output).map_err(anyhow::Error::from)?);
    Ok(answer)
}

/// Returns the answer to a call that failed: the sentence that people get, and the code for programs.
pub fn of_error(error: &ApiError) -> CallToolResult {
    if let ApiError::Internal(error) = error {
        tracing::error!("A call failed: {}", with_causes(error.as_ref()));
    }
    let status = error.status();
    let code = error.code().unwrap_or_else(|| code_of(status));
    let retry_after_secs = error.retry_after_secs();
    let sentence = error.to_string();
    let stop = if sentence.ends_with('.') { "" } else { "." };
    let again =
        retry_after_secs.map_or_else(String::new, |secs| format!(" Try again in {secs} s."));
    let text = format!("{sentence}{stop}{again} (code: {code})");
    let problem =
        json!({"code": code, "status": status.as_u16(), "retry_after_seconds": retry_after_secs});
    let meta = MetaObject([("retouch/problem".to_owned(), problem)].into_iter().collect());
    CallToolResult::error(vec![ContentBlock::text(text)]).with_meta(Some(meta))
}

/// Returns the title of a problem as a code: `payment_required`.
fn code_of(status: StatusCode) -> String {
    let title = status.canonical_reason().unwrap_or("error");
    title.to_ascii_lowercase().replace([' ', '-'], "_")
}
