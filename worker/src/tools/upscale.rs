//! Upscale: a picture in, the same two or four times as wide and high out.
//!
//! The picture is taken apart into tiles, and what the model makes of them is put together band by band.
//! A finished band is encoded, and the encoded bytes leave through a channel, while the next one is being
//! made: memory is bounded by the picture that came in and two bands, not by the result.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use ndarray::Array4;
use retouch_catalog::{Count, CountUnit, Factor};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::stage::{Stage, StageTimes};
use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use retouch_inference::manifest::{Task, Tiling, TilingMode, Upscale};
use retouch_inference::registry::{Inference, ModelHandle, ModelIdentity};
use retouch_inference::session::SessionError;
use retouch_pixels::band::{self, Band, Placed};
use retouch_pixels::decode::decode;
use retouch_pixels::encode::Channels;
use retouch_pixels::tile::{self, Alpha, Trim};
use retouch_pixels::{Limits, Picture};

mod encoder;

use encoder::Encoder;

/// Input pixels around a tile that the filter which halves 4X to 2X sees: six output pixels.
const HALVING_REACH: u32 = 2;

/// Tiles under way at once: while the model has one, the next is cut and the one before is put in place.
const TILES_AT_ONCE: usize = 2;

/// What a band of the result may take, in bytes.
const BAND_BYTES: u64 = 48 << 20;

/// What makes tiles larger: a loaded model, or in tests something that behaves like one.
pub trait Net: Sync {
    /// The model's contract.
    fn contract(&self) -> &Upscale;

    /// Runs it on f32 `[1, 3, height, width]`.
    fn enlarge(
        &self,
        tile: Array4<f32>,
    ) -> impl Future<Output = Result<Inference, SessionError>> + Send;
}

/// A loaded model that makes pictures larger.
#[derive(Clone, Debug)]
pub struct Upscaler {
    model: ModelHandle,
    contract: Upscale,
}

impl Upscaler {
    /// The model as an upscaler.
    ///
    /// # Errors
    /// When its task is another.
    pub fn new(model: ModelHandle) -> Result<Self, ToolError> {
        match model.task() {
            Task::Upscale(contract) => Ok(Self { contract: contract.clone(), model }),
            _ => Err(ToolError::Model(format!("{} is no upscaler", model.identity()))),
        }
    }

    /// Which bytes run, and where.
    pub const fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }
}

impl Net for Upscaler {
    fn contract(&self) -> &Upscale {
        &self.contract
    }

    async fn enlarge(&self, tile: Array4<f32>) -> Result<Inference, SessionError> {
        self.model.infer(tile).await
    }
}

/// What the tool may take.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What a picture may be at most.
    pub limits: Limits,
    /// What one run of the model may take, in bytes: tiles are no larger than fits.
    pub tile_memory_bytes: u64,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// How much of the picture is done, from 0 to 1.
    pub fraction: f32,
    /// How many tiles are done.
    pub tiles: Count,
    /// How long the rest will take at the speed measured so far.
    pub left: Option<Duration>,
}

/// A picture made larger. The PNG itself has left through the channel.
#[derive(Clone, Debug)]
pub struct Upscaled {
    /// A PNG of the result, at most 512 pixels a side.
    pub thumbnail: Bytes,
    /// The result's width in pixels.
    pub width: u32,
    /// The result's height in pixels.
    pub height: u32,
    /// How long each stage took.
    pub stages: StageTimes,
}

/// What a run will take at the most, in bytes, models not counted: the decoded picture while it is being
/// decoded, two bands, and the tiles under way.
pub fn memory_bytes(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height) * 8 + 2 * BAND_BYTES + (64 << 20)
}

/// Makes a picture `factor` times as wide and high. The PNG leaves through `out`, from its first byte to
/// its last; when the receiver is gone the run ends with [`ToolError::Canceled`].
///
/// `progress` is told before the first tile and after each. Between tiles, and while waiting for a thread
/// or the model, `cancel` ends the work. When the model runs out of memory, tiles are halved and the band
/// is begun again.
///
/// Gray stays gray; colours that nobody sees do not reach the edge of what is transparent; the profile is
/// kept. 16-bit samples have been rounded to 8 by then, and CMYK converted.
///
/// # Errors
/// See [`ToolError`].
#[expect(
    clippy::too_many_arguments,
    reason = "what comes in, what works on it, who watches, where it goes"
)]
pub async fn upscale(
    input: Bytes,
    factor: Factor,
    net: &impl Net,
    pixels: &PixelPool,
    settings: &Settings,
    cancel: &CancellationToken,
    progress: impl Fn(Progress) + Sync,
    out: mpsc::Sender<Bytes>,
) -> Result<Upscaled, ToolError> {
    let work = async {
        let limits = settings.limits;
        let (picture, took) = pixels.run_timed(move || decode(&input, &limits)).await?;
        let picture = picture?;
        let mut times = StageTimes::default();
        times.add(Stage::Decode, took);

        let plan = Plan::new(&picture, factor, net.contract(), settings)?;
        let run = Run { net, pixels, plan, picture: Arc::new(picture), times: Mutex::new(times) };
        run.whole(progress, out).await
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::Canceled),
        made = work => made,
    }
}

