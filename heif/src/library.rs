//! The part of libheif's interface that decodes one picture (`heif.h` of 1.13 and later).
#![expect(unsafe_code, reason = "libheif is a C library")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use libloading::Library;

use crate::header::MAX_CODED_SIDE;

const FORMAT_HEVC: c_int = 1;
const FORMAT_AV1: c_int = 4;
const COLORSPACE_RGB: c_int = 1;
const CHROMA_INTERLEAVED_RGBA: c_int = 11;
const CHROMA_INTERLEAVED_RRGGBBAA_LE: c_int = 15;
const CHANNEL_INTERLEAVED: c_int = 10;
const UPSAMPLING_BILINEAR: c_int = 2;
/// The categories of errors that mean a missing decoder, not a damaged file.
const ERROR_UNSUPPORTED_FEATURE: c_int = 4;
const ERROR_PLUGIN_LOADING: c_int = 11;
/// Decoding several tiles at once takes more memory and hardly less time.
const MAX_THREADS: c_int = 2;

/// An error of libheif. The text is static, or lives as long as its context.
#[repr(C)]
struct Status {
    code: c_int,
    subcode: c_int,
    message: *const c_char,
}

/// A color profile in numbers (ITU-T H.273). libheif's structure has further fields.
#[repr(C)]
struct RawNclx {
    version: u8,
    primaries: c_int,
    transfer: c_int,
    matrix: c_int,
    full_range: u8,
}

/// Conversion options. libheif's structure has further fields, and in older versions fewer: a field may only be touched if
/// the version has it.
#[repr(C)]
struct RawOptions {
    version: u8,
    ignore_transformations: u8,
    callbacks: [*const c_void; 3],
    user_data: *const c_void,
    /// Since version 2.
    convert_hdr_to_8bit: u8,
    strict_decoding: u8,
    decoder: *const c_char,
    /// Since version 5.
    colors: RawColorOptions,
}

/// How planes of color with fewer pixels are converted. libheif's structure has further fields.
#[repr(C)]
struct RawColorOptions {
    version: u8,
    downsampling: c_int,
    upsampling: c_int,
    /// Otherwise, the fastest way is taken.
    only_as_preferred: u8,
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The library must be libheif.
            unsafe fn find(library: &'static Library) -> Result<Self, libloading::Error> {
                // SAFETY: the types match `heif.h`.
                unsafe { Ok(Self { $($name: *library.get(stringify!($name))?,)* }) }
            }
        }
    };
}

functions! {
    heif_get_version() -> *const c_char;
    heif_init(*const c_void) -> Status;
    heif_have_decoder_for_format(c_int) -> c_int;
    heif_context_alloc() -> *mut c_void;
    heif_context_set_maximum_image_size_limit(*mut c_void, c_int);
    heif_context_set_max_decoding_threads(*mut c_void, c_int);
    heif_context_read_from_memory_without_copy(*mut c_void, *const c_void, usize, *const c_void) -> Status;
    heif_context_get_primary_image_handle(*mut c_void, *mut *mut c_void) -> Status;
    heif_image_handle_is_premultiplied_alpha(*const c_void) -> c_int;
    heif_image_handle_get_raw_color_profile_size(*const c_void) -> usize;
    heif_image_handle_get_raw_color_profile(*const c_void, *mut c_void) -> Status;
    heif_image_handle_get_nclx_color_profile(*const c_void, *mut *mut RawNclx) -> Status;
    heif_decoding_options_alloc() -> *mut RawOptions;
    heif_decode_image(*const c_void, *mut *mut c_void, c_int, c_int, *const RawOptions) -> Status;
    heif_image_get_width(*const c_void, c_int) -> c_int;
    heif_image_get_height(*const c_void, c_int) -> c_int;
    heif_image_get_bits_per_pixel_range(*const c_void, c_int) -> c_int;
    heif_image_get_plane_readonly(*const c_void, c_int, *mut c_int) -> *const u8;
}

/// libheif, loaded and initialized, until the process ends.
pub struct LibHeif(Functions);

/// The numbers that state a file's color space (ITU-T H.273).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nclx {
    pub primaries: c_int,
    pub transfer: c_int,
}

pub struct Decoded {
    pub width: u32,
    pub height: u32,
    pub samples: Samples,
}

