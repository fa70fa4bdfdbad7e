//! Magic Fix: repaints the masked area of a picture as the prompt says.
//!
//! The mask decides which parts of the picture the model sees, and the fix mode decides what happens there. A painter
//! follows the prompt; the upscaler, scaled back to size, restores detail. No sample outside the effective mask
//! changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use retouch_catalog::{Count, FixMode, Reach};
use retouch_prompts::Prompt;
use tokio_util::sync::CancellationToken;

use super::stage::{Stage, Steps};
use super::upscale::Upscaler;
use crate::pixel_pool::PixelPool;
use crate::tools::{Made, Settings, ToolError};
use retouch_inference::manifest::{Safety, Task};
use retouch_inference::painter::{PaintError, Painting};
use retouch_inference::registry::{ModelHandle, ModelIdentity, PaintControl};
use retouch_pixels::Picture;
use retouch_pixels::copies::Copies;
use retouch_pixels::decode::decode;
use retouch_pixels::encode::encode_picture;
use retouch_pixels::mask::{EffectiveMask, Mask, MaskError};
use retouch_pixels::patch::{self, Canvas, Crop, Fit};
use retouch_pixels::tile::{self, Region, TileSize};

mod clarify;

/// Detail is restored at the area's own size, whatever it is: the clarifier works in tiles.
const CLARIFY_CANVAS: Canvas = Canvas { side: u32::MAX, multiple_of: 1, fit: Fit::Keep };

/// Maximum mean difference, in levels, between a crop and what a model made of it, for the model to count as having kept it.
const KEPT_WITHIN: u64 = 2;

/// Returns the largest half width of a stroke over a scratch, in pixels, for a picture with this longest side. Under a
/// scratch the picture is lost, so it is filled in rather than restored.
fn scratch_half_width(longest: u32) -> u16 {
    (longest / 160).clamp(12, 40) as u16
}

#[derive(Clone, Debug)]
pub struct FixRequest {
    pub prompt: Prompt,
    /// The fix mode that the prompt had when the job was accepted.
    pub mode: FixMode,
    /// A PNG.
    pub mask: Bytes,
    /// Whether no pixel outside the mask may change. Otherwise the fix reaches a little further ([`Reach`]).
    pub is_mask_exact: bool,
    /// The random seed: the same seed gives the same picture.
    pub seed: u64,
}

#[derive(Clone, Debug)]
pub struct FixModels {
    /// The model bound to the fix mode.
    pub bound: ModelHandle,
    /// The model bound to `enhance`, which restores areas wider than a scratch; `None` if none is bound.
    pub clarifier: Option<ModelHandle>,
    /// Checks results before anybody sees them; `None` if the operator has not configured it.
    pub safety_checker: Option<ModelHandle>,
}

impl FixModels {
    /// Returns true if scratches and areas go to different models: a fill replaces a face instead of restoring it.
    fn splits_strokes_and_areas(&self, mode: FixMode) -> bool {
        let is_wordless = matches!(self.bound.task(), Task::Exemplar(_) | Task::Fill(_));
        mode == FixMode::Restore && is_wordless && self.clarifier.is_some()
    }
}

#[derive(Clone, Debug)]
pub struct Fixed {
    /// The result: a PNG of the input's upright size.
    pub png: Bytes,
    pub made: Made,
    /// The model that ran, or both if two ran.
    pub model: ModelIdentity,
    /// Whether a demo model ran, which shows the workflow but not the quality.
    pub is_demo: bool,
    /// Whether a net made some of the pixels.
    pub has_net: bool,
}

/// Called with the current stage, the share of the model's work that is done (0 to 1), and the steps or tiles done.
pub type ProgressFn = Arc<dyn Fn(Stage, f32, Option<Count>) + Send + Sync>;

/// Estimates the memory of a run in bytes, without models: the decoded picture, the mask and its distances, a crop as
/// large as the picture, and a fill whose hole covers a quarter of the picture. A larger hole takes up to about 120 MiB more.
pub fn memory_bytes(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height) * (28 + 150 / 4) + (160 << 20)
}

