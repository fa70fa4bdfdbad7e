//! The marks of signed pictures. Signing changes nothing but metadata.

use retouch_catalog::{Factor, FixMode, Tool};
use retouch_credentials::{Format, INSERT_AT, Model, Parent, SourceType, State, Statement};

use crate::{FIX, FORMATS, fixed, model, now, picture, pixels, signer_of, verifier_of};

#[test]
fn a_signed_picture_says_how_it_was_made_and_keeps_its_pixels() {
    let signer = signer_of("Example Ltd");
    for format in FORMATS {
        let signed = fixed(&signer, format);
        assert_eq!(pixels(&signed), pixels(&picture(format)), "{format:?}");

        let report = verifier_of(&signer).read(&signed);
        assert_eq!(report.state, State::Trusted, "{format:?}: {report:?}");
        assert_eq!(report.problems, [], "{format:?}");
        assert_eq!(report.source, Some(SourceType::composite_with_trained_media()));
        assert!(report.is_source_claimed);
        let claim = report.claim.expect("a claim");
        assert!(claim.generator.is_some_and(|name| name.starts_with("Retouch ")));
        let signature = claim.signature.expect("a signature");
        assert!(signature.is_ours);
        assert_eq!(signature.name.as_deref(), Some("Retouch"));
        assert_eq!(signature.organization.as_deref(), Some("Example Ltd"));
        assert_eq!(signature.time, None, "no timestamp authority was asked");
        let actions: Vec<_> = claim.actions.iter().map(|action| action.action.as_str()).collect();
        assert_eq!(actions, ["c2pa.opened", "c2pa.edited"]);
        assert!(claim.actions[1].source.as_ref().is_some_and(SourceType::is_generated));
        assert_eq!(claim.ingredients.len(), 1);
        assert!(claim.ingredients[0].is_parent && claim.ingredients[0].claim.is_none());
    }
}

#[test]
fn a_stream_in_pieces_of_any_size_becomes_a_valid_file() {
    let signer = signer_of("Example Ltd");
    let file = picture(Format::Png);
    let parent = Parent { picture: &file, provenance: None };
    let statement = Statement::of_run(FIX, &model(), None);
    for size in [1, 7, INSERT_AT - 1, INSERT_AT, INSERT_AT + 1, 1000, file.len()] {
        let mut seal = signer.seal(&statement, &parent, now()).unwrap();
        let promised = seal.size_bytes();
        file.chunks(size).for_each(|piece| seal.push(piece));
        let marks = seal.finish().unwrap();
        assert_eq!(marks.len(), promised, "pieces of {size}");
        let signed = [&file[..INSERT_AT], &marks, &file[INSERT_AT..]].concat();
        let report = verifier_of(&signer).read(&signed);
        assert_eq!(report.state, State::Trusted, "pieces of {size}: {report:?}");
    }
    let short = signer.seal(&statement, &parent, now()).unwrap();
    assert!(short.mark(&file[..INSERT_AT - 1]).is_err());
    let other = signer.seal(&statement, &parent, now()).unwrap();
    assert!(other.mark(&picture(Format::Jpeg)).is_err());
}

#[test]
fn each_tool_states_what_it_did_and_where_its_pixels_come_from() {
    let fill = Model { is_trained: false, ..model() };
    let enhanced = SourceType::algorithmically_enhanced();
    let generated = SourceType::composite_with_trained_media();
    let filled = SourceType::composite_synthetic();
    let photo = SourceType::parse("http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture");
    let photo = photo.unwrap();
    let remove = Tool::MagicFix(FixMode::Remove);
    let upscale = Tool::Upscale(Factor::X2);
    for (tool, model, input, expected) in [
        (FIX, &model(), None, &generated),
        (FIX, &model(), Some(&photo), &generated),
        (remove, &fill, None, &filled),
        (remove, &fill, Some(&photo), &filled),
        (remove, &fill, Some(&enhanced), &filled),
        (remove, &fill, Some(&generated), &generated),
        (Tool::RemoveBackground, &model(), None, &enhanced),
        (Tool::RemoveBackground, &model(), Some(&filled), &filled),
        (upscale, &model(), None, &enhanced),
        (upscale, &model(), Some(&photo), &photo),
        (upscale, &model(), Some(&generated), &generated),
    ] {
        let statement = Statement::of_run(tool, model, input);
        assert_eq!(statement.source(), expected, "{tool:?} of {input:?}");
    }
    let signer = signer_of("Example Ltd");
    let file = picture(Format::Png);
    let parent = Parent { picture: &file, provenance: None };
    let statement = Statement::of_run(upscale, &model(), None);
    let signed = signer.sign(&file, &statement, &parent, now()).unwrap();
    let claim = verifier_of(&signer).read(&signed).claim.unwrap();
    assert_eq!(claim.actions[1].action, "c2pa.resized");
    assert_eq!(claim.actions[1].description.as_deref(), Some("Upscaled 2 times"));
    let text = String::from_utf8_lossy(&signed);
    assert!(text.contains("tiny-edit") && text.contains(&"ab".repeat(32)), "model and checksum");
}

#[test]
fn the_manifest_of_the_picture_before_is_kept() {
    let signer = signer_of("Example Ltd");
    let mut file = fixed(&signer, Format::Png);
    for (generations, tool) in (2..).zip([Tool::Upscale(Factor::X2), Tool::RemoveBackground]) {
        let parent = Parent { picture: &file, provenance: None };
        assert!(parent.is_marked());
        let statement = Statement::of_run(tool, &model(), parent.source().as_ref());
        file = signer.sign(&picture(Format::Png), &statement, &parent, now()).unwrap();
        let report = verifier_of(&signer).read(&file);
        assert_eq!(report.state, State::Trusted, "{report:?}");
        assert!(report.source.is_some_and(|source| source.is_generated()));
        let mut claim = report.claim.unwrap();
        for _ in 1..generations {
            let parent = claim.ingredients.pop().unwrap();
            assert_eq!(parent.problems, []);
            claim = parent.claim.expect("the manifest of the picture before");
        }
        assert!(claim.actions[1].description.as_ref().is_some_and(|it| it.contains("Repainted")));
    }
}
