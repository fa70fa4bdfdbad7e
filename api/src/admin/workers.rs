//! `admin workers`: lists the workers.

use anyhow::Context;
use retouch_core::Clock;
use retouch_core::db::PgPool;
use retouch_core::workers::{self, ServedModel, Worker, WorkerState};
use serde_json::{Value, json};

use super::answer::Answer;
use super::table::table;

pub async fn show(pool: &PgPool) -> anyhow::Result<Answer> {
    let all = workers::reported(pool).await.context("reading the workers")?;
    let now = Clock::system().now();
    let mut rows = Vec::new();
    for (worker, state) in &all {
        let shown = |served: &ServedModel| {
            let state = if served.is_loaded { "" } else { " (unloaded)" };
            format!("{}{state}", served.model)
        };
        let mut models: Vec<String> = worker.models.iter().map(shown).collect();
        models.sort();
        models.dedup();
        let problems = worker.problems.iter().map(|problem| {
            format!("{} failed at {}: {}", problem.model, problem.step, problem.reason)
        });
        rows.push(vec![
            worker.name.clone(),
            state.as_str().to_owned(),
            format!("{} s ago", (now - worker.seen_at).num_seconds().max(0)),
            worker.device.clone(),
            worker.hardware.clone(),
            worker.slots.to_string(),
            worker.version.clone(),
            models.join(", "),
            problems.collect::<Vec<_>>().join("; "),
        ]);
    }
    let text = if rows.is_empty() {
        "No worker has reported within the last hour.".into()
    } else {
        table(
            &[
                "node", "state", "seen", "device", "hardware", "slots", "version", "models",
                "problems",
            ],
            &rows,
        )
    };
    Ok(Answer::good(text, all.iter().map(as_json).collect()))
}

fn as_json((worker, state): &(Worker, WorkerState)) -> Value {
    json!({
        "id": worker.id, "name": worker.name, "state": state.as_str(), "seenAt": worker.seen_at,
        "device": worker.device, "hardware": worker.hardware, "slots": worker.slots, "version": worker.version,
        "models": worker.models, "problems": worker.problems,
    })
}
