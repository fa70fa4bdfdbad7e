//! Recognizes formats that people upload as pictures but that are not accepted, and says what to do instead.

use std::fmt;

use super::png_chunks::chunks_before_pixels;

/// Maximum offset of the start of an SVG in a file, in bytes: a prolog and comments may come first.
const SVG_PROLOG_BYTES: usize = 4096;
/// TIFF tags (TIFF 6.0, TIFF/EP, DNG 1.7).
const NEW_SUBFILE_TYPE: u16 = 0x00fe;
const MAKE: u16 = 0x010f;
const SUB_IFDS: u16 = 0x014a;
const DNG_VERSION: u16 = 0xc612;
/// TIFF's type of numbers of 32 bits.
const LONG: u16 = 4;

/// A kind of file that is known and not accepted. Its text names it and says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// A photo as a camera's sensor saw it, in this format.
    Raw(&'static str),
    /// SVG.
    Drawing,
    /// Several frames in this format.
    Animation(&'static str),
    Video,
    /// PDF.
    Document,
    /// A picture in this other format.
    Other(&'static str),
    /// A picture in this format; this installation has no decoder for it.
    Unavailable(&'static str),
}

impl Foreign {
    /// Recognizes a file by its first bytes; `None` for any other file.
    pub fn of(file: &[u8]) -> Option<Self> {
        let starts = |start: &[u8]| file.starts_with(start);
        if let Some(foreign) = of_boxes(file).or_else(|| of_tiff(file)) {
            return Some(foreign);
        }
        Some(match file {
            _ if starts(b"GIF8") && is_animated_gif(file) => Self::Animation("GIF"),
            _ if starts(b"GIF8") => Self::Other("GIF"),
            _ if starts(b"%PDF") => Self::Document,
            _ if starts(b"BM") && file.get(6..10) == Some(&[0; 4]) => Self::Other("BMP"),
            _ if starts(b"8BPS") => Self::Other("Photoshop"),
            _ if starts(&[0, 0, 1, 0]) => Self::Other("ICO"),
            _ if starts(&[0xff, 0x0a]) => Self::Other("JPEG XL"),
            _ if starts(&[0xff, 0x4f, 0xff, 0x51]) => Self::Other("JPEG 2000"),
            _ if starts(&[0x76, 0x2f, 0x31, 0x01]) => Self::Other("OpenEXR"),
            _ if starts(b"#?RADIANCE") => Self::Other("Radiance HDR"),
            _ if starts(b"gimp xcf") => Self::Other("GIMP"),
            _ if starts(b"FUJIFILMCCD-RAW") => Self::Raw("Fujifilm RAF"),
            _ if starts(b"FOVb") => Self::Raw("Sigma X3F"),
            _ if starts(b"\0MRM") => Self::Raw("Minolta MRW"),
            _ if starts(&[0x1a, 0x45, 0xdf, 0xa3]) => Self::Video,
            _ if starts(b"RIFF") && file.get(8..12) == Some(b"AVI ") => Self::Video,
            _ if is_svg(file) => Self::Drawing,
            _ => return None,
        })
    }

    /// Returns a code for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Raw(_) => "image_raw",
            Self::Drawing => "image_drawing",
            Self::Animation(_) => "image_animation",
            Self::Video => "image_video",
            Self::Document => "image_document",
            Self::Other(_) => "image_other_format",
            Self::Unavailable(_) => "image_format_unavailable",
        }
    }

    /// Returns what it is, and what to do with it before anything else. Lacks the period.
    pub fn advice(self) -> String {
        match self {
            Self::Raw(name) => format!("This is a RAW photo ({name}). Export it as JPEG or PNG"),
            Self::Drawing => "This is a drawing (SVG). Export it as PNG".to_owned(),
            Self::Animation(name) => {
                format!("This is an animation ({name}). Save the frame that you want as PNG")
            }
            Self::Video => {
                "This is a video. Save the frame that you want as JPEG or PNG".to_owned()
            }
            Self::Document => {
                "This is a document (PDF). Export the page that you want as JPEG or PNG".to_owned()
            }
            Self::Other(name) => format!("This is a {name} file. Save it as JPEG or PNG"),
            Self::Unavailable(name) => {
                format!("{name} files cannot be read here. Save the picture as JPEG or PNG")
            }
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and upload that.", self.advice())
    }
}

/// Recognizes an animation in a format whose still pictures are accepted.
pub(super) fn animation(file: &[u8]) -> Option<Foreign> {
    if file.starts_with(b"\x89PNG") {
        return is_animated_png(file).then_some(Foreign::Animation("APNG"));
    }
    // The extended header's flags (RFC 9649, 2.7).
    let is_webp = file.starts_with(b"RIFF") && file.get(8..16) == Some(b"WEBPVP8X");
    let is_animated = is_webp && file.get(20).is_some_and(|flags| flags & 2 != 0);
    is_animated.then_some(Foreign::Animation("WebP"))
}

/// An animation announces itself and the number of its frames before its pixels (PNG 3, 4.9 and 11.3.5.1). Some programs
/// announce a single frame, which is a still picture.
fn is_animated_png(png: &[u8]) -> bool {
    let control = chunks_before_pixels(png).find(|chunk| chunk.name == b"acTL");
    let frames = control.and_then(|chunk| chunk.data.first_chunk());
    frames.is_some_and(|frames| u32::from_be_bytes(*frames) > 1)
}

/// Programs mark animations with the extension that says how often to repeat.
fn is_animated_gif(gif: &[u8]) -> bool {
    gif.windows(11).take(4096).any(|window| window == b"NETSCAPE2.0")
}

/// Recognizes files of boxes by the brand in the first (ISO/IEC 14496-12).
fn of_boxes(file: &[u8]) -> Option<Foreign> {
    let kind = file.get(4..8)?;
    match kind {
        b"JXL " => return Some(Foreign::Other("JPEG XL")),
        b"jP  " => return Some(Foreign::Other("JPEG 2000")),
        b"moov" | b"mdat" | b"wide" => return Some(Foreign::Video),
        b"ftyp" => {}
        _ => return None,
    }
    let length = u32::from_be_bytes(*file.first_chunk()?) as usize;
    let brands = file.get(8..length.min(file.len()))?;
    let (major, others) = (brands.get(..4)?, brands.get(8..).unwrap_or_default());
    let has = |wanted: &[u8]| others.chunks_exact(4).any(|brand| brand == wanted);
    Some(match major {
        b"crx " => Foreign::Raw("Canon CR3"),
        b"avis" => Foreign::Animation("AVIF"),
        b"msf1" | b"hevc" | b"hevx" => Foreign::Animation("HEIC"),
        b"heic" | b"heix" | b"heim" | b"heis" => Foreign::Unavailable("HEIC"),
        b"avif" => Foreign::Unavailable("AVIF"),
        b"mif1" | b"mif2" if has(b"avif") => Foreign::Unavailable("AVIF"),
        b"mif1" | b"mif2" if has(b"heic") || has(b"heix") => Foreign::Unavailable("HEIC"),
        b"mif1" | b"mif2" => Foreign::Other("HEIF"),
        _ => Foreign::Video,
    })
}

/// Recognizes TIFF, and the raw formats that are built like it.
fn of_tiff(file: &[u8]) -> Option<Foreign> {
    let is_little = match file.first_chunk()? {
        b"IIU\0" => return Some(Foreign::Raw("Panasonic RW2")),
        b"IIRO" | b"IIRS" | b"MMOR" => return Some(Foreign::Raw("Olympus ORF")),
        b"II*\0" | b"II+\0" => true,
        b"MM\0*" | b"MM\0+" => false,
        _ => return None,
    };
    if file.get(8..10) == Some(b"CR") {
        return Some(Foreign::Raw("Canon CR2"));
    }
    let tags = Tags { file, is_little };
    if tags.find(DNG_VERSION).is_some() {
        return Some(Foreign::Raw("DNG"));
    }
    // A camera's raw file keeps the sensor's picture beside a small one, which comes first.
    let is_raw = tags.find(SUB_IFDS).is_some()
        || tags.find(NEW_SUBFILE_TYPE).is_some_and(|(_, value)| value == 1);
    let maker = tags.text(MAKE).filter(|_| is_raw).unwrap_or_default();
    let maker = maker.to_ascii_uppercase();
    let raw = [
        ("NIKON", "Nikon NEF"),
        ("SONY", "Sony ARW"),
        ("PENTAX", "Pentax PEF"),
        ("RICOH", "Pentax PEF"),
        ("SAMSUNG", "Samsung SRW"),
        ("HASSELBLAD", "Hasselblad 3FR"),
        ("PHASE ONE", "Phase One IIQ"),
        ("KODAK", "Kodak DCR"),
        ("EPSON", "Epson ERF"),
    ];
    let found = raw.iter().find(|(name, _)| maker.starts_with(name));
    Some(found.map_or(Foreign::Other("TIFF"), |(_, format)| Foreign::Raw(format)))
}

/// The first directory of a TIFF.
struct Tags<'a> {
    file: &'a [u8],
    is_little: bool,
}

impl Tags<'_> {
    fn short(&self, at: usize) -> Option<u16> {
        let bytes = *self.file.get(at..)?.first_chunk()?;
        Some(if self.is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    fn long(&self, at: usize) -> Option<usize> {
        let bytes = *self.file.get(at..)?.first_chunk()?;
        let number =
            if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) };
        Some(number as usize)
    }

    /// Returns where an entry is and its value as a number.
    fn find(&self, tag: u16) -> Option<(usize, usize)> {
        let start = self.long(4)?;
        let entries = (0..usize::from(self.short(start)?)).map(|entry| start + 2 + entry * 12);
        let mut found = entries.filter(|at| self.short(*at) == Some(tag));
        let at = found.next()?;
        let value = if self.short(at + 2)? == LONG {
            self.long(at + 8)
        } else {
            self.short(at + 8).map(usize::from)
        };
        Some((at, value?))
    }

    fn text(&self, tag: u16) -> Option<String> {
        let (at, _) = self.find(tag)?;
        let length = self.long(at + 4)?.min(64);
        let start = if length <= 4 { at + 8 } else { self.long(at + 8)? };
        let text = self.file.get(start..start.checked_add(length)?)?;
        Some(String::from_utf8_lossy(text).trim_end_matches('\0').trim().to_owned())
    }
}