/// How a picture is taken apart and what becomes of it.
#[derive(Clone, Copy, Debug)]
struct Plan {
    size: (u32, u32),
    channels: Channels,
    trim: Trim,
    tiling: Tiling,
    /// The side of the first tiles; memory may make later ones smaller.
    first_side: u32,
    /// The rows of a band at the most.
    rows: u32,
}

impl Plan {
    fn new(
        picture: &Picture,
        factor: Factor,
        contract: &Upscale,
        settings: &Settings,
    ) -> Result<Self, ToolError> {
        let (tiling, scale) = (contract.tiling, contract.upscale.scale);
        let halve = match (scale, factor) {
            (4, Factor::X4) | (2, Factor::X2) => false,
            (4, Factor::X2) => true,
            _ => {
                let text = format!("a model of scale {scale} cannot make {}X", factor.get());
                return Err(ToolError::Model(text));
            }
        };
        let padding = tiling.padding + if halve { HALVING_REACH } else { 0 };
        let size = (picture.width, picture.height);
        let channels = Channels::of(picture.gray, picture.alpha.is_some());
        let row_bytes =
            u64::from(size.0) * u64::from(factor.get()).pow(2) * channels.count() as u64;
        let rows = (BAND_BYTES / row_bytes).clamp(u64::from(tiling.smallest), 1 << 20) as u32;
        let first_side = side_for(&tiling, padding, settings.tile_memory_bytes);
        Ok(Self { size, channels, trim: Trim { padding, scale, halve }, tiling, first_side, rows })
    }

    /// The rows of the band that begins at `top`; what is left is cut into bands of about equal height.
    fn rows_from(&self, top: u32, side: u32) -> Range<u32> {
        let rest = self.size.1 - top;
        top..top + rest.div_ceil(rest.div_ceil(side.min(self.rows)))
    }

    /// How many tiles the bands from `top` on are made of.
    fn tiles_from(&self, mut top: u32, side: u32) -> u32 {
        let mut count = 0;
        while top < self.size.1 {
            let y = self.rows_from(top, side);
            count += band::tiles(self.size, &y, side, self.blend()).len() as u32;
            top = y.end;
        }
        count
    }

    const fn blend(&self) -> u32 {
        match self.tiling.mode {
            TilingMode::Exact => 0,
            TilingMode::Blend => self.tiling.blend,
        }
    }

    const fn out_size(&self) -> (u32, u32) {
        (self.size.0 * self.trim.factor(), self.size.1 * self.trim.factor())
    }
}

/// The largest side of a tile whose run, padding and all, fits into memory.
fn side_for(tiling: &Tiling, padding: u32, memory_bytes: u64) -> u32 {
    let pixels = memory_bytes / u64::from(tiling.memory_bytes_per_pixel.max(1));
    let around = 2 * u64::from(padding) + u64::from(tiling.blend);
    let side = pixels.isqrt().saturating_sub(around);
    side.clamp(u64::from(tiling.smallest), u64::from(tiling.largest)) as u32
}

/// One picture on its way through.
struct Run<'a, N> {
    net: &'a N,
    pixels: &'a PixelPool,
    plan: Plan,
    picture: Arc<Picture>,
    times: Mutex<StageTimes>,
}

