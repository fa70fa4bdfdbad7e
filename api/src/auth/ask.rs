//! Asking the identity provider: of the address that was meant and no other, and only so much.

use anyhow::Context;
use reqwest::{Client, RequestBuilder};
use serde::de::DeserializeOwned;

/// How long an answer may be. Keys and claims are a few thousand bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// A client for the provider, which follows no redirect: nobody else's keys are ever taken for the provider's.
pub(super) fn client() -> anyhow::Result<Client> {
    Client::builder()
        .timeout(std::time::Duration::from_secs(5))
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .context("preparing the HTTP client")
}

/// The JSON that the provider answers with.
pub(super) async fn ask<T: DeserializeOwned>(request: RequestBuilder) -> anyhow::Result<T> {
    let mut answer = request.send().await?;
    anyhow::ensure!(answer.status().is_success(), "the provider answers {}", answer.status());
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        anyhow::ensure!(
            body.len() + chunk.len() <= MOST_BYTES,
            "the provider's answer is longer than {MOST_BYTES} bytes"
        );
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).context("the provider's answer is not understood")
}
