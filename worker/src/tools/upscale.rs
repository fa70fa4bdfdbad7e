//! Upscale: makes a picture two or four times as wide and high, or cleans it at its own size.
//!
//! The model enlarges the picture tile by tile, and the tiles are joined into bands. While one band is computed, the
//! previous one is encoded and its bytes leave through a channel. Peak memory therefore depends on the input and two
//! bands, not on the result.

use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use ndarray::Array4;
use retouch_catalog::{Count, CountUnit, Factor};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::stage::{Stage, StageTimes};
use crate::pixel_pool::PixelPool;
use crate::tools::{Settings, ToolError};
use retouch_inference::manifest::{Task, Tiling, TilingMode, Upscale};
use retouch_inference::registry::{Announcement, Inference, ModelHandle, ModelIdentity};
use retouch_inference::session::SessionError;
use retouch_pixels::Picture;
use retouch_pixels::band::{self, Band, BandTile};
use retouch_pixels::copies::EncodedCopies;
use retouch_pixels::decode::decode;
use retouch_pixels::encode::Channels;
use retouch_pixels::tile::{self, Alpha, OutputLayout, TileSize};

mod encoder;

use encoder::Encoder;

/// Batches in progress at once: while the model runs on one, the tiles of the next are prepared and those of the previous
/// one are composed.
const BATCHES_IN_FLIGHT: usize = 2;

/// The largest band of the result, in bytes.
const BAND_BYTES: u64 = 48 << 20;

/// How much wider and higher a picture becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magnification {
    /// It keeps its size and is cleaned.
    Same,
    /// By a factor.
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

/// An upscaling net: a loaded model, or a stand-in in tests.
pub trait Net: Sync {
    /// Returns the model's contract.
    fn contract(&self) -> &Upscale;

    /// Announces a tile that is being prepared, so that a batch that is filling waits for it.
    fn announce(&self) -> Option<Announcement> {
        None
    }

    /// Returns whether tiles should have few shapes.
    fn has_few_shapes(&self) -> bool {
        false
    }

    /// Returns how many tiles of `rows` and `columns`, with padding, one run takes at most.
    fn largest_batch(&self, _rows: usize, _columns: usize) -> usize {
        1
    }

    /// Runs the net on bytes `[1, height, width, 3]`.
    fn enlarge(
        &self,
        announcement: Option<Announcement>,
        tile: Array4<u8>,
    ) -> impl Future<Output = Result<Inference, SessionError>> + Send;
}

/// A loaded upscaling model.
#[derive(Clone, Debug)]
pub struct Upscaler {
    model: ModelHandle,
    contract: Upscale,
}

impl Upscaler {
    /// Wraps a model.
    ///
    /// # Errors
    /// [`ToolError::Model`] if its task is not upscaling.
    pub fn new(model: ModelHandle) -> Result<Self, ToolError> {
        match model.task() {
            Task::Upscale(contract) => Ok(Self { contract: contract.clone(), model }),
            _ => Err(ToolError::Model(format!("{} is not an upscaler", model.identity()))),
        }
    }

    /// Returns the model's identity.
    pub const fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }
}

impl Net for Upscaler {
    fn contract(&self) -> &Upscale {
        &self.contract
    }

    fn announce(&self) -> Option<Announcement> {
        Some(self.model.announce())
    }

    fn has_few_shapes(&self) -> bool {
        self.model.has_few_shapes()
    }

    fn largest_batch(&self, rows: usize, columns: usize) -> usize {
        self.model.largest_batch(rows, columns)
    }

