//! The chunks of a PNG (PNG 3, 5.3).

pub(crate) struct Chunk<'a> {
    pub name: &'a [u8; 4],
    pub data: &'a [u8],
    /// Length, type, contents, and checksum.
    pub whole: &'a [u8],
}

/// Returns the chunks of a PNG, up to the first that is not whole.
pub(crate) fn chunks(png: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = png.get(8..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, named) = rest.split_first_chunk::<4>()?;
        let (name, data) = named.split_first_chunk::<4>()?;
        let data = data.get(..u32::from_be_bytes(*length) as usize)?;
        let (whole, after) = rest.split_at_checked(data.len() + 12)?;
        rest = after;
        Some(Chunk { name, data, whole })
    })
}

pub(crate) fn chunks_before_pixels(png: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    chunks(png).take_while(|chunk| chunk.name != b"IDAT")
}
