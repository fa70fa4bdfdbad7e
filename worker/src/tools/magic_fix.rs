//! Magic Fix: a picture, a mask and words in, the picture with the masked area repainted out.
//!
//! The mask says which parts of the picture a model gets to see, the prompt's mode says what it does there,
//! and nothing outside of the effective mask changes by a single bit. What follows the words is a painter;
//! what makes the area clearer is the upscaler, brought back to size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use retouch_catalog::{Count, FixMode};
use retouch_core::magic_fix::Prompt;
use tokio_util::sync::CancellationToken;

use super::stage::{Stage, StageTimes, Steps};
use super::upscale::Upscaler;
use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use retouch_inference::manifest::{Safety, Task};
use retouch_inference::painter::{PaintError, Painting};
use retouch_inference::registry::{Follow, ModelHandle, ModelIdentity};
use retouch_pixels::decode::decode;
use retouch_pixels::mask::{Mask, MaskError, Reach};
use retouch_pixels::patch::{self, Canvas, Crop, Fit};
use retouch_pixels::thumbnail::encode_with_thumbnail;
use retouch_pixels::tile::{self, Region};
use retouch_pixels::{Limits, Picture};

mod clarify;

/// An area is made clearer at its own size, however large: tiles bound what the model is given.
const CLARIFY_CANVAS: Canvas = Canvas { side: u32::MAX, multiple_of: 1, fit: Fit::Keep };

/// Strokes up to this half width, in pixels, are over scratches: what is below them is gone, and is filled
/// in. On a large picture the same stroke has more pixels.
fn scratch(longest: u32) -> u16 {
    (longest / 160).clamp(12, 40) as u16
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The words.
    pub prompt: Prompt,
    /// What is to happen; what the words meant when they were accepted.
    pub mode: FixMode,
    /// Where to work: a PNG.
    pub mask: Bytes,
    /// Where randomness begins: the same seed gives the same picture.
    pub seed: u64,
}

/// The models that may be needed for one run.
#[derive(Clone, Debug)]
pub struct Engines {
    /// What is bound to the prompt's mode.
    pub bound: ModelHandle,
    /// What restores areas that are no scratches, if there is something: what is bound to `enhance`.
    pub clarifier: Option<ModelHandle>,
    /// What judges results before anybody sees them, if the operator wants that.
    pub judge: Option<ModelHandle>,
}

impl Engines {
    /// Whether scratches are one model's work and areas another's: a fill does not restore a face, it puts something
    /// else in its place.
    fn restores_by_two(&self, mode: FixMode) -> bool {
        let is_wordless = matches!(self.bound.task(), Task::Exemplar(_) | Task::Fill(_));
        mode == FixMode::Restore && is_wordless && self.clarifier.is_some()
    }
}

/// A picture with a part of it repainted.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The result: a PNG of the input's upright size.
    pub png: Bytes,
    /// The same at most 512 pixels a side.
    pub thumbnail: Bytes,
    /// The result's width in pixels.
    pub width: u32,
    /// The result's height in pixels.
    pub height: u32,
    /// How long each stage took.
    pub stages: StageTimes,
    /// The model that ran, or the two that did.
    pub model: ModelIdentity,
    /// Whether a model only shows that the way works.
    pub is_demo: bool,
}

/// Hears at which stage a run is, how much of the model's work is done, from 0 to 1, and in what that is counted.
pub type Tell = Arc<dyn Fn(Stage, f32, Option<Count>) + Send + Sync>;

/// What a run takes, in bytes, models not counted: the decoded picture, the mask and what is computed of it, a
/// crop as large as the picture, and the search of a fill whose hole is a quarter of the picture. Larger
/// holes take more, up to 150 bytes for each of their pixels.
pub fn memory_bytes(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height) * (28 + 150 / 4) + (160 << 20)
}

