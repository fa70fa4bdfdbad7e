//! Factors on the command line.

use retouch_catalog::Factor;

use crate::tools::upscale::Magnification;

/// Parses `2` or `4`, with or without an `x`.
pub fn parse_factor(text: &str) -> Result<Factor, String> {
    number(text).and_then(Factor::from_number).ok_or_else(|| "it must be 2 or 4".to_owned())
}

/// Parses `1`, `2` or `4`, with or without an `x`.
pub fn parse_magnification(text: &str) -> Result<Magnification, String> {
    let magnification = match number(text) {
        Some(1) => Some(Magnification::Same),
        Some(number) => Factor::from_number(number).map(Magnification::By),
        None => None,
    };
    magnification.ok_or_else(|| "it must be 1, 2 or 4".to_owned())
}

fn number(text: &str) -> Option<i16> {
    text.trim_end_matches(['x', 'X']).parse().ok()
}
