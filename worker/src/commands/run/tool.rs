//! Runs a tool on the pictures of a command: on one, with a report, or on many, with a summary.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use bytes::Bytes;
use clap::Args;
use retouch_catalog::Tool;
use retouch_core::Clock;
use retouch_credentials::{Credentials, CredentialsConfig, Model, Parent, PngSeal, Provenance};
use retouch_heif::{Heif, HeifConfig};
use retouch_inference::registry::ModelHandle;
use retouch_pixels::decode::check;
use retouch_pixels::exif::Exif;
use retouch_pixels::{Limits, PixelError};
use tokio::sync::mpsc;

use super::batch::{self, Written};
use super::format::{Format, WriteArgs};
use super::metadata::Metadata;
use super::output::{Output, STREAM};
use super::pictures::{Item, PictureArgs, Plan};
use super::report::{Finished, Report};
use crate::pixel_pool::PixelPool;

/// A tool that makes a PNG of a picture.
pub trait PictureTool {
    /// Returns the tool that the marks of a result state.
    fn statement(&self) -> Tool;

    /// Loads what does not depend on a picture.
    async fn prepare(&self) -> anyhow::Result<()>;

    /// Returns the model for a picture of this width and height, and loads it on first use.
    async fn model(&self, size: (u32, u32)) -> anyhow::Result<ModelHandle>;

    /// Returns the width and height of the result for a picture of this width and height.
    fn result_size(&self, size: (u32, u32)) -> (u32, u32) {
        size
    }

    /// Runs on a file, and sends the PNG through `out`. `is_alone` says that nothing else shows progress.
    async fn run(
        &self,
        model: ModelHandle,
        input: Bytes,
        is_alone: bool,
        out: mpsc::Sender<Bytes>,
    ) -> anyhow::Result<Finished>;
}

/// How the pictures of a command are processed.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pictures: PictureArgs,
    #[command(flatten)]
    write: WriteArgs,
    /// Pictures in flight, if there are several: one is decoded while the model runs on another.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    in_flight: u16,
    /// Whether the result keeps the EXIF data of the picture: date, camera, author, place.
    #[arg(long, value_enum, default_value = "strip")]
    metadata: Metadata,
    #[command(flatten)]
    credentials: CredentialsConfig,
    #[command(flatten)]
    heif: HeifConfig,
}

/// What every picture of a command needs.
pub struct Common {
    pub pixels: PixelPool,
    pub limits: Limits,
    /// What fills transparent pixels; `None` keeps them.
    pub background: Option<[u8; 3]>,
    /// Marks results.
    pub credentials: Credentials,
    /// Reads HEIC and AVIF.
    pub heif: Heif,
}

impl RunArgs {
    /// Finds the pictures, before a model is loaded for them. If there are several, the mask is left out.
    pub fn plan(&self, mask: Option<&Path>) -> anyhow::Result<Plan> {
        self.pictures.plan(mask)
    }

    /// Opens the key that signs results.
    pub fn credentials(&self) -> anyhow::Result<Credentials> {
        Ok(Credentials::open(&self.credentials, Clock::system().now())?)
    }

    /// Finds what reads HEIC and AVIF.
    pub fn heif(&self) -> anyhow::Result<Heif> {
        Ok(Heif::new(&self.heif)?)
    }

    /// Runs the tool on the pictures.
    ///
    /// # Errors
    /// If one of them fails; the others are still processed.
    pub async fn execute(
        &self,
        plan: &Plan,
        tool: &impl PictureTool,
        common: &Common,
    ) -> anyhow::Result<()> {
        match plan {
            Plan::One(item) => {
                let (output, report) = self.process(item, tool, common, true).await?;
                report.print(output)
            }
            Plan::Many { items, skipped } => {
                if !items.is_empty() {
                    // A model that does not load fails once, not with every picture.
                    tool.prepare().await?;
                }
                let process = async |item: &Item| {
                    let (output, report) = self.process(item, tool, common, false).await?;
                    Ok(Written { size: report.finished.made.size, size_bytes: output.finish()? })
                };
                batch::run_all(items, *skipped, self.in_flight.into(), process).await
            }
        }
    }