/// Repaints the masked area.
///
/// Calls `on_progress` at each stage and after each step of the model. `cancel` takes effect between stages, between
/// the model's steps, and while waiting for a thread or the model.
///
/// Alpha, the ICC profile and every sample outside the effective mask do not change, but a removal makes things that
/// stand alone in a cutout transparent ([`EffectiveMask::remove_islands`]). A gray picture stays gray unless
/// the prompt may ask for color.
pub async fn magic_fix(
    input: Bytes,
    request: FixRequest,
    models: &FixModels,
    pixels: &PixelPool,
    settings: &Settings,
    cancel: &CancellationToken,
    on_progress: &ProgressFn,
) -> Result<Fixed, ToolError> {
    let Settings { limits, tile_memory_bytes } = *settings;
    // While regions are painted, progress is the share of all regions, so that it goes back to no earlier stage.
    let is_painting = AtomicBool::new(false);
    let mut steps = Steps::new(pixels, cancel, |stage| {
        if stage == Stage::Encode || !is_painting.load(Ordering::Relaxed) {
            on_progress(stage, 0.0, None);
        }
    });
    let mode = request.mode;
    let drawing = request.mask.clone();
    let splits = models.splits_strokes_and_areas(mode);
    let (mut picture, strokes, areas) = steps
        .on_pixels(Stage::Decode, move || {
            let picture = decode(&input, &limits)?;
            let mask = Mask::read(&drawing, (picture.width, picture.height), &limits)?;
            mask.check_visible(picture.alpha.as_deref())?;
            let (strokes, areas) = if splits {
                mask.strokes_and_areas(scratch_half_width(picture.width.max(picture.height)))
            } else {
                (Some(mask), None)
            };
            Ok((picture, strokes, areas))
        })
        .await?;
    let mut assignments = Vec::new();
    let parts = [
        (strokes, Some(&models.bound), mode),
        // Bound to `enhance`, it need not know how to restore.
        (areas, models.clarifier.as_ref(), FixMode::Enhance),
    ];
    for (mask, model, mode) in parts {
        if let (Some(mask), Some(model)) = (mask, model) {
            let model = FixModel::new(model, mode, tile_memory_bytes)?;
            let (planned, assignment) =
                Assignment::plan(&mut steps, mask, model, &request, picture).await?;
            picture = planned;
            assignments.push(assignment);
        }
    }
    if picture.gray && mode.needs_words() {
        // The prompt may ask for a color.
        picture.allow_colors();
    }
    let region_count = assignments.iter().map(|assignment| assignment.regions.len() as u32).sum();
    is_painting.store(true, Ordering::Relaxed);
    on_progress(Stage::Infer, 0.0, None);
    let mut next_index = 0;
    for Assignment { model, mask, regions, may_be_seamless } in &mut assignments {
        let canvas = model.canvas;
        let is_replaced = matches!(model.kind, Kind::Painter) && model.mode != FixMode::Enhance;
        for region in &*regions {
            let (region, owned, remaining) = (region.clone(), picture, mask.take());
            let (owned, remaining, crop) = steps
                .on_pixels(Stage::Preprocess, move || {
                    let crop = patch::crop(&owned, &remaining, &region, canvas, is_replaced)?;
                    Ok((owned, remaining, crop))
                })
                .await?;
            let index = next_index;
            next_index += 1;
            if !crop.hole.contains(&true) {
                (picture, *mask) = (owned, remaining);
                continue;
            }
            let on_progress = Arc::clone(on_progress);
            let progress = move |of_region: Count| {
                let total = of_region.in_part(index, region_count);
                on_progress(Stage::Infer, total.fraction(), Some(total));
            };
            let seed = request.seed.wrapping_add(u64::from(index));
            let (crop, painted) =
                model.paint(&mut steps, crop, &request, seed, Arc::new(progress), cancel).await?;
            let may_be_seamless = *may_be_seamless;
            (picture, *mask) = steps
                .on_pixels(Stage::Postprocess, move || {
                    let (mut picture, mut mask) = (owned, remaining);
                    let is_seamless = may_be_seamless && keeps_known(&crop, &painted);
                    // Most of what is painted or reached beside a scratch is right, so there the patch fades.
                    if is_seamless && mode != FixMode::Restore {
                        mask = mask.solid();
                    }
                    patch::stitch(&mut picture, &mut mask, &crop, painted, !is_seamless)?;
                    Ok((picture, mask))
                })
                .await?;
        }
    }
    if let Some(checker) = &models.safety_checker {
        for region in assignments.iter().flat_map(|assignment| &assignment.regions) {
            picture = check_safety(&mut steps, picture, region.clone(), checker).await?;
        }
    }
    let models: Vec<_> = assignments.into_iter().map(|assignment| assignment.model).collect();
    finish(steps, picture, &models).await
}

