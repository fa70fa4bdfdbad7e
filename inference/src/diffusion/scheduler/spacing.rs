//! Spreads timesteps and sigmas over the training's timesteps and sigmas, rounded as numpy rounds.

/// Returns `points` values from `last` down to 0.
pub(super) fn linspace(last: f64, points: usize) -> Vec<f64> {
    if points == 1 {
        return vec![0.0];
    }
    let step = last / (points - 1) as f64;
    let mut values: Vec<f64> = (0..points - 1).map(|index| index as f64 * step).collect();
    values.push(last);
    values.reverse();
    values
}

/// Returns `points` multiples of `ratio` in descending order, plus `offset`.
pub(super) fn leading(ratio: usize, points: usize, offset: usize) -> Vec<f64> {
    (0..points).rev().map(|index| (index * ratio + offset) as f64).collect()
}

/// Returns at most `points` values, `ratio` apart, down from `last`, each minus one. For some numbers of steps (61 is
/// the first), numpy's `arange` yields one value too many and diffusers a step at timestep -1, which is omitted here.
pub(super) fn trailing(last: f64, ratio: f64, points: usize) -> Vec<f64> {
    // `arange` adds multiples of the rounded difference between its first two values.
    let step = (last - ratio) - last;
    (0..points)
        .map(|index| (last + index as f64 * step).round_ties_even() - 1.0)
        .take_while(|timestep| *timestep >= 0.0)
        .collect()
}

/// Interpolates a table, clamped to its ends, as `numpy.interp` does.
pub(super) fn interpolate(at: f64, table: &[f64]) -> f64 {
    let last = table.len() - 1;
    let at = at.clamp(0.0, last as f64);
    let below = (at.floor() as usize).min(last);
    let above = (below + 1).min(last);
    (table[above] - table[below]).mul_add(at - below as f64, table[below])
}

/// Returns sigmas from the largest to the smallest, evenly spaced in their seventh roots (equation 5 of
/// arXiv 2206.00364).
pub(super) fn karras(smallest: f64, largest: f64, points: usize) -> Vec<f64> {
    const RHO: f64 = 7.0;
    let (low, high) = (smallest.powf(1.0 / RHO), largest.powf(1.0 / RHO));
    let mut ramp = linspace(1.0, points);
    ramp.reverse();
    ramp.into_iter().map(|part| (high + part * (low - high)).powf(RHO)).collect()
}

/// Returns the training timestep of a sigma, interpolated in the logarithm.
pub(super) fn timestep_of(sigma: f64, sigmas: &[f64]) -> f64 {
    let log = |index: usize| f64::from(numpy_log(sigmas[index] as f32));
    let target = sigma.max(1e-10).ln();
    let not_above = (0..sigmas.len()).take_while(|index| log(*index) <= target).count();
    let low = not_above.saturating_sub(1).min(sigmas.len() - 2);
    let (below, above) = (log(low), log(low + 1));
    let part = ((below - target) / (below - above)).clamp(0.0, 1.0);
    (1.0 - part) * low as f64 + part * (low + 1) as f64
}

/// Computes numpy's 32-bit logarithm (`simd_log_FLOAT`) of a positive number, bit for bit. It is not always the
/// nearest, which decides whether a net with integer timesteps gets 90 or, truncated from 89.99999, 89.
fn numpy_log(value: f32) -> f32 {
    const NUMERATOR: [f32; 6] = [0.025_899_792, 0.380_883_78, 1.480_000_6, 2.112_677_6, 1.0, 0.0];
    const DENOMINATOR: [f32; 6] =
        [0.005_875_095_3, 0.154_647_63, 0.986_494_3, 2.453_006, 2.612_677_6, 1.0];
    let bits = value.to_bits();
    let mut exponent = (bits >> 23) as i32 - 126;
    // In 0.5..1.
    let mut mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    if mantissa <= std::f32::consts::FRAC_1_SQRT_2 {
        mantissa += mantissa;
        exponent -= 1;
    }
    let at = mantissa - 1.0;
    let polynomial = |factors: [f32; 6]| {
        factors.into_iter().reduce(|sum, factor| sum.mul_add(at, factor)).unwrap_or_default()
    };
    let quotient = polynomial(NUMERATOR) / polynomial(DENOMINATOR);
    (exponent as f32).mul_add(std::f32::consts::LN_2, quotient)
}

/// Rounds to 32 bits, because diffusers keeps the value in that precision.
pub(super) fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_spacings_match_diffusers() {
        assert_eq!(linspace(999.0, 4), [999.0, 666.0, 333.0, 0.0]);
        assert_eq!(leading(200, 5, 1), [801.0, 601.0, 401.0, 201.0, 1.0]);
        assert_eq!(trailing(1000.0, 200.0, 5), [999.0, 799.0, 599.0, 399.0, 199.0]);
    }

    #[test]
    fn trailing_never_goes_below_zero() {
        for steps in 1..=1000 {
            let timesteps = trailing(1000.0, 1000.0 / steps as f64, steps);
            assert_eq!(timesteps.len(), steps);
            assert!(timesteps.iter().all(|timestep| *timestep >= 0.0));
        }
    }

    #[test]
    fn karras_sigmas_span_the_range() {
        let sigmas = karras(0.03, 14.6, 5);
        assert!((sigmas[0] - 14.6).abs() < 1e-9 && (sigmas[4] - 0.03).abs() < 1e-9);
        assert!(sigmas.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn logarithms_equal_numpys_even_if_those_are_not_the_nearest() {
        // numpy.log(numpy.float32(x))
        let cases: [(f32, f32); 3] =
            [(0.042_557_515, -3.156_899), (0.724_459_95, -0.322_328_78), (14.008_614, 2.639_672_5)];
        for (value, logarithm) in cases {
            assert_eq!(numpy_log(value).to_bits(), logarithm.to_bits(), "{value}");
            let nearest = f64::from(value).ln() as f32;
            assert_ne!(nearest.to_bits(), logarithm.to_bits(), "{value}");
        }
    }

    #[test]
    fn a_training_sigma_maps_to_its_timestep() {
        let sigmas: Vec<f64> = (0..100).map(|index| 0.03 * 1.06_f64.powi(index)).collect();
        for index in [0, 1, 50, 99] {
            assert!((timestep_of(sigmas[index], &sigmas) - index as f64).abs() < 1e-4);
        }
        assert!(timestep_of(1e-30, &sigmas).abs() < 1e-9);
        assert!((timestep_of(1e9, &sigmas) - 99.0).abs() < 1e-9);
    }
}
