//! A PNG written row by row: what is encoded can be taken away while the rest of the picture is still
//! being made, so its size costs no memory.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use png::{BitDepth, ColorType, Compression, Filter, Info, StreamWriter};

use crate::PixelError;

/// Bytes of a chunk of compressed data.
const CHUNK_BYTES: usize = 64 << 10;

/// What each pixel holds, in 8-bit samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    Gray,
    GrayAlpha,
    Rgb,
    Rgba,
}

impl Channels {
    /// What a picture's pixels hold.
    pub const fn of(gray: bool, alpha: bool) -> Self {
        match (gray, alpha) {
            (true, false) => Self::Gray,
            (true, true) => Self::GrayAlpha,
            (false, false) => Self::Rgb,
            (false, true) => Self::Rgba,
        }
    }

    /// Samples in a pixel.
    pub const fn count(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }
}

/// A PNG under way, at the fast level with adaptive filters.
pub struct PngStream {
    writer: StreamWriter<'static, Sink>,
    sink: Sink,
}

impl PngStream {
    /// Begins a PNG.
    ///
    /// # Errors
    /// [`PixelError::Internal`] when the encoder refuses the size or the profile.
    pub fn new(
        (width, height): (u32, u32),
        channels: Channels,
        icc: Option<Vec<u8>>,
    ) -> Result<Self, PixelError> {
        let mut info = Info::with_size(width, height);
        info.bit_depth = BitDepth::Eight;
        info.color_type = match channels {
            Channels::Gray => ColorType::Grayscale,
            Channels::GrayAlpha => ColorType::GrayscaleAlpha,
            Channels::Rgb => ColorType::Rgb,
            Channels::Rgba => ColorType::Rgba,
        };
        info.icc_profile = icc.map(Cow::Owned);
        let sink = Sink::default();
        let mut encoder =
            png::Encoder::with_info(sink.clone(), info).map_err(|error| failed(&error))?;
        encoder.set_compression(Compression::Fast);
        encoder.set_filter(Filter::Adaptive);
        let writer = encoder.write_header().map_err(|error| failed(&error))?;
        let writer =
            writer.into_stream_writer_with_size(CHUNK_BYTES).map_err(|error| failed(&error))?;
        Ok(Self { writer, sink })
    }

    /// Encodes whole rows.
    ///
    /// # Errors
    /// [`PixelError::Internal`] when there are more than the picture has.
    pub fn write(&mut self, rows: &[u8]) -> Result<(), PixelError> {
        self.writer.write_all(rows).map_err(|error| failed(&error))
    }

    /// What has been encoded since the last time.
    pub fn take(&self) -> Bytes {
        self.sink.take()
    }

    /// Ends the PNG; what is left of it.
    ///
    /// # Errors
    /// [`PixelError::Internal`] when rows are missing.
    pub fn finish(self) -> Result<Bytes, PixelError> {
        self.writer.finish().map_err(|error| failed(&error))?;
        Ok(self.sink.take())
    }
}

/// Where the encoder writes, and where it is taken from. The lock is never contended.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failed(error: &dyn std::error::Error) -> PixelError {
    PixelError::Internal(format!("encoding the result: {error}"))
}
