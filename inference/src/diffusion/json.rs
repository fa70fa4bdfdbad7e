//! Reads JSON as Python writes it.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::error::DiffusionError;

/// Parses JSON that may contain Python's number constants `NaN`, `Infinity` and `-Infinity`; for example,
/// `lambda_min_clipped` is minus infinity by default. They become strings of the same spelling.
///
/// # Errors
/// If the text is not JSON apart from these constants.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&quote_constants(text))
}

/// Reads a file that contains one JSON object.
///
/// # Errors
/// [`DiffusionError::File`] if it is missing, is not JSON, or contains another type.
pub fn read_object(path: &Path) -> Result<Map<String, Value>, DiffusionError> {
    match read(path)? {
        Value::Object(object) => Ok(object),
        _ => Err(DiffusionError::file(path, "not a JSON object")),
    }
}

/// Reads a file that contains any JSON.
///
/// # Errors
/// [`DiffusionError::File`] if it is missing or is not JSON.
pub fn read(path: &Path) -> Result<Value, DiffusionError> {
    let text = fs::read_to_string(path).map_err(|error| DiffusionError::file(path, &error))?;
    parse(&text).map_err(|error| DiffusionError::file(path, &error))
}

fn quote_constants(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut in_string, mut escaped) = (text, false, false);
    while let Some(character) = rest.chars().next() {
        let constant = ["-Infinity", "Infinity", "NaN"].into_iter().find(|c| rest.starts_with(c));
        if let (false, Some(constant)) = (in_string, constant) {
            out.push('"');
            out.push_str(constant);
            out.push('"');
            rest = &rest[constant.len()..];
            continue;
        }
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else {
            in_string = character == '"';
        }
        out.push(character);
        rest = &rest[character.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_number_constants_become_strings() {
        let value =
            parse(r#"{"a": -Infinity, "b": [NaN, Infinity], "c": "NaN \" Infinity"}"#).unwrap();
        assert_eq!(value["a"], "-Infinity");
        assert_eq!(value["b"][0], "NaN");
        assert_eq!(value["b"][1], "Infinity");
        assert_eq!(value["c"], "NaN \" Infinity");
    }
}
