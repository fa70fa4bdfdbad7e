//! The weights of Pillow's triangle filter.

/// Fractional bits of a weight, which leave 8 bits for the sample and 2 for headroom.
pub(super) const FRACTION_BITS: u32 = 32 - 8 - 2;

/// One half, to which a sum starts, so that dropping its fraction rounds it.
pub(super) const HALF: i32 = 1 << (FRACTION_BITS - 1);

/// The weights of the input samples that an output sample depends on.
pub(super) struct Taps {
    pub first: usize,
    /// Their weights, in units of `2^-FRACTION_BITS`.
    pub weights: Vec<i32>,
}

/// Returns the weights for each of `out_size` samples made from `size`.
pub(super) fn taps(size: usize, out_size: usize) -> Vec<Taps> {
    let scale = size as f64 / out_size as f64;
    let support = scale.max(1.0);
    let one = f64::from(1 << FRACTION_BITS);
    let of_output = |index: usize| {
        let center = (index as f64 + 0.5) * scale;
        let first = (center - support + 0.5).max(0.0) as usize;
        let end = ((center + support + 0.5) as usize).min(size);
        let triangle = |at: usize| (1.0 - ((at as f64 - center + 0.5) / support).abs()).max(0.0);
        let sum: f64 = (first..end).map(triangle).sum();
        let weights = (first..end).map(|at| (triangle(at) / sum * one + 0.5) as i32).collect();
        Taps { first, weights }
    };
    (0..out_size).map(of_output).collect()
}
