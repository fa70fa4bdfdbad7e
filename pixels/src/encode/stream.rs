//! A PNG encoder that takes rows and returns bytes as it goes, so that the whole picture never has to be in memory.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fdeflate::Compressor;
use png::chunk::IDAT;
use png::{BitDepth, ColorType, Encoder, Info, Writer};

use super::filter::RowFilter;
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
    compressor: Compressor<DataChunks>,
    filter: RowFilter,
    rows_left: u32,
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
        let encoder =
            Encoder::with_info(sink.clone(), info).map_err(|error| PixelError::encoding(&error))?;
        let writer = encoder.write_header().map_err(|error| PixelError::encoding(&error))?;
        let chunks = DataChunks { writer, data: Vec::with_capacity(CHUNK_BYTES + 8) };
        let compressor = Compressor::new(chunks).map_err(|error| PixelError::encoding(&error))?;
        let filter = RowFilter::new(width as usize * channels.count(), channels.count());
        Ok(Self { compressor, filter, rows_left: height, sink })
    }

    /// Encodes whole rows of interleaved samples.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if a row is torn, or there are more rows than the picture has.
    pub fn write(&mut self, rows: &[u8]) -> Result<(), PixelError> {
        let rows = rows.chunks(self.filter.length());
        for row in rows {
            let is_whole = row.len() == self.filter.length();
            self.rows_left =
                self.rows_left.checked_sub(1).filter(|_| is_whole).ok_or_else(|| {
                    PixelError::Internal("encoding rows that do not fit".to_owned())
                })?;
            self.compressor
                .write_data(self.filter.filter(row))
                .map_err(|error| PixelError::encoding(&error))?;
        }
        Ok(())
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
        if self.rows_left > 0 {
            return Err(PixelError::Internal(format!("{} rows are missing", self.rows_left)));
        }
        let mut chunks = self.compressor.finish().map_err(|error| PixelError::encoding(&error))?;
        chunks.flush().map_err(|error| PixelError::encoding(&error))?;
        chunks.writer.finish().map_err(|error| PixelError::encoding(&error))?;
        Ok(self.sink.take())
    }
}

/// Collects compressed data and writes it as IDAT chunks.
struct DataChunks {
    writer: Writer<Sink>,
    data: Vec<u8>,
}

impl Write for DataChunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.data.extend_from_slice(bytes);
        if self.data.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.data.is_empty() {
            self.writer.write_chunk(IDAT, &self.data)?;
            self.data.clear();
        }
        Ok(())
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
