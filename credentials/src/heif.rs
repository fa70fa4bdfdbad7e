//! The marks of HEIC and AVIF (ISO/IEC 14496-12, 23008-12). Read-only: no result has these formats.

/// The identifier of the box with the manifest store (C2PA 2.2, A.5).
const MANIFEST_BOX: [u8; 16] = [
    0xd8, 0xfe, 0xc3, 0xd6, 0x1b, 0x0e, 0x48, 0x3c, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7e, 0xc4, 0x81,
];
/// The type of a box with a compressed manifest.
const COMPRESSED: &[u8] = b"brob";
const XMP_START: &[u8] = b"<x:xmpmeta";
const XMP_END: &[u8] = b"</x:xmpmeta>";

/// Returns the size in bytes of the manifest store, if there is one: it has a box at the top level.
pub(crate) fn manifest_bytes(file: &[u8]) -> Option<usize> {
    manifests(file).next().map(<[u8]>::len)
}

/// Returns whether a manifest may be compressed. The library reads an update of a manifest without our settings, and would
/// decompress it.
pub(crate) fn may_be_compressed(file: &[u8]) -> bool {
    manifests(file).any(|store| find(store, COMPRESSED).is_some())
}

/// Returns the contents of the boxes with manifests, up to the first damaged box.
fn manifests(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    boxes(file).filter_map(|(name, contents)| {
        (name == b"uuid" && contents.starts_with(&MANIFEST_BOX)).then_some(contents)
    })
}

/// Returns the name and the contents of the boxes at the top level.
fn boxes(file: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = file;
    std::iter::from_fn(move || {
        let head = u32::from_be_bytes(*rest.first_chunk()?);
        let (start, length) = match head {
            0 => (8, rest.len()),
            1 => (16, u64::from_be_bytes(*rest.get(8..)?.first_chunk()?).try_into().ok()?),
            length => (8, length as usize),
        };
        let name: &[u8; 4] = rest.get(4..)?.first_chunk()?;
        let contents = rest.get(start..length)?;
        rest = &rest[length..];
        Some((name, contents))
    })
}

/// Returns the XMP packet. Packets are made to be found in files of any structure (XMP part 3, 1).
pub(crate) fn xmp(file: &[u8]) -> Option<&[u8]> {
    let start = find(file, XMP_START)?;
    let end = find(&file[start..], XMP_END)?;
    Some(&file[start..start + end + XMP_END.len()])
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::path::Path;

    use retouch_catalog::{FixMode, Tool};

    use super::*;
    use crate::{
        Authority, Format, Model, Parent, Provenance, Signer, SourceType, State, Statement,
        Verifier,
    };

    #[test]
    fn marks_of_heic_and_avif_are_read() {
        let now = "2026-03-01T10:20:00Z".parse().expect("a time");
        let leaf = Authority::new("Elsewhere", now).and_then(|all| all.issue("Elsewhere", now));
        let leaf = leaf.expect("a key");
        let signer = Signer::new(&leaf.chain, &leaf.key, None, now).expect("a signer");
        let model = Model { name: "net".into(), sha256: "0".repeat(64), is_trained: true };
        let statement = Statement::of_run(Tool::MagicFix(FixMode::Edit), &model, None);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heif/tests/pictures");
        for (name, expected) in [("phone.heic", Format::Heic), ("single.avif", Format::Avif)] {
            let file = std::fs::read(folder.join(name)).expect(name);
            assert_eq!(Format::of(&file), Some(expected));
            assert_eq!((manifest_bytes(&file), xmp(&file)), (None, None), "{name}");
            assert_eq!(Provenance::read(&file, expected), None, "{name}");
            let parent = Parent { picture: &file, provenance: None };
            let mut builder = signer.key().builder(expected, &statement, &parent, now).expect(name);
            let mut out = Cursor::new(Vec::new());
            let mut source = Cursor::new(&file);
            let kind = expected.media_type();
            builder.sign(&signer.key().stamping(), kind, &mut source, &mut out).expect(name);
            let file = out.into_inner();
            let report = Verifier::new(None, None).expect("a verifier").read(&file);
            assert_eq!(report.state, State::Valid, "{name}: {report:?}");
            let said = Provenance::read(&file, expected).expect(name);
            assert!(said.ingredient.is_some(), "{name}");
            assert_eq!(said.source, Some(SourceType::composite_with_trained_media()), "{name}");
        }
    }
}
