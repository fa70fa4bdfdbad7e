//! The chunks of a PNG that hold marks.

/// Where the marks of a PNG belong: behind its signature and its header, before the pixels.
pub const INSERT_AT: usize = 8 + 25;
/// The chunk type of a C2PA manifest store.
const MANIFEST: &[u8; 4] = b"caBX";
/// The chunk type of international text.
const TEXT: &[u8; 4] = b"iTXt";
/// The start of an uncompressed XMP text: keyword, no compression, no language, no translated keyword.
const XMP: &[u8] = b"XML:com.adobe.xmp\0\0\0\0\0";

/// Returns the contents of the chunks of a PNG, up to the first damaged one.
fn chunks(png: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = png.get(8..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
        let name: &[u8; 4] = rest.get(4..8)?.first_chunk()?;
        let contents = rest.get(8..8usize.checked_add(length)?)?;
        rest = rest.get(12 + length..).unwrap_or_default();
        Some((name, contents))
    })
}

pub(crate) fn manifest_bytes(png: &[u8]) -> Option<usize> {
    chunks(png).find(|(name, _)| *name == MANIFEST).map(|(_, contents)| contents.len())
}

/// Returns the XMP packet, if there is an uncompressed one, as the XMP specification demands.
pub(crate) fn xmp(png: &[u8]) -> Option<&[u8]> {
    let mut texts = chunks(png).filter(|(name, _)| *name == TEXT);
    texts.find_map(|(_, contents)| contents.strip_prefix(XMP))
}

pub(crate) fn xmp_chunk(packet: &str) -> Vec<u8> {
    chunk(*TEXT, &[XMP, packet.as_bytes()].concat())
}

/// Returns `png`, which has no XMP, with a packet of XMP; `None` if it is damaged.
pub(crate) fn with_xmp(png: &[u8], packet: &str) -> Option<Vec<u8>> {
    let (head, rest) = png.split_at_checked(INSERT_AT)?;
    Some([head, &xmp_chunk(packet), rest].concat())
}

fn chunk(name: [u8; 4], contents: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(contents.len() + 12);
    chunk.extend_from_slice(&(contents.len() as u32).to_be_bytes());
    chunk.extend_from_slice(&name);
    chunk.extend_from_slice(contents);
    let checksum = crc32fast::hash(&chunk[4..]);
    chunk.extend_from_slice(&checksum.to_be_bytes());
    chunk
}
