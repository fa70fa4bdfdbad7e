//! How far a fix may reach beyond the painted pixels.

use crate::FixMode;

/// The reach of a fix mode, a part of the picture's longer side: removing an object also removes its shadow, and
/// enhanced detail needs room to fade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The longer side is divided by this.
    pub divisor: u32,
    /// The smallest reach, in pixels.
    pub least: u32,
    /// The largest reach, in pixels.
    pub most: u32,
}

impl Reach {
    pub const fn of(mode: FixMode) -> Self {
        let (divisor, least, most) = match mode {
            FixMode::Remove => (80, 8, 24),
            FixMode::Edit | FixMode::Add => (200, 4, 8),
            FixMode::Restore => (400, 2, 6),
            FixMode::Enhance => (100, 6, 16),
        };
        Self { divisor, least, most }
    }

    /// Returns the reach in a picture of this size, in pixels: `longer side / divisor`, between `least` and `most`, but
    /// at most an eighth of the shorter side and at least 1, so that a tiny picture keeps some unmasked pixels.
    pub fn pixels(self, (width, height): (u32, u32)) -> u16 {
        let Self { divisor, least, most } = self;
        let (longer, shorter) = (width.max(height), width.min(height));
        (longer / divisor).clamp(least, most).min((shorter / 8).max(1)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page computes the same numbers; `ui/src/features/mask/reach.test.ts` has the same rows.
    #[test]
    fn the_reach_follows_the_longer_side_within_limits() {
        for (mode, size, pixels) in [
            (FixMode::Remove, (640, 480), 8),
            (FixMode::Remove, (1200, 1600), 20),
            (FixMode::Remove, (6000, 4000), 24),
            (FixMode::Edit, (640, 480), 4),
            (FixMode::Add, (1500, 1000), 7),
            (FixMode::Edit, (6000, 4000), 8),
            (FixMode::Restore, (1600, 900), 4),
            (FixMode::Enhance, (1024, 1024), 10),
            (FixMode::Remove, (400, 40), 5),
            (FixMode::Enhance, (5, 7), 1),
            (FixMode::Remove, (1, 1), 1),
        ] {
            assert_eq!(Reach::of(mode).pixels(size), pixels, "{mode} {size:?}");
        }
    }
}
