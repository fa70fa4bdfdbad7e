//! Pictures that were changed, stripped, signed by others, or made to break the reader.

use std::io::Cursor;

use c2pa::{Builder, Context, SigningAlg, create_signer};
use retouch_credentials::{Claim, Format, Leaf, Provenance, SourceType, State, Verifier};
use serde_json::json;

use crate::{FORMATS, codes, fixed, leaf, picture, pixels, signer_of, verifier_of, without_chunk};

#[test]
fn changed_pixels_make_a_manifest_invalid() {
    let signer = signer_of("Example Ltd");
    for format in FORMATS {
        let mut signed = fixed(&signer, format);
        let at = match format {
            Format::Png => signed.len() - 40,
            // The manifest precedes the pixels of a JPEG, and follows those of a WebP.
            Format::Jpeg => signed.len() - 500,
            Format::WebP | Format::Heic | Format::Avif => 500,
        };
        signed[at] ^= 1;
        let report = verifier_of(&signer).read(&signed);
        assert_eq!(report.state, State::Invalid, "{format:?}");
        assert!(codes(&report).contains(&"assertion.dataHash.mismatch"), "{format:?}: {report:?}");
    }
}

#[test]
fn a_stripped_manifest_leaves_the_mark_in_xmp() {
    let signer = signer_of("Example Ltd");
    let stripped = without_chunk(&fixed(&signer, Format::Png), *b"caBX");
    let report = verifier_of(&signer).read(&stripped);
    assert_eq!((report.state, report.claim.is_none()), (State::Absent, true));
    assert!(!report.is_source_claimed, "anybody can change XMP");
    assert_eq!(report.source, Some(SourceType::composite_with_trained_media()));

    let bare = without_chunk(&stripped, *b"iTXt");
    assert_eq!(bare, picture(Format::Png));
    let report = verifier_of(&signer).read(&bare);
    assert_eq!((report.state, report.source), (State::Absent, None));
}

