//! Bounds what a manifest store may cost before the library parses it: the stack, because the library follows nested tags
//! without a limit and an overflow ends the process; memory, because a map of three bytes becomes hundreds; and time,
//! because it looks up every assertion among all references.
//!
//! The bounds are far above what any legitimate store needs, and hold wherever in the store the library finds the boxes.

const MAX_STORE_BYTES: usize = 8 << 20;
/// Maximum number of boxes that contain others. A manifest has about ten.
const MAX_BOXES: usize = 2048;
/// Maximum number of values in all boxes of CBOR and JSON together.
const MAX_VALUES: usize = 1 << 15;
/// How deep arrays, maps, and tags of CBOR may nest.
const MAX_DEPTH: usize = 64;
/// Byte strings of at least this length may be parsed as CBOR in turn, as the headers of a signature are.
const LONG_BYTES: usize = 1 << 10;

/// The last twelve bytes of the types of boxes, whose first four say `json` or `cbor` too (ISO/IEC 19566-5, table B.1).
const TYPE_TAIL: [u8; 12] =
    [0x00, 0x11, 0x00, 0x10, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71];

/// Peak memory of parsing beside the file, in bytes: the library keeps several copies of the store, and up to
/// 850 bytes for a value.
pub(crate) const PARSING_BYTES: u64 = 4 * MAX_STORE_BYTES as u64 + 850 * MAX_VALUES as u64;

/// Checks a manifest store.
///
/// # Errors
/// The bound that it exceeds, in a few words.
pub(crate) fn check(store: &[u8]) -> Result<(), &'static str> {
    if store.len() > MAX_STORE_BYTES {
        return Err("its manifests are too large");
    }
    if occurrences(store, *b"jumb").count() > MAX_BOXES {
        return Err("its manifests have too many boxes");
    }
    let mut values = Values { left: MAX_VALUES };
    for at in occurrences(store, *b"json") {
        let contents = &store[at + 4..];
        if !contents.starts_with(&TYPE_TAIL) {
            let length = match size_before(store, at) {
                // One of eight bytes follows.
                1 => usize::MAX,
                length => length.saturating_sub(8),
            };
            values.count_json(&contents[..length.min(contents.len())])?;
        }
    }
    for at in occurrences(store, *b"cbor") {
        let start = if size_before(store, at) == 1 { at + 12 } else { at + 4 };
        values.count_cbor(store.get(start..).unwrap_or_default())?;
    }
    Ok(())
}

/// Returns the size of a box in bytes, which precedes its type; 0 if there is no room for it.
fn size_before(store: &[u8], at: usize) -> usize {
    let size = at.checked_sub(4).and_then(|start| store[start..].first_chunk());
    size.map_or(0, |size| u32::from_be_bytes(*size) as usize)
}

fn occurrences(bytes: &[u8], name: [u8; 4]) -> impl Iterator<Item = usize> {
    bytes.windows(4).enumerate().filter_map(move |(at, found)| (found == name).then_some(at))
}

struct Values {
    left: usize,
}

impl Values {
    fn count(&mut self, values: usize) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(values).ok_or("its manifests have too many values")?;
        Ok(())
    }

    /// Returns an upper bound for the number of values in a JSON text.
    fn count_json(&mut self, text: &[u8]) -> Result<(), &'static str> {
        let separators = text.iter().filter(|letter| b"{[:,".contains(letter));
        self.count(separators.count() + 1)
    }

    /// Counts the values of the first value of CBOR (RFC 8949) in `bytes`, and of what its long byte strings hold. Stops
    /// where the bytes are not CBOR.
    fn count_cbor(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let mut strings = Vec::new();
        if !self.count_one(bytes, &mut strings)? {
            return Err("its manifests nest too deep");
        }
        while let Some(string) = strings.pop() {
            // Another parser reads these, and limits the depth itself; most are not CBOR at all.
            let _ = self.count_one(string, &mut strings)?;
        }
        Ok(())
    }

    /// Counts the values of the first value in `bytes`, and collects its long byte strings. Returns false where they nest too
    /// deep.
    fn count_one<'a>(
        &mut self,
        mut bytes: &'a [u8],
        strings: &mut Vec<&'a [u8]>,
    ) -> Result<bool, &'static str> {
        // How many values each open level still expects; `None` if a break ends it.
        let mut levels: Vec<Option<u64>> = Vec::new();
        while let Some(head) = Head::take(&mut bytes) {
            self.count(1)?;
            let opened = match head {
                Head::Break if levels.last() == Some(&None) => {
                    levels.pop();
                    None
                }
                Head::Break => return Ok(true),
                Head::String(length) => {
                    let Some((string, rest)) = bytes.split_at_checked(length) else {
                        return Ok(true);
                    };
                    if length >= LONG_BYTES {
                        strings.push(string);
                    }
                    bytes = rest;
                    None
                }
                Head::Simple | Head::Level(Some(0)) => None,
                Head::Level(values) => Some(values),
            };
            if let Some(values) = opened {
                if levels.len() >= MAX_DEPTH {
                    return Ok(false);
                }
                levels.push(values);
                continue;
            }
            // A value is complete, and perhaps the levels that it ends.
            loop {
                match levels.last_mut() {
                    None => return Ok(true),
                    Some(None) => break,
                    Some(Some(values)) => *values -= 1,
                }
                if !matches!(levels.last(), Some(Some(0))) {
                    break;
                }
                levels.pop();
            }
        }
        Ok(true)
    }
}

