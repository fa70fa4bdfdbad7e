//! Encodes finished rows to the PNG, sends its bytes, and computes the smaller copies.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use retouch_pixels::copies::{Copies, EncodedCopies};
use retouch_pixels::encode::{Channels, PngStream};
use retouch_pixels::icc;

/// Maximum number of bytes of rows to encode at once, which bounds the bytes waiting to be sent.
const ENCODE_BYTES: usize = 4 << 20;

/// Encodes rows as they arrive.
pub struct Encoder<'a> {
    /// `None` while the pixel threads use it.
    work: Option<Work>,
    icc: Option<Vec<u8>>,
    stride: usize,
    pixels: &'a PixelPool,
    out: mpsc::Sender<Bytes>,
    took: Duration,
}

struct Work {
    png: PngStream,
    copies: Copies,
}

impl<'a> Encoder<'a> {
    /// Starts a PNG of `size` (width, height) whose bytes go to `out`.
    ///
    /// # Errors
    /// [`ToolError::Pixels`] if the encoder rejects the size or the profile.
    pub fn new(
        size: (u32, u32),
        channels: Channels,
        icc: Option<Vec<u8>>,
        pixels: &'a PixelPool,
        out: mpsc::Sender<Bytes>,
    ) -> Result<Self, ToolError> {
        let png = PngStream::new(size, channels, icc.clone())?;
        let work = Some(Work { png, copies: Copies::new(size, channels) });
        let stride = size.0 as usize * channels.count();
        Ok(Self { work, icc, stride, pixels, out, took: Duration::ZERO })
    }

    /// Encodes and sends whole rows. Waits while the receiver is busy.
    ///
    /// # Errors
    /// [`ToolError::Canceled`] if the receiver has been dropped.
    pub async fn write(&mut self, rows: Vec<u8>) -> Result<(), ToolError> {
        let mut rows = Bytes::from(rows);
        let step = (ENCODE_BYTES / self.stride).max(1) * self.stride;
        while !rows.is_empty() {
            let now = rows.split_to(step.min(rows.len()));
            let mut work = self.work()?;
            let encode = move || {
                let started = Instant::now();
                let written = work.png.write(&now);
                work.copies.push(&now);
                (written, work.png.take(), work, started.elapsed())
            };
            let (written, bytes, work, took) = self.pixels.run(encode).await?;
            written?;
            self.work = Some(work);
            self.took += took;
            self.send(bytes).await?;
        }
        Ok(())
    }

    /// Finishes the PNG. Returns the smaller copies of the picture, and how long all encoding took.
    ///
    /// # Errors
    /// [`ToolError::Pixels`] if rows are missing, [`ToolError::Canceled`] if the receiver has been dropped.
    pub async fn finish(mut self) -> Result<(EncodedCopies, Duration), ToolError> {
        let (work, icc) = (self.work()?, self.icc.take());
        let encode = move || {
            let started = Instant::now();
            let last = work.png.finish()?;
            let copies = work.copies.encode(icc.as_deref().and_then(icc::of_rgb).as_deref())?;
            Ok::<_, ToolError>((last, copies, started.elapsed()))
        };
        let (last, copies, took) = self.pixels.run(encode).await??;
        self.send(last).await?;
        Ok((copies, self.took + took))
    }

    async fn send(&self, bytes: Bytes) -> Result<(), ToolError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.out.send(bytes).await.map_err(|_| ToolError::Canceled)
    }

    fn work(&mut self) -> Result<Work, ToolError> {
        let lost =
            || ToolError::Internal("an earlier write of the encoder was canceled".to_owned());
        self.work.take().ok_or_else(lost)
    }
}
