//! The signature in the URL of a file.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::signing::File;
use crate::state::App;

/// The signature of a URL.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Signature {
    /// When the URL expires, in seconds since 1970.
    expires: i64,
    /// The signature that the API put into the URL.
    signature: String,
}

impl Signature {
    /// Returns when the URL of `file` with this signature expires; `None` if it has expired or is not ours.
    pub fn verify(&self, app: &App, file: File) -> Option<DateTime<Utc>> {
        app.signer.verify(file, self.expires, &self.signature)
    }
}
