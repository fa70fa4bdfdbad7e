//! Runs pictures whose stages overlap, as the stages of jobs do.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use retouch_catalog::Tool;
use retouch_inference::registry::ModelHandle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::tools::Settings;
use crate::tools::remove_background::remove_background;
use crate::tools::stage::{Stage, StageTimes};
use crate::tools::upscale::{Upscaler, upscale};

/// The kernel counts CPU time in ticks of 1/100 s (`USER_HZ`, the same on every Linux).
const TICKS_PER_SECOND: f64 = 100.0;

/// What to process, and how.
pub struct Work {
    /// The pictures, in turn.
    pub files: Vec<Bytes>,
    pub model: ModelHandle,
    /// Remove Background or Upscale.
    pub tool: Tool,
    pub pixels: PixelPool,
    pub settings: Settings,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// Until this many pictures are done.
    Pictures(usize),
    /// No picture starts after this time. Each lane processes at least one.
    Time(Duration),
}

/// What a stretch of work took.
pub struct Pipeline {
    /// Seconds from the first picture to the last.
    pub wall: f64,
    /// CPU-seconds of the process.
    pub cpu: f64,
    pub times: Vec<StageTimes>,
}

impl Pipeline {
    /// Returns the pictures per second.
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.wall
    }

    pub fn cpu_per_picture(&self) -> f64 {
        self.cpu / self.times.len() as f64
    }

    /// Returns the share of the time in which the model ran.
    pub fn model_share(&self) -> f64 {
        let ran: Duration = self.times.iter().map(|times| times.get(Stage::Infer)).sum();
        ran.as_secs_f64() / self.wall
    }

    pub fn median_ms(&self, of: impl Fn(&StageTimes) -> Duration) -> f64 {
        let mut values: Vec<_> = self.times.iter().map(of).collect();
        values.sort();
        values.get(values.len() / 2).map_or(0.0, |middle| middle.as_secs_f64() * 1000.0)
    }
}

impl Work {
    /// Processes pictures, `in_flight` at a time.
    pub async fn run(
        self: &Arc<Self>,
        amount: Amount,
        in_flight: usize,
    ) -> anyhow::Result<Pipeline> {
        let next = Arc::new(AtomicUsize::new(0));
        let lanes = match amount {
            Amount::Pictures(pictures) => in_flight.min(pictures),
            Amount::Time(_) => in_flight,
        };
        let (started, cpu) = (Instant::now(), cpu_seconds()?);
        let mut running = JoinSet::new();
        for _ in 0..lanes {
            running.spawn(Arc::clone(self).lane(Arc::clone(&next), amount, started));
        }
        let mut times = Vec::new();
        while let Some(lane) = running.join_next().await {
            times.extend(lane??);
        }
        Ok(Pipeline { wall: started.elapsed().as_secs_f64(), cpu: cpu_seconds()? - cpu, times })
    }

    async fn lane(
        self: Arc<Self>,
        next: Arc<AtomicUsize>,
        amount: Amount,
        started: Instant,
    ) -> anyhow::Result<Vec<StageTimes>> {
        let mut times = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let is_over = match amount {
                Amount::Pictures(pictures) => index >= pictures,
                Amount::Time(time) => !times.is_empty() && started.elapsed() >= time,
            };
            if is_over {
                return Ok(times);
            }
            times.push(self.process(index, |_| {}).await?);
        }
    }

    /// Processes one picture, from its file to its PNG, and hands the parts of the PNG to `keep`.
    pub async fn process(
        &self,
        index: usize,
        mut keep: impl FnMut(Bytes),
    ) -> anyhow::Result<StageTimes> {
        let input = self.files[index % self.files.len()].clone();
        let Self { model, pixels, settings, .. } = self;
        let cancel = CancellationToken::new();
        match self.tool {
            Tool::RemoveBackground => {
                let limits = &settings.limits;
                let (png, made) =
                    remove_background(input, model, pixels, limits, &cancel, |_| {}).await?;
                keep(png);
                Ok(made.stages)
            }
            Tool::MagicFix(_) => bail!("Magic Fix has no overlapping stages"),
            Tool::Upscale(factor) => {
                let net = Upscaler::new(model.clone())?;
                let (out, mut parts) = mpsc::channel(1);
                let upscaling =
                    upscale(input, factor, &net, pixels, settings, &cancel, |_| {}, out);
                let keeping = async {
                    while let Some(part) = parts.recv().await {
                        keep(part);
                    }
                };
                let (made, ()) = tokio::join!(upscaling, keeping);
                Ok(made?.stages)
            }
        }
    }
}

/// Returns the user and system time of this process: fields 14 and 15 of `/proc/self/stat`, counted after the command's
/// closing parenthesis because its name may contain spaces.
pub fn cpu_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
    let fields = stat.rsplit_once(')').context("/proc/self/stat has no command")?.1;
    let ticks: f64 = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    Ok(ticks / TICKS_PER_SECOND)
}

/// Generates a JPEG with a bright subject, gradients and grain, so that it compresses like a photo.
pub fn generate_photo((width, height): (u32, u32)) -> anyhow::Result<Bytes> {
    let mut noise = 1_u32;
    let photo = image::RgbImage::from_fn(width, height, |x, y| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let grain = (noise >> 28) as u8;
        let (dx, dy) = (x.abs_diff(width / 2), y.abs_diff(height / 2));
        let (across, down) = ((x * 80 / width) as u8, (y * 60 / height) as u8);
        if dx * dx + dy * dy < width * height / 12 {
            image::Rgb([220 + grain, 120 + across, 60 + down])
        } else {
            image::Rgb([30 + across, 60 + down, 90 + grain])
        }
    });
    let mut jpeg = Vec::new();
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 90);
    photo.write_with_encoder(encoder).context("encoding the generated photo")?;
    Ok(jpeg.into())
}