/// The part of a fix that one model does.
struct Assignment<'a> {
    model: FixModel<'a>,
    /// The pixels still to change.
    mask: EffectiveMask,
    /// The parts of the picture that the model sees, one after the other.
    regions: Vec<Region>,
    /// Whether the model's output fits its surroundings without fading and color matching, if it kept them.
    may_be_seamless: bool,
}

impl<'a> Assignment<'a> {
    /// Plans the crops, and takes from the picture what needs no model.
    async fn plan<P: Fn(Stage)>(
        steps: &mut Steps<'_, P>,
        mask: Mask,
        model: FixModel<'a>,
        request: &FixRequest,
        mut picture: Picture,
    ) -> Result<(Picture, Self), ToolError> {
        let FixModel { canvas, is_fill, .. } = model;
        let (mode, is_mask_exact) = (request.mode, request.is_mask_exact);
        let size = (picture.width, picture.height);
        let reach = Reach::of(mode).pixels(size);
        let cuts_strokes = !request.mode.needs_words();
        let (picture, mask, regions, may_be_seamless) = steps
            .on_pixels(Stage::Preprocess, move || {
                let mut mask =
                    if is_mask_exact { mask.exact(reach) } else { mask.effective(reach) };
                if mode == FixMode::Remove {
                    mask.remove_islands(&mut picture);
                }
                let regions = patch::plan(&mask, size, canvas, cuts_strokes);
                // Scaling to the model's size and back makes a patch softer than its surroundings, so it must fade.
                let may_be_seamless =
                    is_fill && regions.iter().all(|part| patch::keeps_size(part, canvas));
                Ok((picture, mask, regions, may_be_seamless))
            })
            .await?;
        Ok((picture, Self { model, mask, regions, may_be_seamless }))
    }
}

/// Returns whether a model has kept what it saw around the hole, up to rounding. A net that has shifted colors there has
/// shifted them in the hole, too.
fn keeps_known(crop: &Crop, painted: &[u8]) -> bool {
    let is_hidden = |at: usize| crop.hidden.as_ref().is_some_and(|hidden| hidden[at]);
    let pixels = crop.rgb.as_chunks::<3>().0.iter().zip(painted.as_chunks::<3>().0);
    let known = pixels.enumerate().filter(|(at, _)| !crop.hole[*at] && !is_hidden(*at));
    let (mut difference, mut samples) = (0, 0);
    for (_, (old, new)) in known {
        difference += old.iter().zip(new).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
        samples += 3;
    }
    difference <= KEPT_WITHIN * samples
}

/// Returns the picture if this part of it passes the safety check.
async fn check_safety<P: Fn(Stage)>(
    steps: &mut Steps<'_, P>,
    picture: Picture,
    region: Region,
    checker: &ModelHandle,
) -> Result<Picture, ToolError> {
    let Task::Safety(Safety { threshold, .. }) = checker.task() else {
        return Err(ToolError::Model(format!("{} is not a safety model", checker.identity())));
    };
    let size = (region.width(), region.height());
    let (picture, part) = steps
        .on_pixels(Stage::Postprocess, move || {
            let part = tile::cut(&picture, &region, 0, TileSize::ANY).rgb;
            Ok((picture, part))
        })
        .await?;
    let check = async { Ok(checker.check_safety(part, size).await?) };
    let score = steps.on(Stage::Postprocess, check).await?;
    if score >= *threshold {
        return Err(ToolError::Unsafe(format!("score {score:.2}, limit {threshold}")));
    }
    Ok(picture)
}

