//! The fields of a form, limited in number and length.

use bytes::Bytes;

use crate::error::ApiError;
use crate::http::base64_file::{Base64Error, Base64File};
use crate::routes::removebg::refusal::Refusal;

/// The maximum length of a text field, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 4096;
/// The maximum length of a name, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 256;
/// The maximum number of fields; there are two dozen parameters.
const MAX_FIELDS: usize = 64;
/// The field that holds a file as text.
pub(super) const BASE64_FIELD: &str = "image_file_b64";

/// The fields, in the order they were sent.
#[derive(Default)]
pub struct Form {
    /// The files sent as `image_file` or `image_file_b64`.
    pub files: Vec<Bytes>,
    /// All other fields that are not empty.
    pub fields: Vec<(String, String)>,
    /// The number of fields, including empty ones.
    count: usize,
    /// The maximum size of the image, in bytes.
    pub(super) max_bytes: usize,
}

impl Form {
    /// Returns an empty form, whose image may have up to `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Counts a field.
    pub(super) fn begin(&mut self, name: &str) -> Result<(), Refusal> {
        self.count += 1;
        if self.count > MAX_FIELDS {
            Err(malformed("it has too many fields"))
        } else if name.len() > MAX_NAME_BYTES {
            Err(malformed("a name is too long"))
        } else {
            Ok(())
        }
    }

    /// Adds a field with a text.
    pub(super) fn add(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        if value.len() > MAX_TEXT_BYTES {
            return Err(too_long(name));
        }
        // Clients send omitted parameters as empty fields.
        if !value.is_empty() {
            self.fields.push((name.to_owned(), value));
        }
        Ok(())
    }

    /// Decodes a part of a file that is sent as text.
    pub(super) fn decode(&self, file: &mut Base64File, text: &[u8]) -> Result<(), Refusal> {
        file.push(text, self.max_bytes).map_err(|error| self.refused(&error))
    }

    /// Adds a file that was sent as text; an empty text is an omitted parameter.
    pub(super) fn add_decoded(&mut self, file: Base64File, is_empty: bool) -> Result<(), Refusal> {
        let file = file.finish(self.max_bytes).map_err(|error| self.refused(&error))?;
        if !file.is_empty() {
            self.files.push(file.into());
        } else if !is_empty {
            let title = format!("{BASE64_FIELD} is empty.");
            return Err(Refusal::of_parameter("invalid_parameter", title));
        }
        Ok(())
    }

    fn refused(&self, error: &Base64Error) -> Refusal {
        match error {
            Base64Error::TooLarge => ApiError::FileTooLarge { max_bytes: self.max_bytes }.into(),
            Base64Error::NotBase64 => {
                let title = format!("{BASE64_FIELD} is not base64.");
                Refusal::of_parameter("invalid_parameter", title)
            }
        }
    }
}

/// Rejects a field by its length.
pub(super) fn too_long(name: &str) -> Refusal {
    Refusal::of_parameter("invalid_parameter", format!("{} is too long.", printable(name)))
}

/// Rejects the body.
pub(super) fn malformed(reason: &str) -> Refusal {
    Refusal::of_parameter("bad_request", format!("The request is malformed: {reason}"))
}

/// Shortens a parameter name that the client chose, and drops control characters, so that a response can repeat it.
pub fn printable(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(40).collect()
}
