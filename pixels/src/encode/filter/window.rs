//! A part of a row of a PNG beside its neighbors.

/// The filters by their number (PNG, 9.2): none, sub, up, average, Paeth.
pub(super) const KINDS: usize = 5;

/// Bytes of a row and their neighbors, in four slices of the same length.
#[derive(Clone, Copy)]
pub(super) struct Window<'a> {
    pub here: &'a [u8],
    pub left: &'a [u8],
    pub above: &'a [u8],
    /// To the left of those above.
    pub corner: &'a [u8],
}

impl Window<'_> {
    /// Returns a byte as the filter `kind` returns it.
    pub fn filtered(self, kind: usize, at: usize) -> u8 {
        let (left, above, corner) = (self.left[at], self.above[at], self.corner[at]);
        let prediction = match kind {
            0 => 0,
            1 => left,
            2 => above,
            3 => u8::midpoint(left, above),
            _ => paeth(left, above, corner),
        };
        self.here[at].wrapping_sub(prediction)
    }
}

/// The neighbor that is closest to `left + above - corner`.
fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(above), i16::from(corner));
    let (of_left, of_above, of_corner) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    if of_left <= of_above && of_left <= of_corner {
        left
    } else if of_above <= of_corner {
        above
    } else {
        corner
    }
}