/// RGBA with straight alpha, rows without padding.
pub enum Samples {
    /// 8 bits per channel.
    Shallow { rgba: Vec<u8>, icc: Option<Vec<u8>>, nclx: Option<Nclx> },
    /// Of high dynamic range: more than 8 bits per channel, in little-endian pairs of bytes.
    Deep {
        pairs: Vec<u8>,
        /// 9 to 16.
        bits: u32,
        nclx: Nclx,
    },
}

#[derive(Debug)]
pub enum DecodeError {
    NoDecoder(String),
    Damaged(String),
}

impl LibHeif {
    /// Loads the library and its plugins.
    ///
    /// # Errors
    /// If it is not installed, or too old.
    pub fn load(name: &str) -> Result<Self, String> {
        // SAFETY: the operator names the library; its initializers take no input.
        let library = unsafe { Library::new(name) }.map_err(|error| error.to_string())?;
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: as above.
        let functions = unsafe { Functions::find(library) }.map_err(|error| error.to_string())?;
        // SAFETY: without parameters, it takes a null pointer.
        succeeded(&unsafe { (functions.heif_init)(null()) })
            .map_err(|error| format!("{error:?}"))?;
        Ok(Self(functions))
    }

    pub fn version(&self) -> String {
        // SAFETY: a static string that ends with a zero.
        unsafe { CStr::from_ptr((self.0.heif_get_version)()) }.to_string_lossy().into_owned()
    }

    /// Returns whether HEVC and AV1 can be decoded.
    pub fn codecs(&self) -> (bool, bool) {
        // SAFETY: takes no pointer.
        let has = |format| unsafe { (self.0.heif_have_decoder_for_format)(format) != 0 };
        (has(FORMAT_HEVC), has(FORMAT_AV1))
    }

    /// Decodes the primary picture of a file, upright. Frees nothing: the process ends afterwards.
    ///
    /// # Errors
    /// If there is no decoder for it, or it is damaged.
    pub fn decode(&self, file: &'static [u8]) -> Result<Decoded, DecodeError> {
        let heif = &self.0;
        // SAFETY: every pointer comes from libheif or from a buffer of the announced size, and lives until the process
        // ends. Results are checked before they are used.
        unsafe {
            let context = (heif.heif_context_alloc)();
            (heif.heif_context_set_maximum_image_size_limit)(context, MAX_CODED_SIDE as c_int);
            (heif.heif_context_set_max_decoding_threads)(context, MAX_THREADS);
            let start = file.as_ptr().cast();
            succeeded(&(heif.heif_context_read_from_memory_without_copy)(
                context,
                start,
                file.len(),
                null(),
            ))?;
            let mut handle = null_mut();
            succeeded(&(heif.heif_context_get_primary_image_handle)(context, &raw mut handle))?;
            let nclx = self.nclx(handle);
            let hdr = nclx.filter(|nclx| nclx.is_hdr());
            let options = (heif.heif_decoding_options_alloc)();
            let version = if options.is_null() { 0 } else { (*options).version };
            if version >= 2 {
                (*options).convert_hdr_to_8bit = u8::from(hdr.is_none());
            }
            if version >= 5 {
                // Nearest neighbors, the fastest way, make colored edges jagged.
                (*options).colors.upsampling = UPSAMPLING_BILINEAR;
                (*options).colors.only_as_preferred = 1;
            }
            let chroma = match hdr {
                Some(_) => CHROMA_INTERLEAVED_RRGGBBAA_LE,
                None => CHROMA_INTERLEAVED_RGBA,
            };
            let mut image = null_mut();
            let decode = move |image: *mut *mut c_void| {
                (heif.heif_decode_image)(handle, image, COLORSPACE_RGB, chroma, options)
            };
            let mut status = decode(&raw mut image);
            if version >= 5 && status.code == ERROR_UNSUPPORTED_FEATURE {
                (*options).colors.only_as_preferred = 0;
                status = decode(&raw mut image);
            }
            succeeded(&status)?;
            let (width, height, bits, mut bytes) = self.copy(image, hdr.is_some())?;
            let is_premultiplied = (heif.heif_image_handle_is_premultiplied_alpha)(handle) != 0;
            let samples = if let Some(nclx) = hdr {
                if is_premultiplied {
                    unmultiply_deep(&mut bytes, bits);
                }
                Samples::Deep { pairs: bytes, bits, nclx }
            } else {
                if is_premultiplied {
                    unmultiply(&mut bytes);
                }
                Samples::Shallow { rgba: bytes, icc: self.icc(handle), nclx }
            };
            Ok(Decoded { width, height, samples })
        }
    }