/// Repaints what the mask covers.
///
/// `tell` is told each stage, and within the model's how much of it is done. Between stages, between the
/// model's steps, and while waiting for a thread or the model, `cancel` ends the work.
///
/// Gray stays gray, alpha and profile stay, and so does every sample outside of the effective mask.
///
/// # Errors
/// See [`ToolError`].
pub async fn magic_fix(
    input: Bytes,
    wish: Wish,
    engines: &Engines,
    pixels: &PixelPool,
    limits: &Limits,
    cancel: &CancellationToken,
    tell: &Tell,
) -> Result<Fixed, ToolError> {
    let limits = *limits;
    // Of several parts the later ones are no step back: what is told of them is how much of all is done.
    let is_under_way = AtomicBool::new(false);
    let mut steps = Steps::new(pixels, cancel, |stage| {
        if stage == Stage::Encode || !is_under_way.load(Ordering::Relaxed) {
            tell(stage, 0.0, None);
        }
    });
    let mode = wish.mode;
    let drawing = wish.mask.clone();
    let tells_apart = engines.restores_by_two(mode);
    let (mut picture, strokes, areas) = steps
        .on_pixels(Stage::Decode, move || {
            let picture = decode(&input, &limits)?;
            let mask = Mask::read(&drawing, (picture.width, picture.height))?;
            let (strokes, areas) = if tells_apart {
                mask.strokes_and_areas(scratch(picture.width.max(picture.height)))
            } else {
                (Some(mask), None)
            };
            Ok((picture, strokes, areas))
        })
        .await?;
    let size = (picture.width, picture.height);
    let mut shares = Vec::new();
    for (mask, model) in [(strokes, Some(&engines.bound)), (areas, engines.clarifier.as_ref())] {
        if let (Some(mask), Some(model)) = (mask, model) {
            shares.push(Share::plan(&mut steps, mask, Engine::of(model)?, mode, size).await?);
        }
    }
    if picture.gray && picture.icc.is_none() && mode.needs_words() {
        // Somebody who asks for red gets red. A profile of gray samples could not describe it.
        picture.gray = false;
    }
    let of = shares.iter().map(|share| share.regions.len() as u32).sum();
    is_under_way.store(true, Ordering::Relaxed);
    tell(Stage::Infer, 0.0, None);
    let mut index = 0;
    for Share { engine, reach, regions, is_exact } in &mut shares {
        let canvas = engine.canvas;
        for region in &*regions {
            let (region, owned, left) = (region.clone(), picture, reach.take());
            let (owned, left, crop) = steps
                .on_pixels(Stage::Preprocess, move || {
                    let crop = patch::take(&owned, &left, &region, canvas)?;
                    Ok((owned, left, crop))
                })
                .await?;
            let part = index;
            index += 1;
            if !crop.hole.contains(&true) {
                (picture, *reach) = (owned, left);
                continue;
            }
            let tell = Arc::clone(tell);
            let progress = move |of_part: Count| {
                let all = of_part.in_part(part, of);
                tell(Stage::Infer, all.fraction(), Some(all));
            };
            let seed = wish.seed.wrapping_add(u64::from(part));
            let (crop, new) =
                engine.paint(&mut steps, crop, &wish, seed, Arc::new(progress), cancel).await?;
            let fades = !*is_exact;
            (picture, *reach) = steps
                .on_pixels(Stage::Postprocess, move || {
                    let (mut picture, mut reach) = (owned, left);
                    patch::stitch(&mut picture, &mut reach, &crop, new, fades)?;
                    Ok((picture, reach))
                })
                .await?;
        }
    }
    if let Some(judge) = &engines.judge {
        for region in shares.iter().flat_map(|share| &share.regions) {
            picture = judged(&steps, picture, region, judge).await?;
        }
    }
    let engines: Vec<_> = shares.into_iter().map(|share| share.engine).collect();
    finish(steps, picture, &engines).await
}

/// What one engine does of a run.
struct Share<'a> {
    engine: Engine<'a>,
    /// What is left to change.
    reach: Reach,
    /// The parts of the picture that the engine gets to see, one after the other.
    regions: Vec<Region>,
    /// Whether what comes back fits without fading.
    is_exact: bool,
}

impl<'a> Share<'a> {
    async fn plan<P: Fn(Stage)>(
        steps: &mut Steps<'_, P>,
        mask: Mask,
        engine: Engine<'a>,
        mode: FixMode,
        size: (u32, u32),
    ) -> Result<Self, ToolError> {
        let Engine { canvas, keeps_known, .. } = engine;
        let (reach, regions, is_exact) = steps
            .on_pixels(Stage::Preprocess, move || {
                let reach = mask.reach(growth(mode, size));
                let regions = patch::plan(&reach, size, canvas);
                // What was scaled on its way to the model and back is softer than its surroundings: it fades.
                let is_exact =
                    keeps_known && regions.iter().all(|part| patch::keeps_size(part, canvas));
                let reach = if is_exact { reach.solid() } else { reach };
                Ok((reach, regions, is_exact))
            })
            .await?;
        Ok(Self { engine, reach, regions, is_exact })
    }
}

/// The picture, if what is in this part of it may be shown.
async fn judged<P: Fn(Stage)>(
    steps: &Steps<'_, P>,
    picture: Picture,
    region: &Region,
    judge: &ModelHandle,
) -> Result<Picture, ToolError> {
    let Task::Safety(Safety { threshold, .. }) = judge.task() else {
        return Err(ToolError::Model(format!("{} does not judge", judge.identity())));
    };
    let part = tile::cut(&picture, region, 0, 1);
    let size = (region.width(), region.height());
    let score =
        steps.on(Stage::Postprocess, async { Ok(judge.judge(part.rgb, size).await?) }).await?;
    if score >= *threshold {
        return Err(ToolError::Unsafe(format!("{score:.2}, {threshold} is the limit")));
    }
    Ok(picture)
}