    async fn enlarge(
        &self,
        announcement: Option<Announcement>,
        tile: Array4<u8>,
    ) -> Result<Inference, SessionError> {
        match announcement {
            Some(announcement) => self.model.infer_announced(announcement, tile).await,
            None => self.model.infer(tile).await,
        }
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The share of the picture that is done, 0 to 1.
    pub fraction: f32,
    /// The tiles that are done.
    pub tiles: Count,
    /// The estimated time left, from the speed so far; `None` before the first tile.
    pub left: Option<Duration>,
}

/// An enlarged picture. The PNG itself went through the channel.
#[derive(Clone, Debug)]
pub struct Upscaled {
    /// The result as a PNG of at most 512 pixels per side.
    pub thumbnail: Bytes,
    /// The result as a lossy WebP of at most 1600 pixels per side; `None` if the result is at most that large.
    pub preview: Option<Bytes>,
    /// The result's width in pixels.
    pub width: u32,
    /// The result's height in pixels.
    pub height: u32,
    /// How long each stage took.
    pub stages: StageTimes,
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
) -> Result<Upscaled, ToolError> {
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

/// How a picture is divided into bands and tiles.
#[derive(Clone, Copy, Debug)]
struct Plan {
    size: (u32, u32),
    channels: Channels,
    layout: OutputLayout,
    tile_size: TileSize,
    tiling: Tiling,
    /// The side of the first tiles in input pixels; later ones are smaller if the model runs out of memory.
    first_side: u32,
    /// The most input rows of a band.
    max_rows: u32,
}

/// What is computed of a picture at once: some of its rows, in tiles side by side.
#[derive(Clone, Debug)]
struct BandPlan {
    /// The input rows, those shared with the next band included.
    y: Range<u32>,
    /// The first row of the next band; the picture's height for the last.
    next: u32,
    tiles: Vec<BandTile>,
}

impl Plan {
    fn new(
        size: (u32, u32),
        channels: Channels,
        factor: u32,
        contract: &Upscale,
        has_few_shapes: bool,
        settings: &Settings,
    ) -> Result<Self, ToolError> {
        contract.can_make(factor).map_err(|reason| {
            ToolError::Model(format!("the model cannot make {factor}X: {reason}"))
        })?;
        let (mut tiling, scale) = (contract.tiling, contract.upscale.scale);
        let padding = contract.padding_for(factor);
        let fixed = contract.fixed_region(padding);
        if let Some(side) = fixed {
            // A net of one size has no smaller tiles to fall back on.
            (tiling.smallest, tiling.largest) = (side, side);
        }
        let row_bytes = u64::from(size.0) * u64::from(factor).pow(2) * channels.count() as u64;
        let max_rows = (BAND_BYTES / row_bytes).clamp(u64::from(tiling.smallest), 1 << 20) as u32;
        let first_side = tiling.side_within(padding, settings.tile_memory_bytes);
        let plan = Self {
            size,
            channels,
            layout: OutputLayout { padding, scale, factor },
            tile_size: contract.tile_size(),
            tiling,
            first_side,
            max_rows,
        };
        Ok(if has_few_shapes && fixed.is_none() { plan.with_few_shapes() } else { plan })
    }

    /// Gives the tiles of all pictures the same few sizes, and this picture the one that takes the fewest pixels.
    fn with_few_shapes(self) -> Self {
        let Tiling { smallest, multiple_of, .. } = self.tiling;
        let around = 2 * self.layout.padding;
        // Rounded down, because the memory of tiles has room for no more.
        let largest = (self.first_side + around) / multiple_of * multiple_of;
        let smallest = smallest + around;
        let tile_size = TileSize::Halving { largest, smallest, multiple_of };
        let plan = Self { tile_size, ..self };
        let sides = tile::halves(largest, multiple_of).filter(|side| *side >= smallest);
        let pixels = |side: &u32| {
            let tiles = plan.tiles_from(0, side - around);
            u64::from(tiles) * u64::from(*side).pow(2)
        };
        // Of several, the first and largest.
        let first_side = sides.min_by_key(pixels).map_or(self.first_side, |side| side - around);
        Self { first_side, ..plan }
    }

    /// Returns the rows and columns of a tile, padding included.
    fn shape_of(&self, tile: &BandTile) -> (usize, usize) {
        let (width, height) = self.tile_size.around(&tile.region, self.layout.padding);
        (height as usize, width as usize)
    }

    /// Returns the bands from row `top` on.
    fn bands_from(&self, top: u32, side: u32) -> Vec<BandPlan> {
        let ((width, height), overlap) = (self.size, self.overlap());
        let rows = band::pieces(height - top, side.min(self.max_rows), overlap);
        let mut rows = rows.into_iter().map(|y| top + y.start..top + y.end).peekable();
        let mut bands = Vec::new();
        while let Some(y) = rows.next() {
            let next = rows.peek().map_or(height, |next| next.start);
            bands.push(BandPlan { next, tiles: band::tiles(width, &y, side, overlap), y });
        }
        bands
    }

    /// Returns the number of tiles from row `top` on.
    fn tiles_from(&self, top: u32, side: u32) -> u32 {
        self.bands_from(top, side).iter().map(|band| band.tiles.len() as u32).sum()
    }

    /// Returns the side of the tiles with which a picture continues when those of `side` take too much memory.
    fn smaller_side(&self, side: u32) -> u32 {
        self.tile_size.half_as_large(side, self.layout.padding).max(self.tiling.smallest)
    }

    const fn overlap(&self) -> u32 {
        match self.tiling.mode {
            TilingMode::Exact => 0,
            TilingMode::Blend => self.tiling.blend,
        }
    }

    const fn out_size(&self) -> (u32, u32) {
        (self.size.0 * self.layout.factor, self.size.1 * self.layout.factor)
    }
}

impl BandPlan {
    /// Returns the longest side of its tiles.
    fn longest_side(&self) -> u32 {
        let sides = self.tiles.iter().map(|tile| tile.region.width().max(tile.region.height()));
        sides.max().unwrap_or(0)
    }
}

/// The upscale of one picture.
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
    ) -> Result<Upscaled, ToolError> {
        let Plan { size, tiling, .. } = self.plan;
        let (width, height) = self.plan.out_size();
        let icc = self.picture.icc.clone();
        let mut png = Encoder::new((width, height), self.plan.channels, icc, self.pixels, out)?;
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
        let (EncodedCopies { thumbnail, preview }, encoding) = png.finish().await?;
        let mut stages = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        stages.add(Stage::Encode, encoding);
        Ok(Upscaled { thumbnail, preview, width, height, stages })
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
        let colors = self.enlarge(announcement, colors).await?;
        let alpha = match alpha {
            Some(alpha) => Some(self.enlarge(None, alpha).await?),
            None => None,
        };
        let region = tile.region.clone();
        let compose =
            move || tile::compose(&colors, alpha.as_ref(), &cut, &region, layout, channels);
        let samples = self.timed(Stage::Postprocess, compose).await??;
        Ok((tile, samples))
    }

