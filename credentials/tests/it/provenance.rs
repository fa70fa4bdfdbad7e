//! The provenance of an upload survives the removal of its metadata.

use retouch_credentials::{
    Format, MAX_MANIFEST_BYTES, Model, Parent, Provenance, SourceType, State, Statement,
};

use retouch_catalog::{FixMode, Tool};

use crate::{FIX, FORMATS, fixed, model, now, picture, signer_of, verifier_of, without_chunk};

#[test]
fn the_manifest_of_an_upload_becomes_the_ingredient_of_a_result() {
    let (own, elsewhere) = (signer_of("Example Ltd"), signer_of("Elsewhere GmbH"));
    for format in FORMATS {
        let upload = fixed(&elsewhere, format);
        let provenance = Provenance::read(&upload, format).expect("a mark");
        assert!(provenance.source.as_ref().is_some_and(SourceType::is_generated));
        assert!(provenance.ingredient.is_some());

        // The upload was normalized to a PNG without metadata.
        let stored = picture(Format::Png);
        let parent = Parent { picture: &stored, provenance: Some(&provenance) };
        assert!(parent.is_marked());
        let statement = Statement::of_run(FIX, &model(), parent.source().as_ref());
        let signed = own.sign(&stored, &statement, &parent, now()).unwrap();
        let report = verifier_of(&own).read(&signed);
        assert_eq!(report.state, State::Trusted, "{format:?}: {report:?}");
        let mut claim = report.claim.unwrap();
        let ingredient = claim.ingredients.pop().unwrap();
        assert!(ingredient.is_parent && claim.ingredients.is_empty());
        assert_eq!(ingredient.title.as_deref(), Some("Uploaded picture"));
        assert_eq!(ingredient.problems, [], "{format:?}");
        let signature = ingredient.claim.expect("the upload's manifest").signature.unwrap();
        assert_eq!(signature.organization.as_deref(), Some("Elsewhere GmbH"));
    }
}

#[test]
fn a_changed_upload_stays_known_as_changed() {
    let (own, elsewhere) = (signer_of("Example Ltd"), signer_of("Elsewhere GmbH"));
    let mut upload = fixed(&elsewhere, Format::Png);
    let at = upload.len() - 40;
    upload[at] ^= 1;
    let provenance = Provenance::read(&upload, Format::Png).expect("a mark");
    let stored = picture(Format::Png);
    let parent = Parent { picture: &stored, provenance: Some(&provenance) };
    let statement = Statement::of_run(FIX, &model(), parent.source().as_ref());
    let signed = own.sign(&stored, &statement, &parent, now()).unwrap();
    let report = verifier_of(&own).read(&signed);
    assert_eq!(report.state, State::Trusted, "what we state ourselves is intact: {report:?}");
    let ingredient = report.claim.unwrap().ingredients.pop().unwrap();
    let codes: Vec<_> = ingredient.problems.iter().map(|problem| problem.code.as_str()).collect();
    assert!(codes.contains(&"assertion.dataHash.mismatch"), "{codes:?}");
}

#[test]
fn xmp_alone_is_kept_as_the_source() {
    let upload = without_chunk(&fixed(&signer_of("Elsewhere GmbH"), Format::Png), *b"caBX");
    let provenance = Provenance::read(&upload, Format::Png).expect("a mark");
    assert_eq!(provenance.ingredient, None);
    assert_eq!(provenance.source, Some(SourceType::composite_with_trained_media()));
    let stored = picture(Format::Png);
    let parent = Parent { picture: &stored, provenance: Some(&provenance) };
    assert!(parent.is_marked(), "a cutout of a generated picture is marked too");
}

#[test]
fn a_picture_without_marks_has_no_provenance() {
    for format in FORMATS {
        assert_eq!(Provenance::read(&picture(format), format), None, "{format:?}");
        assert_eq!(Provenance::read(&[], format), None, "{format:?}");
    }
    let stored = picture(Format::Png);
    assert!(!Parent { picture: &stored, provenance: None }.is_marked());
}

#[test]
fn a_manifest_that_is_damaged_or_too_large_is_left_out() {
    let bare = picture(Format::Png);
    for contents in [vec![0x41; 500], vec![0; MAX_MANIFEST_BYTES + 1]] {
        let mut chunk = (contents.len() as u32).to_be_bytes().to_vec();
        chunk.extend_from_slice(b"caBX");
        chunk.extend_from_slice(&contents);
        chunk.extend_from_slice(&crc32fast::hash(&chunk[4..]).to_be_bytes());
        let upload = [&bare[..33], &chunk, &bare[33..]].concat();
        assert_eq!(Provenance::read(&upload, Format::Png), None);
    }
}

#[test]
fn the_manifest_of_a_rendering_claims_the_source_of_its_result() {
    let signer = signer_of("Example Ltd");
    let (png, fill) = (picture(Format::Png), Model { is_trained: false, ..model() });
    let run = |tool: Tool, model: &Model, before: &[u8]| {
        let parent = Parent { picture: before, provenance: None };
        let statement = Statement::of_run(tool, model, parent.source().as_ref());
        signer.sign(&png, &statement, &parent, now()).unwrap()
    };
    let filled = run(Tool::MagicFix(FixMode::Remove), &fill, &png);
    for (before, source) in [
        (&png, SourceType::algorithmically_enhanced()),
        (&filled, SourceType::composite_synthetic()),
    ] {
        let result = run(Tool::RemoveBackground, &model(), before);
        for format in FORMATS {
            let parent = Parent { picture: &result, provenance: None };
            let statement = Statement::of_rendering(format, true, parent.source().as_ref());
            assert_eq!(statement.source(), &source);
            let saved = signer.sign(&picture(format), &statement, &parent, now()).unwrap();
            let report = verifier_of(&signer).read(&saved);
            assert_eq!(report.source.as_ref(), Some(&source), "{format:?}");
            assert!(report.is_source_claimed, "{format:?}: not only the XMP says so");
        }
    }
}
