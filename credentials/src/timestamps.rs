//! Requests timestamps over HTTP (RFC 3161, 3.4).

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use tokio::runtime::Handle;
use url::Url;

use crate::error::SetupError;
use crate::{TimestampAuthority, TimestampError};

const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response in bytes.
const MAX_BYTES: usize = 64 * 1024;

pub(crate) struct HttpTimestamps {
    address: Url,
    client: reqwest::Client,
    runtime: Handle,
}

impl HttpTimestamps {
    pub(crate) fn new(address: &Url) -> Result<Self, SetupError> {
        if !matches!(address.scheme(), "http" | "https") {
            return Err(SetupError::Timestamps(format!("{address} is not an HTTP address")));
        }
        let failed = |error: &dyn std::error::Error| SetupError::Timestamps(error.to_string());
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| failed(&error))?;
        let runtime = Handle::try_current().map_err(|error| failed(&error))?;
        Ok(Self { address: address.clone(), client, runtime })
    }

    async fn ask(&self, request: Vec<u8>) -> Result<Vec<u8>, reqwest::Error> {
        let request = self
            .client
            .post(self.address.clone())
            .header(CONTENT_TYPE, "application/timestamp-query")
            .header(ACCEPT, "application/timestamp-reply")
            .body(request);
        let mut answer = request.send().await?.error_for_status()?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BYTES {
                break;
            }
        }
        Ok(bytes)
    }
}

impl TimestampAuthority for HttpTimestamps {
    fn stamp(&self, request: Vec<u8>) -> Result<Vec<u8>, TimestampError> {
        let answer = self.runtime.block_on(self.ask(request));
        let answer = answer.map_err(|error| TimestampError(error.without_url().to_string()))?;
        if answer.len() > MAX_BYTES {
            return Err(TimestampError(format!("its answer exceeds {MAX_BYTES} bytes")));
        }
        Ok(answer)
    }
}
