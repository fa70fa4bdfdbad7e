//! The chunks of a WebP (RFC 9649) that hold marks.

/// The flag of the extended header for XMP.
const HAS_XMP: u8 = 0x04;
/// The flag of the extended header for transparency.
const HAS_ALPHA: u8 = 0x10;

fn chunks(webp: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = webp.get(12..).unwrap_or_default();
    std::iter::from_fn(move || {
        let name: &[u8; 4] = rest.first_chunk()?;
        let length = u32::from_le_bytes(*rest.get(4..8)?.first_chunk()?) as usize;
        let contents = rest.get(8..8usize.checked_add(length)?)?;
        rest = rest.get(8 + length + length % 2..).unwrap_or_default();
        Some((name, contents))
    })
}

pub(crate) fn manifest_bytes(webp: &[u8]) -> Option<usize> {
    chunks(webp).find(|(name, _)| *name == b"C2PA").map(|(_, contents)| contents.len())
}

pub(crate) fn xmp(webp: &[u8]) -> Option<&[u8]> {
    chunks(webp).find(|(name, _)| *name == b"XMP ").map(|(_, contents)| contents)
}

/// Returns `webp`, which has no XMP, with a packet of XMP; `None` if it is damaged.
pub(crate) fn with_xmp(webp: &[u8], packet: &str) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(webp.len() + packet.len() + 64);
    let (first, contents) = chunks(webp).next()?;
    let mut is_extended = false;
    if first == b"VP8X" {
        is_extended = true;
    } else {
        let header = extended_header(*first, contents)?;
        push(&mut body, *b"VP8X", &header);
    }
    for (name, contents) in chunks(webp) {
        push(&mut body, *name, contents);
    }
    if is_extended {
        *body.get_mut(8)? |= HAS_XMP;
    }
    push(&mut body, *b"XMP ", packet.as_bytes());
    let mut file = Vec::with_capacity(body.len() + 12);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&u32::try_from(body.len() + 4).ok()?.to_le_bytes());
    file.extend_from_slice(b"WEBP");
    file.extend_from_slice(&body);
    Some(file)
}

/// Returns the extended header of a file that has only a bitstream: its size from the bitstream, and the flags.
fn extended_header(name: [u8; 4], contents: &[u8]) -> Option<[u8; 10]> {
    let (width, height, alpha) = match &name {
        // RFC 6386, 9.1: three bytes of frame tag, three of start code, then 14 bits each, with 2 bits of scale.
        b"VP8 " => {
            let size = contents.get(6..10)?;
            let pixels = |low: u8, high: u8| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
            (pixels(size[0], size[1]), pixels(size[2], size[3]), 0)
        }
        // RFC 9649, 3.4: a signature byte, then 14 bits each, minus one, then the alpha bit.
        b"VP8L" => {
            let bits = u32::from_le_bytes(*contents.get(1..5)?.first_chunk()?);
            let alpha = if bits >> 28 & 1 == 1 { HAS_ALPHA } else { 0 };
            ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1, alpha)
        }
        _ => return None,
    };
    let mut header = [0; 10];
    header[0] = HAS_XMP | alpha;
    header[4..7].copy_from_slice(&width.checked_sub(1)?.to_le_bytes()[..3]);
    header[7..10].copy_from_slice(&height.checked_sub(1)?.to_le_bytes()[..3]);
    Some(header)
}

fn push(body: &mut Vec<u8>, name: [u8; 4], contents: &[u8]) {
    body.extend_from_slice(&name);
    body.extend_from_slice(&(contents.len() as u32).to_le_bytes());
    body.extend_from_slice(contents);
    body.resize(body.len() + contents.len() % 2, 0);
}