    /// Returns the width, the height, the bits of a sample, and the samples without padding.
    unsafe fn copy(
        &self,
        image: *const c_void,
        is_deep: bool,
    ) -> Result<(u32, u32, u32, Vec<u8>), DecodeError> {
        let heif = &self.0;
        // SAFETY: as the caller promises, the image is libheif's. A plane has `height` rows of `stride` bytes.
        unsafe {
            let width = (heif.heif_image_get_width)(image, CHANNEL_INTERLEAVED);
            let height = (heif.heif_image_get_height)(image, CHANNEL_INTERLEAVED);
            let bits = (heif.heif_image_get_bits_per_pixel_range)(image, CHANNEL_INTERLEAVED);
            let mut stride = 0;
            let plane =
                (heif.heif_image_get_plane_readonly)(image, CHANNEL_INTERLEAVED, &raw mut stride);
            let odd = || DecodeError::Damaged(format!("{width} × {height}, {bits} bits"));
            let pixel = if is_deep { 8 } else { 4 };
            let (row, stride) = match (usize::try_from(width), usize::try_from(stride)) {
                (Ok(width), Ok(stride)) if width > 0 && stride >= width * pixel => {
                    (width * pixel, stride)
                }
                _ => return Err(odd()),
            };
            let is_expected = if is_deep { (9..=16).contains(&bits) } else { bits == 8 };
            if plane.is_null() || height < 1 || !is_expected {
                return Err(odd());
            }
            let mut bytes = Vec::with_capacity(row * height as usize);
            for y in 0..height as usize {
                bytes.extend_from_slice(std::slice::from_raw_parts(plane.add(y * stride), row));
            }
            Ok((width as u32, height as u32, bits as u32, bytes))
        }
    }

    unsafe fn icc(&self, handle: *const c_void) -> Option<Vec<u8>> {
        // SAFETY: as the caller promises, the handle is libheif's; the buffer has the announced size.
        unsafe {
            let size = (self.0.heif_image_handle_get_raw_color_profile_size)(handle);
            let mut profile = vec![0; size];
            let start = profile.as_mut_ptr().cast();
            let status = (self.0.heif_image_handle_get_raw_color_profile)(handle, start);
            (size > 0 && status.code == 0).then_some(profile)
        }
    }

    unsafe fn nclx(&self, handle: *const c_void) -> Option<Nclx> {
        let mut found: *mut RawNclx = null_mut();
        // SAFETY: as the caller promises, the handle is libheif's.
        unsafe {
            let status = (self.0.heif_image_handle_get_nclx_color_profile)(handle, &raw mut found);
            let found = found.as_ref().filter(|_| status.code == 0)?;
            Some(Nclx { primaries: found.primaries, transfer: found.transfer })
        }
    }
}

fn succeeded(status: &Status) -> Result<(), DecodeError> {
    if status.code == 0 {
        return Ok(());
    }
    // SAFETY: libheif's texts end with a zero and are never null.
    let text = unsafe { CStr::from_ptr(status.message) }.to_string_lossy();
    let text = format!("{text} ({}.{})", status.code, status.subcode);
    Err(match status.code {
        ERROR_UNSUPPORTED_FEATURE | ERROR_PLUGIN_LOADING => DecodeError::NoDecoder(text),
        _ => DecodeError::Damaged(text),
    })
}

/// Like [`unmultiply`], for samples of more bits in little-endian pairs of bytes.
fn unmultiply_deep(pairs: &mut [u8], bits: u32) {
    let most = (1_u64 << bits) - 1;
    for pixel in pairs.as_chunks_mut::<8>().0 {
        let alpha = u64::from(u16::from_le_bytes([pixel[6], pixel[7]]));
        if (1..most).contains(&alpha) {
            for sample in pixel[..6].as_chunks_mut::<2>().0 {
                let straight = (u64::from(u16::from_le_bytes(*sample)) * most + alpha / 2) / alpha;
                *sample = (straight.min(most) as u16).to_le_bytes();
            }
        }
    }
}

/// Turns premultiplied alpha into straight alpha.
fn unmultiply(rgba: &mut [u8]) {
    for [r, g, b, alpha] in rgba.as_chunks_mut::<4>().0 {
        if (1..u8::MAX).contains(alpha) {
            let full = u32::from(*alpha);
            for sample in [r, g, b] {
                *sample = ((u32::from(*sample) * 255 + full / 2) / full).min(255) as u8;
            }
        }
    }
}
