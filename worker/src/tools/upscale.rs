//! Upscale: makes a picture two or four times as wide and high, or cleans it at its own size.
//!
//! The model enlarges the picture tile by tile, and the tiles are joined into bands. While one band is computed, the
//! previous one is encoded and its bytes leave through a channel. Peak memory therefore depends on the input and two
//! bands, not on the result.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use ndarray::Array4;
use retouch_catalog::Factor;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::stage::{Stage, StageTimes};
use crate::pixel_pool::PixelPool;
use crate::tools::{Made, Settings, ToolError};
use retouch_inference::manifest::Upscale;
use retouch_inference::output::Values;
use retouch_inference::registry::Announcement;
use retouch_pixels::Picture;
use retouch_pixels::band::{Band, BandTile};
use retouch_pixels::decode::decode;
use retouch_pixels::encode::Channels;
use retouch_pixels::tile::{self, Alpha};

mod encoder;
mod meter;
mod net;
mod plan;

use encoder::Encoder;
use meter::Meter;
pub use meter::Progress;
pub use net::{Net, Upscaler};
use plan::{BAND_BYTES, BandPlan, Plan};

/// Batches in progress at once: while the model runs on one, the tiles of the next batch are prepared and the tiles of
/// the previous one are composed.
const BATCHES_IN_FLIGHT: usize = 2;

/// How much wider and higher a picture becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magnification {
    /// It keeps its size and is cleaned.
    Same,
    By(Factor),
}

impl Magnification {
    /// Returns the number: 1, 2 or 4.
    pub fn get(self) -> u32 {
        match self {
            Self::Same => 1,
            Self::By(factor) => factor.get().into(),
        }
    }
}

impl From<Factor> for Magnification {
    fn from(factor: Factor) -> Self {
        Self::By(factor)
    }
}

/// Returns the peak memory of a run in bytes, without models: the picture while it is decoded, two bands, and the tiles
/// in flight. A GPU that takes eight large tiles at a time needs up to 200 MiB more.
pub fn memory_bytes(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height) * 8 + 2 * BAND_BYTES + (64 << 20)
}

/// Makes a picture as many times as wide and high as `magnification` says. Sends the PNG through `out`, from its first
/// byte to its last.
///
/// Calls `progress` before the first tile and after each. `cancel` takes effect between tiles and while waiting for a
/// thread or the model. If the model runs out of memory, the band starts again with tiles of half the size.
///
/// A gray picture stays gray, the ICC profile is kept, and invisible colors do not bleed into visible edges. The
/// decoder has already rounded 16-bit samples to 8 bits and converted CMYK to RGB.
///
/// # Errors
/// [`ToolError::Canceled`] if the receiver of `out` was dropped; otherwise see [`ToolError`].
#[expect(
    clippy::too_many_arguments,
    reason = "the input, what processes it, two callbacks and the output are separate concerns"
)]
pub async fn upscale(
    input: Bytes,
    magnification: impl Into<Magnification>,
    net: &impl Net,
    pixels: &PixelPool,
    settings: &Settings,
    cancel: &CancellationToken,
    progress: impl Fn(Progress) + Sync,
    out: mpsc::Sender<Bytes>,
) -> Result<Made, ToolError> {
    let factor = magnification.into().get();
    let work = async {
        let limits = settings.limits;
        let (picture, took) = pixels.run_timed(move || decode(&input, &limits)).await?;
        let picture = picture?;
        let mut times = StageTimes::default();
        times.add(Stage::Decode, took);

        let size = (picture.width, picture.height);
        let channels = Channels::of(picture.gray, picture.alpha.is_some());
        let plan =
            Plan::new(size, channels, factor, net.contract(), net.has_few_shapes(), settings)?;
        let run = Run { net, pixels, plan, picture: Arc::new(picture), times: Mutex::new(times) };
        run.execute(progress, out).await
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::Canceled),
        outcome = work => outcome,
    }
}

/// Returns the rows and columns, with padding, of the tiles of an opaque picture of `size` in color.
///
/// # Errors
/// [`ToolError::Model`] if the model cannot make the factor.
pub fn tile_shapes(
    size: (u32, u32),
    factor: Factor,
    contract: &Upscale,
    has_few_shapes: bool,
    settings: &Settings,
) -> Result<Vec<(usize, usize)>, ToolError> {
    let (channels, factor) = (Channels::of(false, false), factor.get().into());
    let plan = Plan::new(size, channels, factor, contract, has_few_shapes, settings)?;
    let tiles = plan.bands_from(0, plan.first_side).into_iter().flat_map(|band| band.tiles);
    Ok(tiles.map(|tile| plan.shape_of(&tile)).collect())
}

struct Run<'a, N> {
    net: &'a N,
    pixels: &'a PixelPool,
    plan: Plan,
    picture: Arc<Picture>,
    times: Mutex<StageTimes>,
}