    async fn process(
        &self,
        item: &Item,
        tool: &impl PictureTool,
        common: &Common,
        is_alone: bool,
    ) -> anyhow::Result<(Output, Report)> {
        let name = || item.input.display().to_string();
        let file = Bytes::from(read(item.input.clone()).await.with_context(name)?);
        let mut output = Output::open(&item.output)?;
        let (provenance, exif) = (provenance(&file), self.metadata.of(&file));
        let readable = common.heif.readable(file, &common.limits).await;
        let input = readable.map_err(refusal).with_context(name)?;
        let size = check(&input, &common.limits).map_err(refusal).with_context(name)?;
        self.write.check_size(item.format, tool.result_size(size)).with_context(name)?;
        let started = Instant::now();
        let model = tool.model(size).await?;
        let loading = started.elapsed();

        let started = Instant::now();
        let credentials = common.credentials.clone();
        let parent = Parent { picture: &input, provenance: provenance.as_ref() };
        let is_marked = credentials.marks(tool.statement(), &parent).with_context(name)?;
        let is_png = WriteArgs::keeps_png(item.format, common.background);
        // The marks stand near the start of the file and are known last.
        let is_streamed = is_png && !is_marked && exif.is_none();
        let (out, mut parts) = mpsc::channel::<Bytes>(1);
        let making =
            async { tool.run(model, input.clone(), is_alone, out).await.with_context(name) };
        let receiving = async {
            let mut png = Vec::new();
            while let Some(bytes) = parts.recv().await {
                if is_streamed {
                    output.write(&bytes)?;
                } else {
                    png.extend_from_slice(&bytes);
                }
            }
            Ok(Bytes::from(png))
        };
        let (finished, png) = tokio::try_join!(making, receiving)?;
        if !is_streamed {
            let made_by = marked_model(&finished);
            let seal = credentials.seal(tool.statement(), &made_by, &parent, Clock::system().now());
            let seal = seal.with_context(name)?;
            let (write, format, background) = (self.write, item.format, common.background);
            let finishing = Finishing { write, format, background, exif, seal, credentials };
            let file = common.pixels.run(move || finishing.finish(png)).await?;
            output.write(&file.with_context(name)?)?;
        }
        let total: Duration = started.elapsed();
        let mode = tool.statement().mode();
        Ok((output, Report { finished, mode, loading, total }))
    }
}

/// Says why a picture is refused: the command line reads more formats than the decoders, and uploads nothing.
fn refusal(error: PixelError) -> anyhow::Error {
    match error {
        PixelError::UnsupportedFormat => {
            anyhow!("the image cannot be read: it is not a PNG, JPEG, WebP, HEIC or AVIF file")
        }
        PixelError::Foreign(foreign) => anyhow!("{}.", foreign.advice()),
        other => other.into(),
    }
}

/// How the PNG of a tool becomes a file.
struct Finishing {
    write: WriteArgs,
    format: Format,
    /// What fills transparent pixels; `None` keeps them.
    background: Option<[u8; 3]>,
    exif: Option<Exif>,
    seal: Option<PngSeal>,
    credentials: Credentials,
}

impl Finishing {
    /// Makes the file, with EXIF and marks. May wait for a timestamp authority.
    ///
    /// # Errors
    /// If the format cannot hold the picture, or the result cannot be marked.
    fn finish(self, png: Bytes) -> anyhow::Result<Bytes> {
        let Self { write, format, background, exif, seal, credentials } = self;
        let with_exif = |file: Bytes| match &exif {
            Some(exif) => exif.put_on(&file),
            None => Ok(file),
        };
        let is_png = WriteArgs::keeps_png(format, background);
        let png = if is_png { with_exif(png)? } else { png };
        let png = match seal {
            Some(seal) => seal.mark(&png)?.into(),
            None => png,
        };
        if is_png {
            return Ok(png);
        }
        let file = with_exif(write.convert(&png, format, background)?)?;
        let now = Clock::system().now();
        Ok(credentials.mark_rendering(file, &png, background.is_some(), now)?)
    }
}

/// Returns the provenance of a file; `None` if it has no marks.
fn provenance(file: &[u8]) -> Option<Provenance> {
    Provenance::read(file, retouch_credentials::Format::of(file)?)
}

/// Returns what marks say about the model of a result.
fn marked_model(Finished { model, has_net, .. }: &Finished) -> Model {
    Model { name: model.name.clone(), sha256: model.sha256.clone(), is_trained: *has_net }
}

/// Reads a file or standard input on a thread of its own: a pipe that stays silent must not hold up an interrupt.
async fn read(input: PathBuf) -> io::Result<Vec<u8>> {
    let reading = tokio::task::spawn_blocking(move || {
        if input != Path::new(STREAM) {
            return fs::read(input);
        }
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    reading.await?
}