fn is_svg(file: &[u8]) -> bool {
    let head = &file[..file.len().min(SVG_PROLOG_BYTES)];
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    text.starts_with(b"<") && text.windows(4).any(|window| window.eq_ignore_ascii_case(b"<svg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiff(entries: &[(u16, u16, u32, u32)], tail: &[u8]) -> Vec<u8> {
        let mut file = b"II*\0\x08\0\0\0".to_vec();
        file.extend_from_slice(&(entries.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in entries {
            file.extend_from_slice(&tag.to_le_bytes());
            file.extend_from_slice(&kind.to_le_bytes());
            file.extend_from_slice(&count.to_le_bytes());
            file.extend_from_slice(&value.to_le_bytes());
        }
        file.extend_from_slice(&[0; 4]);
        file.extend_from_slice(tail);
        file
    }

    #[test]
    fn foreign_files_are_refused_by_name_with_what_to_do() {
        let maker = 8 + 2 + 2 * 12 + 4;
        let nikon = tiff(&[(MAKE, 2, 18, maker), (SUB_IFDS, LONG, 1, 0)], b"NIKON CORPORATION\0");
        let sony = tiff(&[(NEW_SUBFILE_TYPE, LONG, 1, 1), (MAKE, 2, 5, maker)], b"SONY\0");
        let scanned = tiff(&[(MAKE, 2, 6, 8 + 2 + 12 + 4)], b"NIKON\0");
        let dng = tiff(&[(DNG_VERSION, 1, 4, 0x0401)], b"");
        let moving = b"GIF89a\x01\0\x01\0\0\0\0!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0;".to_vec();
        for (file, expected) in [
            (b"\0\0\0\x18ftypcrx \0\0\0\x01crx isom".to_vec(), Foreign::Raw("Canon CR3")),
            (b"II*\0\x10\0\0\0CR\x02\0".to_vec(), Foreign::Raw("Canon CR2")),
            (nikon, Foreign::Raw("Nikon NEF")),
            (sony, Foreign::Raw("Sony ARW")),
            (dng, Foreign::Raw("DNG")),
            (b"FUJIFILMCCD-RAW 0201".to_vec(), Foreign::Raw("Fujifilm RAF")),
            (b"IIRO\x08\0\0\0".to_vec(), Foreign::Raw("Olympus ORF")),
            (b"IIU\0\x18\0\0\0".to_vec(), Foreign::Raw("Panasonic RW2")),
            (scanned, Foreign::Other("TIFF")),
            (b"MM\0*\0\0\0\x08\0".to_vec(), Foreign::Other("TIFF")),
            (b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0".to_vec(), Foreign::Other("BMP")),
            (b"GIF89a\x01\0\x01\0\0\0\0;".to_vec(), Foreign::Other("GIF")),
            (moving, Foreign::Animation("GIF")),
            (b"\xff\x0a\x01".to_vec(), Foreign::Other("JPEG XL")),
            (b"%PDF-1.7".to_vec(), Foreign::Document),
            (b"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<svg/>".to_vec(), Foreign::Drawing),
            (b"\0\0\0\x14ftypisom\0\0\0\x01mp42".to_vec(), Foreign::Video),
            (b"\0\0\0\x14ftypqt  \0\0\0\x01qt  ".to_vec(), Foreign::Video),
            (b"\x1a\x45\xdf\xa3".to_vec(), Foreign::Video),
            (b"\0\0\0\x14ftypavis\0\0\0\0avif".to_vec(), Foreign::Animation("AVIF")),
            (b"\0\0\0\x14ftyphevc\0\0\0\0heic".to_vec(), Foreign::Animation("HEIC")),
            (b"\0\0\0\x14ftypmif1\0\0\0\0heic".to_vec(), Foreign::Unavailable("HEIC")),
            (b"\0\0\0\x14ftypmif1\0\0\0\0jpeg".to_vec(), Foreign::Other("HEIF")),
        ] {
            let found = Foreign::of(&file);
            assert_eq!(found, Some(expected), "{}", String::from_utf8_lossy(&file));
            let text = expected.to_string();
            assert!(text.ends_with("and upload that."), "{text}");
        }
        assert_eq!(Foreign::of(b"<p>a page</p>"), None);
        assert_eq!(Foreign::of(b"II*\0\xff\xff\xff\xff"), Some(Foreign::Other("TIFF")));
        assert_eq!(Foreign::of(b""), None);
    }

    #[test]
    fn animations_in_accepted_formats_are_found() {
        let frames = b"\x89PNG\r\n\x1a\n\0\0\0\x01IHDR.\0\0\0\0\0\0\0\x08acTL\0\0\0";
        let apng = |count: u8| [&frames[..], &[count], &[0; 8]].concat();
        assert_eq!(animation(&apng(2)), Some(Foreign::Animation("APNG")));
        assert_eq!(animation(&apng(1)), None);
        let still =
            b"\x89PNG\r\n\x1a\n\0\0\0\x01IDAT.\0\0\0\0\0\0\0\x08acTL\0\0\0\x02\0\0\0\0\0\0\0\0";
        assert_eq!(animation(still), None);
        let mut webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x02".to_vec();
        assert_eq!(animation(&webp), Some(Foreign::Animation("WebP")));
        webp[20] = 0x10;
        assert_eq!(animation(&webp), None);
    }
}
