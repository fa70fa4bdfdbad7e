//! Finds the part of a row that is not transparent. Much of a cutout is transparent, and skipping it costs nothing.

use std::ops::Range;

/// The number of bytes examined together; a multiple of all pixels' sizes in bytes.
const RUN: usize = 192;

/// Returns the part of a row outside which all bytes are zero, up to [`RUN`] bytes longer at each end.
pub(crate) fn span(row: &[u8]) -> Range<usize> {
    // No early exit, so that it compiles to vector instructions.
    let is_zero = |run: &&[u8]| run.iter().fold(0, |any, byte| any | byte) == 0;
    let start = row.chunks(RUN).take_while(is_zero).count() * RUN;
    if start >= row.len() {
        return 0..0;
    }
    start..row.len() - row.rchunks(RUN).take_while(is_zero).count() * RUN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_leaves_out_zeros_only() {
        assert_eq!(span(&[0; 1000]), 0..0);
        assert_eq!(span(&[]), 0..0);
        for (length, at) in [(1, 0), (64, 63), (65, 64), (1000, 0), (1000, 500), (1000, 999)] {
            let mut row = vec![0; length];
            row[at] = 1;
            let span = span(&row);
            assert!(span.contains(&at) && span.len() <= 2 * RUN, "{span:?} of {length}");
        }
    }
}
