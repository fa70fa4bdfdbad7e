//! Requests to the identity provider, without redirects and with a size limit.

use anyhow::Context;
use reqwest::{Client, RequestBuilder};
use serde::de::DeserializeOwned;

/// The maximum size of a response. Keys and claims take a few thousand bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// Creates a client that follows no redirects: only the provider itself may supply its keys.
pub(super) fn client() -> anyhow::Result<Client> {
    Client::builder()
        .timeout(std::time::Duration::from_secs(5))
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .context("creating the HTTP client")
}

/// Sends the request and parses the JSON response.
pub(super) async fn fetch<T: DeserializeOwned>(request: RequestBuilder) -> anyhow::Result<T> {
    let mut response = request.send().await?;
    anyhow::ensure!(response.status().is_success(), "the provider answered {}", response.status());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        anyhow::ensure!(
            body.len() + chunk.len() <= MAX_BYTES,
            "the provider's response exceeds {MAX_BYTES} bytes"
        );
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).context("parsing the provider's response")
}