impl<N: Net> Run<'_, N> {
    /// Computes the bands from top to bottom, encoding each while the next is computed.
    async fn execute(
        &self,
        progress: impl Fn(Progress) + Sync,
        out: mpsc::Sender<Bytes>,
    ) -> Result<Made, ToolError> {
        let Plan { size, tiling, .. } = self.plan;
        let out_size = self.plan.out_size();
        let icc = self.picture.icc.clone();
        let mut png = Encoder::new(out_size, self.plan.channels, icc, self.pixels, out)?;
        let mut side = self.plan.first_side;
        let mut meter = Meter::new(size, self.plan.tiles_from(0, side), progress);
        let (mut top, mut finished, mut above) = (0, Vec::new(), Vec::new());
        while top < size.1 {
            let bands = self.plan.bands_from(top, side);
            let in_flight = self.tiles_in_flight(&bands);
            // One stream for all bands, so that a batch holds tiles of two bands where one ends.
            let tiles: Vec<_> = bands.iter().flat_map(|band| band.tiles.clone()).collect();
            let tiles = stream::iter(tiles).map(|tile| self.tile(tile)).buffered(in_flight);
            let mut tiles = pin!(tiles);
            for plan in &bands {
                let band = self.band(plan, &mut tiles, &mut meter);
                let (band, written) = tokio::join!(band, png.write(std::mem::take(&mut finished)));
                written?;
                let mut band = match band {
                    Err(ToolError::OutOfMemory(reason)) if side > tiling.smallest => {
                        side = self.plan.smaller_side(plan.longest_side());
                        tracing::warn!(
                            reason,
                            "Out of memory; continuing with tiles of {side} pixels"
                        );
                        meter.restart_band(top, self.plan.tiles_from(top, side));
                        break;
                    }
                    band => band?,
                };
                band.fade_in(&above);
                // Keeps the rows that the next band computes too.
                above = band.split_off((plan.y.end - plan.next) * self.plan.layout.factor);
                finished = band.pixels;
                top = plan.next;
                meter.end_band();
            }
        }
        png.write(finished).await?;
        let (copies, encoding) = png.finish().await?;
        let mut stages = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        stages.add(Stage::Encode, encoding);
        Ok(Made { copies, size: out_size, stages })
    }

    /// Takes the tiles of one band from the stream and joins them.
    async fn band(
        &self,
        plan: &BandPlan,
        tiles: &mut (impl Stream<Item = Result<(BandTile, Vec<u8>), ToolError>> + Unpin),
        meter: &mut Meter<impl Fn(Progress) + Sync>,
    ) -> Result<Band, ToolError> {
        let Plan { size, channels, layout, .. } = self.plan;
        let rows = (plan.y.end - plan.y.start) * layout.factor;
        let mut band = Band::new(size.0 * layout.factor, rows, channels.count());
        let mut tiles = tiles.take(plan.tiles.len());
        while let Some((tile, samples)) = tiles.try_next().await? {
            let x = tile.region.x.start * layout.factor..tile.region.x.end * layout.factor;
            let fade = tile.fade * layout.factor;
            let paste = move || {
                band.paste(&samples, x, fade);
                band
            };
            band = self.pixels.run(paste).await?;
            meter.advance(tile.region.width() - tile.fade, plan.next - plan.y.start);
        }
        Ok(band)
    }

    /// Returns how many of these tiles are in progress at once.
    fn tiles_in_flight(&self, bands: &[BandPlan]) -> usize {
        let tiles = bands.iter().flat_map(|band| &band.tiles);
        let batches = tiles.map(|tile| {
            let (rows, columns) = self.plan.shape_of(tile);
            self.net.largest_batch(rows, columns)
        });
        BATCHES_IN_FLIGHT * batches.min().unwrap_or(1)
    }

    /// Computes one tile: cuts it out with its padding, enlarges it, and returns the interleaved samples of its region.
    async fn tile(&self, tile: BandTile) -> Result<(BandTile, Vec<u8>), ToolError> {
        let Plan { layout, tile_size, channels, .. } = self.plan;
        let announcement = self.net.announce();
        let (picture, region) = (self.picture.clone(), tile.region.clone());
        let prepare = move || {
            let cut = tile::cut(&picture, &region, layout.padding, tile_size);
            let colors = cut.colors();
            let alpha = match &cut.alpha {
                Alpha::Mixed(alpha) => Some(cut.gray(alpha)),
                Alpha::Opaque | Alpha::Clear => None,
            };
            (cut, colors, alpha)
        };
        let (cut, colors, alpha) = self.timed(Stage::Preprocess, prepare).await?;
        if matches!(cut.alpha, Alpha::Clear) {
            // The tile is fully transparent, so the model's result would be invisible.
            let pixels = (tile.region.width() * tile.region.height()) as usize;
            let samples = vec![0; pixels * layout.factor.pow(2) as usize * channels.count()];
            return Ok((tile, samples));
        }
        let colors = self.enlarge(announcement, colors).await?;
        let alpha = match alpha {
            Some(alpha) => Some(self.enlarge(None, alpha).await?),
            None => None,
        };
        let region = tile.region.clone();
        let compose = move || {
            let alpha = alpha.as_ref().map(Values::view);
            tile::compose(&colors.view(), alpha.as_deref(), &cut, &region, layout, channels)
        };
        let samples = self.timed(Stage::Postprocess, compose).await??;
        Ok((tile, samples))
    }

    async fn enlarge(
        &self,
        announcement: Option<Announcement>,
        input: Array4<u8>,
    ) -> Result<Values<u8>, ToolError> {
        let inference = self.net.enlarge(announcement, input).await?;
        self.add(Stage::Infer, inference.ran);
        Ok(inference.output.into_pictures()?)
    }

    async fn timed<T: Send + 'static>(
        &self,
        stage: Stage,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let (value, took) = self.pixels.run_timed(work).await?;
        self.add(stage, took);
        Ok(value)
    }

    fn add(&self, stage: Stage, took: Duration) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).add(stage, took);
    }
}