#[test]
fn a_manifest_does_not_fit_another_picture() {
    let signer = signer_of("Example Ltd");
    let signed = fixed(&signer, Format::Png);
    let bare = picture(Format::Png);
    let marks = &signed[33..33 + signed.len() - bare.len()];
    let other = image::RgbImage::from_pixel(97, 61, image::Rgb([1, 2, 3]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    other.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let other = bytes.into_inner();
    let moved = [&other[..33], marks, &other[33..]].concat();
    assert_eq!(pixels(&moved), pixels(&other));
    let report = verifier_of(&signer).read(&moved);
    assert_eq!(report.state, State::Invalid);
    assert!(codes(&report).contains(&"assertion.dataHash.mismatch"), "{report:?}");
}

#[test]
fn a_foreign_signature_is_valid_and_trusted_only_if_the_operator_trusts_it() {
    let (own, foreign) = (signer_of("Example Ltd"), leaf("Elsewhere GmbH"));
    let elsewhere =
        retouch_credentials::Signer::new(&foreign.chain, &foreign.key, None, crate::now()).unwrap();
    for format in FORMATS {
        let signed = fixed(&elsewhere, format);
        for verifier in [verifier_of(&own), Verifier::new(None, None).unwrap()] {
            let report = verifier.read(&signed);
            assert_eq!(report.state, State::Valid, "{format:?}: {report:?}");
            assert_eq!(report.problems, [], "{format:?}");
            assert!(report.claim.unwrap().signature.is_some_and(|by| !by.is_ours));
        }
        let trusting = Verifier::new(Some(own.chain()), Some(&foreign.chain)).unwrap();
        let report = trusting.read(&signed);
        assert_eq!(report.state, State::Trusted, "{format:?}: {report:?}");
        assert!(report.claim.unwrap().signature.is_some_and(|by| !by.is_ours));
        assert_eq!(trusting.read(&fixed(&own, format)).state, State::Trusted);
    }
    assert!(Verifier::new(None, Some("not a certificate")).is_err());
}

#[test]
fn damaged_manifests_are_never_believed() {
    let signer = signer_of("Example Ltd");
    let verifier = verifier_of(&signer);
    for format in FORMATS {
        let signed = fixed(&signer, format);
        let whole = format!("{:?}", verifier.read(&signed).claim);
        // A prime, so that all kinds of fields are hit.
        for at in (0..signed.len()).step_by(61) {
            let mut damaged = signed.clone();
            damaged[at] ^= 0x55;
            let report = verifier.read(&damaged);
            // Only changes of padding have no consequence.
            if matches!(report.state, State::Valid | State::Trusted) {
                assert_eq!(format!("{:?}", report.claim), whole, "{format:?}, byte {at}");
            }
        }
        for length in (0..signed.len()).step_by(97) {
            let state = verifier.read(&signed[..length]).state;
            assert!(matches!(state, State::Absent | State::Invalid), "{format:?} cut at {length}");
        }
    }
}

#[test]
fn hostile_boxes_are_refused() {
    let verifier = verifier_of(&signer_of("Example Ltd"));
    let nested = {
        // Boxes inside boxes: length, type "jumb", and again.
        let depth = 50_000_u32;
        let mut nested = Vec::new();
        for level in 0..depth {
            nested.extend_from_slice(&((depth - level) * 8).to_be_bytes());
            nested.extend_from_slice(b"jumb");
        }
        nested
    };
    let empty = [0; 64].to_vec();
    let endless = [&u32::MAX.to_be_bytes()[..], b"jumb", &[0xff; 64]].concat();
    for contents in [nested, empty, endless, Vec::new()] {
        let bare = picture(Format::Png);
        let mut chunk = (contents.len() as u32).to_be_bytes().to_vec();
        chunk.extend_from_slice(b"caBX");
        chunk.extend_from_slice(&contents);
        chunk.extend_from_slice(&crc32fast::hash(&chunk[4..]).to_be_bytes());
        let file = [&bare[..33], &chunk, &bare[33..]].concat();
        let report = verifier.read(&file);
        assert_eq!(report.state, State::Invalid, "{} bytes", contents.len());
        assert!(report.claim.is_none() && !report.problems.is_empty());
    }
}

#[test]
fn what_is_no_picture_says_nothing() {
    let verifier = verifier_of(&signer_of("Example Ltd"));
    for file in [&b""[..], b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBP"] {
        assert_eq!(verifier.read(file).state, State::Absent, "{file:?}");
    }
    for format in FORMATS {
        let report = verifier.read(&picture(format));
        assert_eq!((report.state, report.source, report.problems), (State::Absent, None, vec![]));
    }
}

#[test]
fn compressed_manifests_are_not_read() {
    let leaf = leaf("Example Ltd");
    let (part, verifier) = (picture(Format::Png), Verifier::new(None, None).unwrap());
    let plain = composite(&part, 1, &leaf);
    let settings = json!({"prefer_compress_manifests": true});
    let compressed = composite_with(&settings, &part, 1, &leaf);
    assert!(compressed.windows(4).any(|name| name == b"brob"), "it is compressed");
    assert_eq!(verifier.read(&plain).state, State::Valid);
    let report = verifier.read(&compressed);
    assert_eq!((report.state, report.claim.is_none()), (State::Invalid, true), "{report:?}");
    assert_eq!(Provenance::read(&compressed, Format::Png), None);
}

/// Returns a picture that claims to be a composite of `count` copies of `part`.
fn composite(part: &[u8], count: usize, leaf: &Leaf) -> Vec<u8> {
    composite_with(&json!({}), part, count, leaf)
}

/// Like [`composite`], with these settings of the library's core.
fn composite_with(
    core: &serde_json::Value,
    part: &[u8],
    count: usize,
    Leaf { chain, key }: &Leaf,
) -> Vec<u8> {
    let signer =
        create_signer::from_keys(chain.as_bytes(), key.as_bytes(), SigningAlg::Es256, None);
    let settings = json!({"verify": {"verify_after_sign": false}, "core": core}).to_string();
    let context = Context::new().with_settings(settings).unwrap().into_shared();
    let actions = json!({"actions": [{
        "action": "c2pa.created",
        "digitalSourceType": "http://cv.iptc.org/newscodes/digitalsourcetype/compositeCapture",
    }]});
    let definition =
        json!({"assertions": [{"label": "c2pa.actions.v2", "data": actions, "created": true}]});
    let mut builder =
        Builder::from_shared_context(&context).with_definition(definition.to_string()).unwrap();
    let ingredient = json!({"title": "a part", "relationship": "componentOf"}).to_string();
    for _ in 0..count {
        let mut part = Cursor::new(part);
        builder.add_ingredient_from_stream(ingredient.as_str(), "image/png", &mut part).unwrap();
    }
    let (mut source, mut signed) = (Cursor::new(picture(Format::Png)), Cursor::new(Vec::new()));
    builder.sign(signer.unwrap().as_ref(), "image/png", &mut source, &mut signed).unwrap();
    signed.into_inner()
}

fn ingredients_in(claim: &Claim) -> usize {
    let within = |claim: &Option<Claim>| claim.as_ref().map_or(0, ingredients_in);
    claim.ingredients.iter().map(|ingredient| 1 + within(&ingredient.claim)).sum()
}

#[test]
fn a_report_stays_small_however_often_its_ingredients_are_named() {
    let own = leaf("Example Ltd");
    let mut file = picture(Format::Png);
    // Each of 8 parts is made of 8 parts, and so on: 8 + 64 + 512 + 4096, in four manifests.
    for _ in 0..4 {
        file = composite(&file, 8, &own);
    }
    let report = Verifier::new(None, None).unwrap().read(&file);
    assert_eq!(report.problems, []);
    let claim = report.claim.expect("a claim");
    assert_eq!(claim.ingredients.len(), 8, "the nearest are complete");
    assert_eq!(ingredients_in(&claim), 256);
}

fn boxed(name: [u8; 4], contents: &[u8]) -> Vec<u8> {
    [(contents.len() as u32 + 8).to_be_bytes().as_slice(), &name, contents].concat()
}

/// A box of a kind and a label that contains others.
fn labeled(kind: [u8; 4], label: &str, others: &[Vec<u8>]) -> Vec<u8> {
    const TAIL: [u8; 12] = [0x00, 0x11, 0x00, 0x10, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71];
    let description = [kind.as_slice(), &TAIL, &[3], label.as_bytes(), &[0]].concat();
    boxed(*b"jumb", &[boxed(*b"jumd", &description), others.concat()].concat())
}

/// A picture whose manifest has this claim and this assertion, several times.
fn with_manifest(claim: &[u8], (assertion, times): (&[u8], usize)) -> Vec<u8> {
    let assertion = labeled(*b"cbor", "a.b", &[boxed(*b"cbor", assertion)]);
    let parts = [
        labeled(*b"c2as", "c2pa.assertions", &vec![assertion; times]),
        labeled(*b"c2cl", "c2pa.claim", &[boxed(*b"cbor", claim)]),
        labeled(*b"c2cs", "c2pa.signature", &[boxed(*b"cbor", &[0xa0])]),
    ];
    let manifest = labeled(*b"c2ma", "urn:c2pa:00000000-0000-4000-8000-000000000000", &parts);
    let store = labeled(*b"c2pa", "c2pa", &[manifest]);
    let mut chunk = [(store.len() as u32).to_be_bytes().as_slice(), b"caBX", &store].concat();
    chunk.extend_from_slice(&crc32fast::hash(&chunk[4..]).to_be_bytes());
    let bare = picture(Format::Png);
    [&bare[..33], &chunk, &bare[33..]].concat()
}

#[test]
fn manifests_made_to_exhaust_the_reader_are_refused() {
    let tags = [vec![0xa1, 0x61, b'x'], vec![0xc0; 30_000], vec![0]].concat();
    let count = 2_000_000_u32.to_be_bytes();
    let maps = [&[0xa1, 0x61, b'x', 0x9a], count.as_slice(), &[0xa1, 0, 0].repeat(2_000_000)];
    let files = [
        (with_manifest(&tags, (&[0xa0], 1)), "nest too deep"),
        (with_manifest(&[0xa0], (&tags, 1)), "nest too deep"),
        (with_manifest(&maps.concat(), (&[0xa0], 1)), "too many values"),
        (with_manifest(&[0xa0], (&[0xa0], 3000)), "too many boxes"),
        (with_manifest(&vec![0x40; 9 << 20], (&[0xa0], 1)), "too large"),
    ];
    let verifier = Verifier::new(None, None).unwrap();
    for (file, expected) in files {
        // As little stack as a thread of the API has.
        let reader = verifier.clone();
        let read = move || (reader.read(&file), Provenance::read(&file, Format::Png));
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(read).unwrap();
        let (report, provenance) = thread.join().unwrap();
        assert_eq!(report.state, State::Invalid);
        let explanation = report.problems[0].explanation.as_deref().unwrap_or_default();
        assert!(explanation.contains(expected), "{expected}: {explanation}");
        assert_eq!(provenance, None);
    }
}