/// The head of a value of CBOR.
enum Head {
    /// Ends a level of indefinite length.
    Break,
    /// A value without contents.
    Simple,
    /// A string of this many bytes.
    String(usize),
    /// An array, a map, a tag, or a string in parts; the number of values in it, or `None` for an indefinite length.
    Level(Option<u64>),
}

impl Head {
    /// Takes a head off the bytes; `None` if there is none.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        if *first == 0xff {
            *bytes = rest;
            return Some(Self::Break);
        }
        let size = match first & 0x1f {
            0..=23 | 31 => 0,
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return None,
        };
        let (argument, rest) = rest.split_at_checked(size)?;
        *bytes = rest;
        let argument = match first & 0x1f {
            31 => None,
            small @ ..=23 => Some(u64::from(small)),
            _ => Some(argument.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))),
        };
        Some(match (first >> 5, argument) {
            (2 | 3, Some(length)) => Self::String(usize::try_from(length).unwrap_or(usize::MAX)),
            (2..=4, values) => Self::Level(values),
            (5, values) => Self::Level(values.map(|pairs| pairs.saturating_mul(2))),
            (6, Some(_)) => Self::Level(Some(1)),
            (6, None) => return None,
            _ => Self::Simple,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(name: [u8; 4], contents: &[u8]) -> Vec<u8> {
        let size = (contents.len() as u32 + 8).to_be_bytes();
        [size.as_slice(), &name, contents].concat()
    }

    fn of_cbor(value: &[u8]) -> Result<(), &'static str> {
        check(&boxed(*b"cbor", value))
    }

    /// An array of `values`, each the given bytes.
    fn many(values: u32, value: &[u8]) -> Vec<u8> {
        [&[0x9a], values.to_be_bytes().as_slice(), &value.repeat(values as usize)].concat()
    }

    #[test]
    fn deep_nesting_is_refused_whatever_nests() {
        for opening in [0xc0, 0x81, 0x9f, 0xd8] {
            // 0xd8 takes one byte of tag number.
            let step = if opening == 0xd8 { vec![opening, 0xc8] } else { vec![opening] };
            assert_eq!(of_cbor(&[step.repeat(60), vec![0]].concat()), Ok(()));
            let error = of_cbor(&[step.repeat(70), vec![0]].concat()).unwrap_err();
            assert_eq!(error, "its manifests nest too deep");
        }
        let pairs = [0xa1, 0x61, b'x'].repeat(70);
        assert!(of_cbor(&pairs).is_err());
    }

    #[test]
    fn contents_are_found_where_the_library_finds_them() {
        let bomb = [0xc0; 99];
        let long = [&1_u32.to_be_bytes(), b"cbor".as_slice(), &115_u64.to_be_bytes(), &bomb];
        for store in [boxed(*b"cbor", &bomb), long.concat()] {
            assert!(check(&store).is_err());
        }
        // Bytes elsewhere that look like values are not read.
        let hash = [&[0x58, 99], &bomb[..]].concat();
        assert_eq!(of_cbor(&hash), Ok(()));
        let blob = [&[0x59, 0x10, 0], [0xc0; 4096].as_slice()].concat();
        assert_eq!(of_cbor(&blob), Ok(()));
        assert_eq!(of_cbor(&[&[0x46], &[0; 6][..], &bomb].concat()), Ok(()));
    }

    #[test]
    fn many_values_are_refused_and_long_strings_are_not() {
        assert_eq!(of_cbor(&many(10_000, &[0xa1, 0, 0])), Ok(()));
        let error = "its manifests have too many values";
        assert_eq!(of_cbor(&many(20_000, &[0xa1, 0, 0])), Err(error));
        let twice = [boxed(*b"cbor", &many(20_000, &[0])), boxed(*b"cbor", &many(20_000, &[0]))];
        assert_eq!(check(&twice.concat()), Err(error));
        // A signature parses the bytes of its header.
        let inside = many(40_000, &[0]);
        let length = (inside.len() as u32).to_be_bytes();
        let header = [&[0x84, 0x5a], length.as_slice(), &inside].concat();
        assert_eq!(of_cbor(&header), Err(error));
        let padding = [&[0x5a], 100_000_u32.to_be_bytes().as_slice(), &vec![0; 100_000]].concat();
        assert_eq!(of_cbor(&padding), Ok(()));
        assert_eq!(check(&boxed(*b"json", "[{}]".repeat(20_000).as_bytes())), Err(error));
        assert_eq!(check(&boxed(*b"json", "\"x\"".repeat(90_000).as_bytes())), Ok(()));
        let kind = [b"json".as_slice(), &TYPE_TAIL, &vec![b','; 90_000]].concat();
        assert_eq!(check(&boxed(*b"jumd", &kind)), Ok(()));
    }

    #[test]
    fn large_stores_and_many_boxes_are_refused() {
        assert_eq!(check(&vec![0; MAX_STORE_BYTES]), Ok(()));
        assert!(check(&vec![0; MAX_STORE_BYTES + 1]).is_err());
        assert_eq!(check(&boxed(*b"jumb", b"").repeat(2000)), Ok(()));
        assert!(check(&boxed(*b"jumb", b"").repeat(2100)).is_err());
    }

    #[test]
    fn damaged_bytes_are_left_to_the_library() {
        for bytes in
            [&[][..], &[0xff], &[0x5b, 0xff], &[0x9b], &[0x1c], &[0xdf, 0], &[0x5a, 0, 0, 1, 0]]
        {
            assert_eq!(of_cbor(bytes), Ok(()), "{bytes:x?}");
        }
        assert_eq!(check(b"cbor"), Ok(()));
        assert_eq!(check(b"json"), Ok(()));
    }
}