async fn finish<P: Fn(Stage)>(
    mut steps: Steps<'_, P>,
    picture: Picture,
    models: &[FixModel<'_>],
) -> Result<Fixed, ToolError> {
    let size = (picture.width, picture.height);
    let (png, copies) = steps
        .on_pixels(Stage::Encode, move || {
            let (png, copies) = rayon::join(|| encode_picture(&picture), || Copies::of(&picture));
            Ok((png?, copies?))
        })
        .await?;
    let identities = models.iter().map(|model| model.handle.identity().clone());
    let model = identities
        .reduce(|one, other| one.and(&other))
        .ok_or_else(|| ToolError::Internal("no model was assigned to the mask".to_owned()))?;
    let is_demo = models.iter().any(|model| model.handle.task().is_demo());
    let has_net = models.iter().any(|model| model.handle.task().has_net());
    let made = Made { copies, size, stages: steps.times };
    Ok(Fixed { png, made, model, is_demo, has_net })
}

/// A model and how to use it for a fix.
struct FixModel<'a> {
    handle: &'a ModelHandle,
    /// The mode in which a painter paints.
    mode: FixMode,
    canvas: Canvas,
    /// Whether it fills holes: most such models copy what is around the hole, so that no fading or color matching is needed.
    is_fill: bool,
    kind: Kind,
}

enum Kind {
    Painter,
    Clarifier { net: Box<Upscaler>, tile_memory_bytes: u64 },
}

impl<'a> FixModel<'a> {
    fn new(
        handle: &'a ModelHandle,
        mode: FixMode,
        tile_memory_bytes: u64,
    ) -> Result<Self, ToolError> {
        match handle.task() {
            Task::Upscale(_) => {
                let net = Box::new(Upscaler::new(handle.clone())?);
                let kind = Kind::Clarifier { net, tile_memory_bytes };
                Ok(Self { handle, mode, canvas: CLARIFY_CANVAS, is_fill: false, kind })
            }
            task => {
                let canvas = task.canvas().ok_or_else(|| {
                    ToolError::Model(format!("{} cannot paint", handle.identity()))
                })?;
                let is_fill = matches!(task, Task::Exemplar(_) | Task::Fill(_));
                Ok(Self { handle, mode, canvas, is_fill, kind: Kind::Painter })
            }
        }
    }

    async fn paint<P: Fn(Stage)>(
        &self,
        steps: &mut Steps<'_, P>,
        crop: Crop,
        request: &FixRequest,
        seed: u64,
        progress: Arc<dyn Fn(Count) + Send + Sync>,
        cancel: &CancellationToken,
    ) -> Result<(Crop, Vec<u8>), ToolError> {
        match &self.kind {
            Kind::Clarifier { net, tile_memory_bytes } => {
                let (net, pixels, memory) = (net.as_ref(), steps.pixels(), *tile_memory_bytes);
                let (crop, clarified, ran) =
                    clarify::clarify(crop, net, pixels, memory, progress.as_ref(), cancel).await?;
                steps.times.add(Stage::Infer, ran);
                Ok((crop, clarified))
            }
            Kind::Painter => {
                let painting = Painting {
                    width: crop.width,
                    height: crop.height,
                    rgb: crop.rgb.clone(),
                    hole: crop.hole.clone(),
                    hidden: crop.hidden.clone(),
                    mode: self.mode,
                    prompt: request.prompt.text().to_owned(),
                    caption: request.prompt.caption(),
                    seed,
                };
                // Dropping this future must also stop the model's thread.
                let stop = cancel.child_token();
                let _stop_on_drop = stop.clone().drop_guard();
                let control = PaintControl { progress, cancel: stop };
                let painting = self.handle.paint(painting, control);
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
            PaintError::Canceled => Self::Canceled,
        }
    }
}
