//! Composites pixels.

/// Composites a pixel over another one: Porter and Duff's "over" with straight alpha, in the encoding of the samples,
/// rounded to the nearest. A pixel that stays transparent becomes 0.
pub(crate) fn over(above: [u8; 4], below: [u8; 4]) -> [u8; 4] {
    match (above[3], below[3]) {
        (0, 0) => [0; 4],
        (u8::MAX, _) | (_, 0) => above,
        (0, _) => below,
        // The divisor is a constant here, so this is many times as fast.
        (alpha, u8::MAX) => {
            let alpha = u32::from(alpha);
            let mix = |above: u8, below: u8| {
                ((u32::from(above) * alpha + u32::from(below) * (255 - alpha) + 127) / 255) as u8
            };
            [mix(above[0], below[0]), mix(above[1], below[1]), mix(above[2], below[2]), u8::MAX]
        }
        (alpha, below_alpha) => {
            let (alpha, below_alpha) = (u32::from(alpha), u32::from(below_alpha));
            // The weights of both, scaled by 255².
            let (weight, rest) = (alpha * 255, below_alpha * (255 - alpha));
            let whole = weight + rest;
            let mix = |above: u8, below: u8| {
                ((u32::from(above) * weight + u32::from(below) * rest + whole / 2) / whole) as u8
            };
            let alpha = ((whole + 127) / 255) as u8;
            [mix(above[0], below[0]), mix(above[1], below[1]), mix(above[2], below[2]), alpha]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alpha_is_composited_as_in_exact_arithmetic() {
        for alpha in 0..=255_u8 {
            for below_alpha in 0..=255_u8 {
                let (above, below) = ([200, 10, 0, alpha], [30, 250, 255, below_alpha]);
                let made = over(above, below);
                let (a, b) = (f64::from(alpha) / 255.0, f64::from(below_alpha) / 255.0);
                let whole = a + b * (1.0 - a);
                assert!((f64::from(made[3]) - whole * 255.0).abs() <= 0.5 + 1e-9);
                for channel in 0..if whole > 0.0 { 3 } else { 0 } {
                    let color =
                        f64::from(above[channel]) * a + f64::from(below[channel]) * b * (1.0 - a);
                    let difference = f64::from(made[channel]) - color / whole;
                    assert!(difference.abs() <= 0.5 + 1e-9, "{above:?} over {below:?}: {made:?}");
                }
            }
        }
    }
}
