//! The picture that a pipeline sees as its reference: the crop, which may hide what is in the hole.

use retouch_pixels::fill::{Damaged, FillError, Settings, fill};

use super::{PaintError, Painting, Watch};
use crate::manifest::ReferenceHole;

/// The sample of mid-gray.
const GRAY: u8 = 128;

/// Returns R, G, B of the reference picture; `None` if it is the crop itself.
///
/// # Errors
/// [`PaintError::Canceled`] if the painting is canceled while the hole is being filled.
pub(super) fn reference_image(
    painting: &Painting,
    hole: ReferenceHole,
    watch: Watch<'_>,
) -> Result<Option<Vec<u8>>, PaintError> {
    match hole {
        ReferenceHole::Keep => Ok(None),
        ReferenceHole::Gray => Ok(Some(grayed(painting))),
        ReferenceHole::Fill => filled(painting, watch).map(Some),
    }
}

fn grayed(painting: &Painting) -> Vec<u8> {
    let pixels = painting.rgb.as_chunks::<3>().0.iter().zip(&painting.hole);
    pixels.flat_map(|(pixel, in_hole)| if *in_hole { [GRAY; 3] } else { *pixel }).collect()
}

fn filled(painting: &Painting, watch: Watch<'_>) -> Result<Vec<u8>, PaintError> {
    let Painting { width, height, rgb, hole, hidden, seed, .. } = painting;
    let damaged = Damaged { rgb, width: *width, height: *height, hole, hidden: hidden.as_deref() };
    let settings = Settings { seed: *seed, ..Settings::default() };
    match fill(&damaged, &settings, &|| watch.is_canceled()) {
        Ok(filled) => Ok(filled),
        // Without surroundings there is nothing to continue.
        Err(FillError::NothingToCopy) => Ok(grayed(painting)),
        Err(FillError::Canceled) => Err(PaintError::Canceled),
        Err(error @ FillError::SizeMismatch { .. }) => Err(PaintError::failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use retouch_catalog::FixMode;
    use tokio_util::sync::CancellationToken;

    use super::*;

    const SIDE: usize = 32;
    const RED: [u8; 3] = [250, 10, 10];
    const BLUE: [u8; 3] = [10, 10, 200];

    /// A red square on blue; the hole is the square.
    fn painting() -> Painting {
        let is_square =
            |at: &usize| (12..20).contains(&(at / SIDE)) && (12..20).contains(&(at % SIDE));
        let pixels = 0..SIDE * SIDE;
        Painting {
            width: SIDE as u32,
            height: SIDE as u32,
            rgb: pixels.clone().flat_map(|at| if is_square(&at) { RED } else { BLUE }).collect(),
            hole: pixels.map(|at| is_square(&at)).collect(),
            hidden: None,
            mode: FixMode::Remove,
            prompt: String::new(),
            caption: String::new(),
            seed: 1,
        }
    }

    fn reference(
        painting: &Painting,
        hole: ReferenceHole,
        cancel: &CancellationToken,
    ) -> Result<Option<Vec<u8>>, PaintError> {
        reference_image(painting, hole, Watch { progress: &|_| {}, heartbeat: &|| {}, cancel })
    }

    /// Returns the color in the middle of the hole, after checking that nothing else changed.
    fn center(painting: &Painting, hole: ReferenceHole) -> [u8; 3] {
        let made = reference(painting, hole, &CancellationToken::new()).unwrap();
        let made = made.unwrap_or_else(|| painting.rgb.clone());
        let (made, before) = (made.as_chunks::<3>().0, painting.rgb.as_chunks::<3>().0);
        for (at, in_hole) in painting.hole.iter().enumerate() {
            assert!(*in_hole || made[at] == before[at], "pixel {at} outside the hole changed");
        }
        made[SIDE * SIDE / 2 + SIDE / 2]
    }

    #[test]
    fn the_hole_is_kept_gray_or_filled_from_its_surroundings() {
        assert_eq!(center(&painting(), ReferenceHole::Keep), RED);
        assert_eq!(center(&painting(), ReferenceHole::Gray), [128; 3]);
        assert_eq!(center(&painting(), ReferenceHole::Fill), BLUE);
    }

    #[test]
    fn a_hole_without_surroundings_is_gray() {
        let everything = Painting { hole: vec![true; SIDE * SIDE], ..painting() };
        assert_eq!(center(&everything, ReferenceHole::Fill), [128; 3]);
    }

    #[test]
    fn a_canceled_painting_is_not_filled() {
        let canceled = CancellationToken::new();
        canceled.cancel();
        let ended = reference(&painting(), ReferenceHole::Fill, &canceled);
        assert!(matches!(ended, Err(PaintError::Canceled)));
    }
}
