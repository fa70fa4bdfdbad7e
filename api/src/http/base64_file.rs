//! Decodes a base64 file piece by piece, as it arrives, so that its text is never in memory as a whole.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Base64 with or without padding: clients differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// The length of text that is decoded at a time, in bytes; a multiple of 4.
const PIECE: usize = 8192;
/// Maximum length of a data URL's prefix, in bytes.
const MAX_PREFIX: usize = 200;

/// A file that is being decoded.
#[derive(Default)]
pub struct Base64File {
    /// Text that is not decoded yet, without whitespace.
    text: Vec<u8>,
    file: Vec<u8>,
    /// Whether the text can no longer begin with the prefix of a data URL.
    is_past_prefix: bool,
    is_padded: bool,
}

/// Why a file was rejected.
#[derive(Debug, PartialEq, Eq)]
pub enum Base64Error {
    NotBase64,
    TooLarge,
}

impl Base64File {
    /// Decodes more text. The file may have up to `max_bytes`.
    pub fn push(&mut self, text: &[u8], max_bytes: usize) -> Result<(), Base64Error> {
        for piece in text.chunks(PIECE) {
            self.text.extend(piece.iter().filter(|byte| !byte.is_ascii_whitespace()));
            if self.has_prefix()? {
                continue;
            }
            let whole = self.text.len() / 4 * 4;
            if whole >= PIECE {
                self.decode(whole, max_bytes)?;
            }
        }
        Ok(())
    }

    /// Decodes the rest and returns the file.
    pub fn finish(mut self, max_bytes: usize) -> Result<Vec<u8>, Base64Error> {
        if self.has_prefix()? {
            return Err(Base64Error::NotBase64);
        }
        self.decode(self.text.len(), max_bytes)?;
        Ok(self.file)
    }

    /// Drops the prefix of a data URL, such as `data:image/png;base64,`. Returns true if it is not complete yet.
    fn has_prefix(&mut self) -> Result<bool, Base64Error> {
        const START: &[u8] = b"data:";
        if self.is_past_prefix {
            return Ok(false);
        }
        let start = &self.text[..self.text.len().min(START.len())];
        if !START.starts_with(start) {
            self.is_past_prefix = true;
            return Ok(false);
        }
        let end = self.text.iter().take(MAX_PREFIX).position(|byte| *byte == b',');
        match end {
            Some(end) if self.text[..end].ends_with(b";base64") => {
                self.text.drain(..=end);
                self.is_past_prefix = true;
                Ok(false)
            }
            None if self.text.len() < MAX_PREFIX => Ok(!self.text.is_empty()),
            _ => Err(Base64Error::NotBase64),
        }
    }

    fn decode(&mut self, length: usize, max_bytes: usize) -> Result<(), Base64Error> {
        let text = &self.text[..length];
        // Nothing may follow the padding.
        if self.is_padded && !text.is_empty() {
            return Err(Base64Error::NotBase64);
        }
        self.is_padded = text.last() == Some(&b'=');
        BASE64.decode_vec(text, &mut self.file).map_err(|_| Base64Error::NotBase64)?;
        self.text.drain(..length);
        if self.file.len() > max_bytes { Err(Base64Error::TooLarge) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// Decodes `text` in pieces of `size` bytes.
    fn decoded(text: &str, size: usize, max_bytes: usize) -> Result<Vec<u8>, Base64Error> {
        let mut file = Base64File::default();
        for piece in text.as_bytes().chunks(size) {
            file.push(piece, max_bytes)?;
        }
        file.finish(max_bytes)
    }

    #[test]
    fn padding_line_breaks_and_a_data_prefix_are_accepted_in_pieces_of_any_size() {
        let file: Vec<u8> = (0..50_000_u32).map(|i| (i * i % 251) as u8).collect();
        let encoded = STANDARD.encode(&file);
        let lines: Vec<_> = encoded.as_bytes().chunks(76).map(String::from_utf8_lossy).collect();
        for text in [
            encoded.clone(),
            encoded.trim_end_matches('=').to_owned(),
            lines.join("\r\n"),
            format!("data:image/png;base64,{encoded}"),
        ] {
            for size in [1, 7, 4096, 1 << 20] {
                assert_eq!(decoded(&text, size, file.len()).as_ref(), Ok(&file), "{size}");
            }
            assert_eq!(decoded(&text, 4096, file.len() - 1), Err(Base64Error::TooLarge));
        }
        assert_eq!(decoded("", 1, 5), Ok(Vec::new()));
    }

    #[test]
    fn anything_else_is_rejected() {
        let long = format!("{}=", "a".repeat(PIECE - 1));
        for text in
            ["***", "data:", "data:image/png,aGk=", "data;base64,aGk=", &format!("{long}{long}")]
        {
            assert_eq!(decoded(text, 4096, 1 << 20), Err(Base64Error::NotBase64), "{text:.20}");
        }
    }
}