    async fn enlarge(
        &self,
        announcement: Option<Announcement>,
        input: Array4<u8>,
    ) -> Result<Array4<u8>, ToolError> {
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

/// Measures the progress and estimates the time left.
struct Meter<P> {
    size: (u32, u32),
    progress: P,
    /// Input pixels done.
    done: u64,
    /// The tiles of finished bands, those done in the current band, and all tiles.
    tiles: (u32, u32, u32),
    /// Pixels computed, including those of discarded tiles, which took time too.
    computed: u64,
    started: Instant,
}

impl<P: Fn(Progress)> Meter<P> {
    fn new(size: (u32, u32), tiles: u32, progress: P) -> Self {
        let meter = Self {
            size,
            progress,
            done: 0,
            tiles: (0, 0, tiles),
            computed: 0,
            started: Instant::now(),
        };
        (meter.progress)(Progress { fraction: 0.0, tiles: meter.count(), left: None });
        meter
    }

    fn advance(&mut self, width: u32, height: u32) {
        let area = u64::from(width) * u64::from(height);
        let total = u64::from(self.size.0) * u64::from(self.size.1);
        self.done = (self.done + area).min(total);
        self.tiles.1 += 1;
        self.computed += area;
        let per_pixel = self.started.elapsed().as_secs_f64() / self.computed as f64;
        (self.progress)(Progress {
            fraction: self.done as f32 / total as f32,
            tiles: self.count(),
            left: Some(Duration::from_secs_f64(per_pixel * (total - self.done) as f64)),
        });
    }

    /// Counts the current band as finished.
    fn end_band(&mut self) {
        self.tiles = (self.tiles.0 + self.tiles.1, 0, self.tiles.2);
    }

    /// Goes back to row `top`, where the current band starts again; `tiles` remain from there.
    fn restart_band(&mut self, top: u32, tiles: u32) {
        self.done = u64::from(self.size.0) * u64::from(top);
        self.tiles = (self.tiles.0, 0, self.tiles.0 + tiles);
    }

    fn count(&self) -> Count {
        let (finished, current, total) = self.tiles;
        Count { unit: CountUnit::Tiles, done: finished + current, total }
    }
}
