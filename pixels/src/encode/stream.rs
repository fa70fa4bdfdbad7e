//! A PNG encoder that takes rows and returns bytes as it goes, so that the whole picture never has to be in memory.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use png::{BitDepth, ColorType, Compression, Filter, Info, StreamWriter};

use crate::PixelError;

/// The size of an IDAT chunk, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// The 8-bit samples of a pixel, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    Gray,
    GrayAlpha,
    Rgb,
    Rgba,
}

impl Channels {
    /// Returns the channels of a picture that is gray or not and has alpha or not.
    pub const fn of(gray: bool, alpha: bool) -> Self {
        match (gray, alpha) {
            (true, false) => Self::Gray,
            (true, true) => Self::GrayAlpha,
            (false, false) => Self::Rgb,
            (false, true) => Self::Rgba,
        }
    }

    /// Returns the number of samples per pixel.
    pub const fn count(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }
}

/// A PNG encoder with fast compression and adaptive filters.
pub struct PngStream {
    writer: StreamWriter<'static, Sink>,
    sink: Sink,
}

impl PngStream {
    /// Starts a PNG of the given width and height in pixels.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if the encoder rejects the size or the profile.
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

    /// Encodes whole rows of interleaved samples.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if there are more rows than the picture has.
    pub fn write(&mut self, rows: &[u8]) -> Result<(), PixelError> {
        self.writer.write_all(rows).map_err(|error| failed(&error))
    }

    /// Returns the bytes encoded since the last call.
    pub fn take(&self) -> Bytes {
        self.sink.take()
    }

    /// Finishes the PNG and returns its last bytes.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if rows are missing.
    pub fn finish(self) -> Result<Bytes, PixelError> {
        self.writer.finish().map_err(|error| failed(&error))?;
        Ok(self.sink.take())
    }
}

/// The encoder's output, shared with [`PngStream::take`]. The lock is never contended.
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
