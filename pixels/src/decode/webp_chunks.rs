//! The chunks of a WebP (RFC 9649, 2.3).

pub(super) struct Chunk<'a> {
    pub name: [u8; 4],
    /// The file from the contents on.
    pub rest: &'a [u8],
    /// The number of bytes that the contents claim to have.
    length: usize,
}

impl<'a> Chunk<'a> {
    /// Returns the contents, as far as the file has them.
    pub fn data(&self) -> &'a [u8] {
        &self.rest[..self.length.min(self.rest.len())]
    }

    /// Returns the contents; `None` if the file ends within them.
    pub fn whole(&self) -> Option<&'a [u8]> {
        self.rest.get(..self.length)
    }

    /// Returns the file behind the chunk. Contents of an odd length are padded.
    fn after(&self) -> &'a [u8] {
        self.rest.get(self.length.saturating_add(self.length & 1)..).unwrap_or_default()
    }
}

/// Returns the chunks in which the decoder looks for something: one in a simple file; all of an extended one, which
/// states its length.
pub(super) fn chunks(webp: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let first = chunks_of(webp.get(12..).unwrap_or_default()).next();
    let others = first.as_ref().filter(|first| first.name == *b"VP8X").map(Chunk::after);
    let others = others.unwrap_or_default();
    let stated = webp.get(4..).and_then(|length| length.first_chunk());
    let stated = stated.map_or(0, |length| u32::from_le_bytes(*length) as usize);
    // The decoder counts from behind the first chunk, so it looks at some bytes after the end, too.
    let left = others.len().saturating_sub(stated.saturating_sub(12));
    let others = chunks_of(others).take_while(move |chunk| chunk.rest.len() + 8 > left);
    first.into_iter().chain(others)
}

/// Returns the chunks from here to the end of the file.
pub(super) fn chunks_of(mut rest: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    std::iter::from_fn(move || {
        let (name, contents) = rest.split_first_chunk::<4>()?;
        let (length, contents) = contents.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let chunk = Chunk { name: *name, rest: contents, length };
        rest = chunk.after();
        Some(chunk)
    })
}

/// Returns the width and height of each lossy stream, in the picture itself and in frames (RFC 6386, 9.1).
pub(super) fn lossy_sizes(webp: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let streams = chunks(webp).flat_map(|chunk| {
        let is_frame = chunk.name == *b"ANMF";
        let frame = chunk.rest.get(16..).filter(|_| is_frame).unwrap_or_default();
        // The stream of a frame may follow its transparency.
        std::iter::once(chunk).chain(chunks_of(frame).take(2))
    });
    streams.filter(|chunk| chunk.name == *b"VP8 ").filter_map(|chunk| {
        let (_, start) = chunk.rest.split_first_chunk::<3>()?;
        let [a, b, c, d] = *start.strip_prefix(b"\x9d\x01\x2a")?.first_chunk()?;
        let side = |bytes| u32::from(u16::from_le_bytes(bytes) & 0x3fff);
        Some((side([a, b]), side([c, d])))
    })
}

/// Returns the contents of the first chunk of this type in an extended file, if they are whole.
pub(super) fn extension(webp: &[u8], name: [u8; 4]) -> Option<&[u8]> {
    chunks(webp).skip(1).find(|chunk| chunk.name == name)?.whole()
}