impl<N: Net> Run<'_, N> {
    /// Makes band after band from the top, each while the one before is encoded.
    async fn whole(
        &self,
        progress: impl Fn(Progress) + Sync,
        out: mpsc::Sender<Bytes>,
    ) -> Result<Upscaled, ToolError> {
        let Plan { size, tiling, .. } = self.plan;
        let (width, height) = self.plan.out_size();
        let shared = self.plan.blend() * self.plan.trim.factor();
        let icc = self.picture.icc.clone();
        let mut png = Encoder::begin((width, height), self.plan.channels, icc, self.pixels, out)?;
        let mut side = self.plan.first_side;
        let mut meter = Meter::new(size, self.plan.tiles_from(0, side), progress);
        let (mut top, mut finished, mut above) = (0, Vec::new(), Vec::new());
        while top < size.1 {
            let y = self.plan.rows_from(top, side);
            let making = self.band(&y, side, &mut meter);
            let (made, written) = tokio::join!(making, png.write(std::mem::take(&mut finished)));
            written?;
            let mut band = match made {
                Err(ToolError::OutOfMemory(reason)) if side > tiling.smallest => {
                    side = (side.min(size.0.max(y.end - y.start)) / 2).max(tiling.smallest);
                    tracing::warn!(reason, "Out of memory; going on with tiles of {side} pixels");
                    meter.back_to(top, self.plan.tiles_from(top, side));
                    continue;
                }
                made => made?,
            };
            band.fade_in(&above);
            // The rows that the next band fades in over wait for it.
            above = if y.end == size.1 { Vec::new() } else { band.split_off(shared) };
            finished = band.pixels;
            top = y.end;
            meter.end_band();
        }
        png.write(finished).await?;
        let (thumbnail, encoding) = png.finish().await?;
        let mut stages = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        stages.add(Stage::Encode, encoding);
        Ok(Upscaled { thumbnail, width, height, stages })
    }

    async fn band(
        &self,
        y: &Range<u32>,
        side: u32,
        meter: &mut Meter<impl Fn(Progress) + Sync>,
    ) -> Result<Band, ToolError> {
        let Plan { size, channels, trim, .. } = self.plan;
        let tiles = band::tiles(size, y, side, self.plan.blend());
        let rows = tiles.first().map_or(0, |tile| tile.region.height()) * trim.factor();
        let mut band = Band::new(size.0 * trim.factor(), rows, channels.count());
        let mut made = stream::iter(tiles).map(|tile| self.tile(tile)).buffered(TILES_AT_ONCE);
        while let Some((tile, samples)) = made.try_next().await? {
            let x = tile.region.x.start * trim.factor()..tile.region.x.end * trim.factor();
            let fade = tile.fade * trim.factor();
            let paste = move || {
                band.paste(&samples, x, fade);
                band
            };
            band = self.pixels.run(paste).await?;
            meter.advance(tile.region.width() - tile.fade, y.end - y.start);
        }
        Ok(band)
    }

    /// One tile: its surroundings cut out, enlarged, and made into the samples of its region.
    async fn tile(&self, tile: Placed) -> Result<(Placed, Vec<u8>), ToolError> {
        let Plan { trim, tiling, channels, .. } = self.plan;
        let (picture, region) = (self.picture.clone(), tile.region.clone());
        let normalization = self.net.contract().input.normalization();
        let prepare = move || {
            let cut = tile::cut(&picture, &region, trim.padding, tiling.multiple_of);
            let colours = tile::to_tensor(&cut, &normalization);
            let alpha = match &cut.alpha {
                Alpha::Mixed(alpha) => Some(tile::alpha_to_tensor(&cut, alpha, &normalization)),
                Alpha::Opaque | Alpha::Clear => None,
            };
            (cut, colours, alpha)
        };
        let (cut, colours, alpha) = self.timed(Stage::Preprocess, prepare).await?;
        let colours = self.enlarge(colours).await?;
        let alpha = match alpha {
            Some(alpha) => Some(self.enlarge(alpha).await?),
            None => None,
        };
        let region = tile.region.clone();
        let compose =
            move || tile::compose(&colours, alpha.as_ref(), &cut, &region, trim, channels);
        let samples = self.timed(Stage::Postprocess, compose).await??;
        Ok((tile, samples))
    }

    async fn enlarge(&self, tensor: Array4<f32>) -> Result<Array4<f32>, ToolError> {
        let inference = self.net.enlarge(tensor).await?;
        self.add(Stage::Infer, inference.ran);
        Ok(inference.output)
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

/// Measures how fast the picture gets done.
struct Meter<P> {
    size: (u32, u32),
    progress: P,
    done: u64,
    /// Tiles of finished bands, of the one that is being made, and all of them.
    tiles: (u32, u32, u32),
    /// What has been computed, that in vain included: the speed is that of all work.
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

    /// A band is finished.
    fn end_band(&mut self) {
        self.tiles = (self.tiles.0 + self.tiles.1, 0, self.tiles.2);
    }

    /// The band that begins at row `top` is made again, and with it `tiles` are left.
    fn back_to(&mut self, top: u32, tiles: u32) {
        self.done = u64::from(self.size.0) * u64::from(top);
        self.tiles = (self.tiles.0, 0, self.tiles.0 + tiles);
    }

    fn count(&self) -> Count {
        let (finished, under_way, total) = self.tiles;
        Count { unit: CountUnit::Tiles, done: finished + under_way, total }
    }
}