async fn finish<P: Fn(Stage)>(
    mut steps: Steps<'_, P>,
    picture: Picture,
    engines: &[Engine<'_>],
) -> Result<Fixed, ToolError> {
    let (width, height) = (picture.width, picture.height);
    let (png, thumbnail) =
        steps.on_pixels(Stage::Encode, move || Ok(encode_with_thumbnail(&picture)?)).await?;
    let models = engines.iter().map(|engine| engine.model.identity().clone());
    let model = models
        .reduce(|one, other| one.and(&other))
        .ok_or_else(|| ToolError::Model("no model had anything to do".to_owned()))?;
    let is_demo = engines.iter().any(|engine| engine.model.task().is_demo());
    Ok(Fixed { png, thumbnail, width, height, stages: steps.times, model, is_demo })
}

/// How far around the strokes a patch may reach, in pixels: shadows go with what casts them, and what only
/// becomes clearer needs room to fade.
fn growth(mode: FixMode, size: (u32, u32)) -> u16 {
    let (longest, shortest) = (size.0.max(size.1), size.0.min(size.1));
    // Of a tiny picture something must be left to go on from.
    let part = |share: u32, least: u32, most: u32| {
        (longest / share).clamp(least, most).min((shortest / 8).max(1)) as u16
    };
    match mode {
        FixMode::Remove => part(80, 8, 24),
        FixMode::Edit | FixMode::Add => part(200, 4, 8),
        FixMode::Restore => part(400, 2, 6),
        FixMode::Enhance => part(100, 6, 16),
    }
}

/// The model that one run uses.
struct Engine<'a> {
    model: &'a ModelHandle,
    canvas: Canvas,
    /// Whether what it gives back outside of the hole is what it was given, so that nothing has to fade and
    /// no colour has to be matched.
    keeps_known: bool,
    kind: Kind,
}

enum Kind {
    Painter,
    Clarifier(Box<Upscaler>),
}

impl<'a> Engine<'a> {
    fn of(model: &'a ModelHandle) -> Result<Self, ToolError> {
        match model.task() {
            Task::Upscale(_) => {
                let kind = Kind::Clarifier(Box::new(Upscaler::new(model.clone())?));
                Ok(Self { model, canvas: CLARIFY_CANVAS, keeps_known: false, kind })
            }
            task => {
                let canvas = task.canvas().ok_or_else(|| {
                    ToolError::Model(format!("{} does not paint", model.identity()))
                })?;
                let keeps_known = matches!(task, Task::Exemplar(_) | Task::Fill(_));
                Ok(Self { model, canvas, keeps_known, kind: Kind::Painter })
            }
        }
    }

    async fn paint<P: Fn(Stage)>(
        &self,
        steps: &mut Steps<'_, P>,
        crop: Crop,
        wish: &Wish,
        seed: u64,
        progress: Arc<dyn Fn(Count) + Send + Sync>,
        cancel: &CancellationToken,
    ) -> Result<(Crop, Vec<u8>), ToolError> {
        match &self.kind {
            Kind::Clarifier(net) => {
                let (crop, made, ran) =
                    clarify::clarify(crop, net.as_ref(), steps.pixels(), progress.as_ref(), cancel)
                        .await?;
                steps.times.add(Stage::Infer, ran);
                Ok((crop, made))
            }
            Kind::Painter => {
                let painting = Painting {
                    width: crop.width,
                    height: crop.height,
                    rgb: crop.rgb.clone(),
                    hole: crop.hole.clone(),
                    mode: wish.mode,
                    prompt: wish.prompt.text().to_owned(),
                    caption: wish.prompt.caption(),
                    seed,
                };
                // The thread goes on when nobody waits any more: it is told to stop as well.
                let stop = cancel.child_token();
                let _stopped = stop.clone().drop_guard();
                let follow = Follow { progress, cancel: stop };
                let painting = self.model.paint(painting, follow);
                let painted = steps.on(Stage::Infer, async { Ok(painting.await?) }).await?;
                steps.times.add(Stage::Infer, painted.ran);
                Ok((crop, painted.rgb))
            }
        }
    }
}

impl From<PaintError> for ToolError {
    fn from(error: PaintError) -> Self {
        match error {
            PaintError::Session(error) => error.into(),
            PaintError::NothingLeft => MaskError::CoversEverything.into(),
            PaintError::Cancelled => Self::Canceled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_reaches_further_for_what_goes_away() {
        assert_eq!(growth(FixMode::Remove, (1000, 700)), 12);
        assert_eq!(growth(FixMode::Remove, (4000, 6000)), 24);
        assert_eq!(growth(FixMode::Edit, (64, 64)), 4);
        assert_eq!(growth(FixMode::Restore, (64, 64)), 2);
        assert_eq!(growth(FixMode::Enhance, (6000, 4000)), 16);
        assert_eq!(growth(FixMode::Remove, (1, 1)), 1);
    }
}
