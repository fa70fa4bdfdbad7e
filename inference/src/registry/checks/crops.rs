//! The batch step of painters: a painter takes several crops at a time only if each comes out as it does alone.

use retouch_catalog::FixMode;
use retouch_pixels::patch::Canvas;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::samples::sample_painting;
use crate::painter::{Painter, Painting, Watch};
use crate::registry::steps::Outcome;

/// A crop in a batch may differ from the same crop alone by this share of its difference from the other crop. Rounding
/// errors grow over many steps; crops that leak into each other differ about as much as two pictures.
const ACCEPTED: f32 = 0.25;

/// Paints two crops that have little in common together and alone. If they differ, the painter runs alone.
pub fn prove(
    name: &str,
    mut painter: Box<dyn Painter>,
    canvas: Canvas,
    mode: FixMode,
) -> Outcome<Box<dyn Painter>> {
    let first = sample_painting(canvas, mode);
    let caption = "a blue square".to_owned();
    let second = Painting {
        rgb: first.rgb.iter().map(|sample| u8::MAX - sample).collect(),
        prompt: caption.clone(),
        caption,
        seed: first.seed + 1,
        ..first.clone()
    };
    match compare(painter.as_mut(), [&first, &second]) {
        Ok(()) => Outcome::passed("two crops come out as each does alone".to_owned(), painter),
        Err(reason) => {
            painter.run_alone();
            warn!(model.name = name, reason, "Model {name} takes one crop at a time: {reason}");
            Outcome::passed(format!("takes one crop at a time: {reason}"), painter)
        }
    }
}

fn compare(painter: &mut dyn Painter, crops: [&Painting; 2]) -> Result<(), String> {
    let together = paint(painter, &crops)?;
    let (first, second) = (paint(painter, &crops[..1])?, paint(painter, &crops[1..])?);
    let alone = [first, second].concat();
    let hole = &crops[0].hole;
    let apart = mean_difference(&alone[0], &alone[1], hole);
    for (alone, found) in alone.iter().zip(&together) {
        let differs = mean_difference(alone, found, hole);
        if differs > 1.0 + ACCEPTED * apart {
            return Err(format!(
                "in a batch, a crop differs from itself alone by {differs:.1} levels, and two crops differ by {apart:.1}"
            ));
        }
    }
    Ok(())
}

/// Returns R, G, B of each crop.
fn paint(painter: &mut dyn Painter, crops: &[&Painting]) -> Result<Vec<Vec<u8>>, String> {
    let cancel = CancellationToken::new();
    let watch = Watch { progress: &|_| {}, heartbeat: &|| {}, cancel: &cancel };
    let watched: Vec<_> = crops.iter().map(|crop| (*crop, watch)).collect();
    let results = painter.paint_together(&watched).into_iter();
    results.map(|one| one.map_err(|error| error.to_string())).collect()
}

/// Returns the mean difference of two crops in the hole, 0 to 255.
fn mean_difference(one: &[u8], other: &[u8], hole: &[bool]) -> f32 {
    let pixels = one.as_chunks::<3>().0.iter().zip(other.as_chunks::<3>().0).zip(hole);
    let inside = pixels.filter(|(_, in_hole)| **in_hole);
    let samples = inside.flat_map(|((a, b), _)| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)));
    let (sum, count) =
        samples.fold((0.0, 0.0_f32), |(sum, count), by| (sum + f32::from(by), count + 1.0));
    sum / count.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::painter::PaintError;
    use retouch_pixels::patch::Fit;

    /// Inverts crops. In a batch, every crop comes out as the first one, if `mixes`.
    struct Inverter {
        mixes: bool,
        runs_alone: bool,
    }

    impl Painter for Inverter {
        fn paint(&mut self, painting: &Painting, _: Watch<'_>) -> Result<Vec<u8>, PaintError> {
            Ok(painting.rgb.iter().map(|sample| u8::MAX - sample).collect())
        }

        fn takes_batches(&self) -> bool {
            !self.runs_alone
        }

        fn run_alone(&mut self) {
            self.runs_alone = true;
        }

        fn paint_together(
            &mut self,
            paintings: &[(&Painting, Watch<'_>)],
        ) -> Vec<Result<Vec<u8>, PaintError>> {
            let of = |place: usize| if self.mixes { paintings[0] } else { paintings[place] };
            let crops: Vec<_> = (0..paintings.len()).map(of).collect();
            crops.into_iter().map(|(painting, watch)| self.paint(painting, watch)).collect()
        }
    }

    #[test]
    fn a_painter_whose_batches_mix_crops_runs_alone() {
        let canvas = Canvas { side: 64, multiple_of: 8, fit: Fit::Keep };
        for mixes in [false, true] {
            let painter = Box::new(Inverter { mixes, runs_alone: false });
            let proven = prove("test", painter, canvas, FixMode::Edit);
            assert!(proven.reasons.is_empty());
            assert_eq!(proven.value.map(|painter| painter.takes_batches()), Some(!mixes));
        }
    }
}
