//! Rounds numbers to bytes, in a way that compilers vectorize.

/// 2²³: a number between this and twice as much has no fraction, and its lowest bits are the integer.
const WHOLE: f32 = 8_388_608.0;

/// Rounds a number of 0..=255 to the nearest byte, and a half to the even one. Any other number gives any byte. A cast
/// would check for such numbers.
#[inline(always)]
pub fn to_byte(value: f32) -> u8 {
    (value + WHOLE).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_the_nearest_bytes() {
        for (value, expected) in [
            (0.0, 0),
            (0.4, 0),
            (0.5, 0),
            (0.6, 1),
            (1.5, 2),
            (127.49, 127),
            (254.6, 255),
            (255.0, 255),
        ] {
            assert_eq!(to_byte(value), expected, "{value}");
        }
    }
}
