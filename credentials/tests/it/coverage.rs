//! Which results are marked, by the operator's settings.

use chrono::Duration;
use retouch_catalog::Tool;
use retouch_credentials::{
    Coverage, Credentials, CredentialsConfig, Format, Leaf, Parent, SetupError, SignError, Signer,
    SourceType, State,
};

use crate::{FIX, FORMATS, bytes, fixed, leaf, model, now, picture, pixels};

const CUT: Tool = Tool::RemoveBackground;

fn config(credentials: Coverage, key: Option<Leaf>) -> CredentialsConfig {
    let (chain, key) = key.map(|Leaf { chain, key }| (chain, key)).unzip();
    CredentialsConfig {
        credentials,
        credentials_required: false,
        credentials_chain: chain,
        credentials_key: key.map(|key| key.parse().unwrap()),
        credentials_timestamps: None,
        credentials_trust: None,
    }
}

fn open(credentials: Coverage, key: Option<Leaf>) -> Credentials {
    Credentials::open(&config(credentials, key), now()).unwrap()
}

/// Marks a result as a worker does.
fn mark(credentials: &Credentials, tool: Tool, parent: &[u8]) -> Option<Vec<u8>> {
    let parent = Parent { picture: parent, provenance: None };
    let seal = credentials.seal(tool, &model(), &parent, now()).unwrap()?;
    Some(seal.mark(&picture(Format::Png)).unwrap())
}

#[test]
fn the_setting_decides_which_results_are_marked() {
    let plain = picture(Format::Png);
    let marked = fixed(&crate::signer_of("Elsewhere GmbH"), Format::Png);
    for (coverage, tool, parent, is_marked) in [
        (Coverage::Off, FIX, &marked, false),
        (Coverage::Generated, FIX, &plain, true),
        (Coverage::Generated, CUT, &plain, false),
        (Coverage::Generated, CUT, &marked, true),
        (Coverage::All, CUT, &plain, true),
    ] {
        let credentials = open(coverage, Some(leaf("Example Ltd")));
        assert_eq!(credentials.may_mark(), coverage != Coverage::Off);
        let result = mark(&credentials, tool, parent);
        assert_eq!(result.is_some(), is_marked, "{coverage:?} {tool:?}");
        let Some(result) = result else { continue };
        let report = credentials.verifier().unwrap().read(&result);
        assert_eq!(report.state, State::Trusted, "{coverage:?} {tool:?}: {report:?}");
    }
}

#[test]
fn smaller_copies_are_marked_in_xmp() {
    let credentials = open(Coverage::Generated, Some(leaf("Example Ltd")));
    let parent = picture(Format::Png);
    let parent = Parent { picture: &parent, provenance: None };
    let copies = credentials.seal(FIX, &model(), &parent, now()).unwrap().unwrap().copies();
    for format in FORMATS {
        let copy = copies.put_on(&picture(format)).unwrap();
        assert_eq!(pixels(&copy), pixels(&picture(format)), "{format:?}");
        let report = credentials.verifier().unwrap().read(&copy);
        assert_eq!(report.state, State::Absent);
        assert!(report.source.is_some_and(|source| source.is_generated()), "{format:?}");
    }
    assert!(copies.put_on(b"GIF89a").is_err());
}

#[test]
fn without_a_key_results_are_marked_in_xmp() {
    let credentials = open(Coverage::Generated, None);
    let result = mark(&credentials, FIX, &picture(Format::Png)).unwrap();
    assert_eq!(pixels(&result), pixels(&picture(Format::Png)));
    let report = credentials.verifier().unwrap().read(&result);
    assert_eq!(report.state, State::Absent);
    assert!(report.source.is_some_and(|source| source.is_generated()));
    // The next tool keeps the mark.
    assert!(mark(&credentials, CUT, &result).is_some());
    assert!(mark(&credentials, CUT, &picture(Format::Png)).is_none());
}

#[test]
fn a_key_that_cannot_sign_stops_results_only_where_signatures_are_required() {
    let off = CredentialsConfig { credentials_required: true, ..config(Coverage::Off, None) };
    assert!(matches!(Credentials::open(&off, now()).err(), Some(SetupError::Contradiction)));
    let Leaf { chain, .. } = leaf("Example Ltd");
    let mixed = || Leaf { chain: chain.clone(), key: leaf("Example Ltd").key };
    let parent = picture(Format::Png);
    let parent = Parent { picture: &parent, provenance: None };
    for (key, credentials_required, problem) in [
        (None, false, None),
        (None, true, Some("there is no key")),
        (Some(mixed()), false, Some("marked in XMP only")),
        (Some(mixed()), true, Some("Nothing that must be signed is delivered")),
    ] {
        let config = CredentialsConfig { credentials_required, ..config(Coverage::Generated, key) };
        let credentials = Credentials::open(&config, now()).unwrap();
        let found = credentials.problem(now());
        assert_eq!(found.is_some(), problem.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(problem.unwrap_or_default()));
        let fix = credentials.seal(FIX, &model(), &parent, now());
        assert_eq!(fix.is_err(), credentials_required);
        let cutout = credentials.seal(CUT, &model(), &parent, now());
        assert!(cutout.unwrap().is_none(), "unmarked results need no key");
    }
}

#[test]
fn an_expired_certificate_stops_results_only_where_signatures_are_required() {
    let parent = picture(Format::Png);
    let parent = Parent { picture: &parent, provenance: None };
    for is_required in [false, true] {
        let config = CredentialsConfig {
            credentials_required: is_required,
            ..config(Coverage::Generated, Some(leaf("Example Ltd")))
        };
        let credentials = Credentials::open(&config, now()).unwrap();
        assert_eq!(credentials.problem(now()), None);
        let soon = credentials.signer().unwrap().expires() - Duration::days(3);
        assert!(credentials.problem(soon).is_some_and(|problem| problem.contains("expires on")));
        let later = soon + Duration::days(4);
        assert!(credentials.signs(soon) && !credentials.signs(later));
        assert!(credentials.problem(later).is_some_and(|problem| problem.contains("expired on")));
        match credentials.seal(FIX, &model(), &parent, later) {
            Err(error) => {
                assert!(is_required && matches!(error, SignError::Expired(_)), "{error}");
            }
            Ok(seal) => {
                let result = seal.unwrap().mark(&picture(Format::Png)).unwrap();
                let report = credentials.verifier().unwrap().read(&result);
                assert!(!is_required && report.state == State::Absent && report.source.is_some());
            }
        }
    }
}

#[test]
fn a_rendering_carries_the_marks_of_its_result() {
    let key = leaf("Example Ltd");
    let signer = Signer::new(&key.chain, &key.key, None, now()).unwrap();
    let credentials = open(Coverage::Generated, Some(key));
    let verifier = credentials.verifier().unwrap();
    let result = fixed(&signer, Format::Png);
    for (format, is_finished) in FORMATS.into_iter().zip([true, false, true]) {
        let file = bytes(picture(format));
        let rendering = credentials.mark_rendering(file.clone(), &result, is_finished, now());
        let rendering = rendering.unwrap();
        assert_eq!(pixels(&rendering), pixels(&file), "{format:?}");
        let report = verifier.read(&rendering);
        assert_eq!(report.state, State::Trusted, "{format:?}: {report:?}");
        assert!(report.source.is_some_and(|source| source.is_generated()));
        let mut claim = report.claim.unwrap();
        let actions: Vec<_> = claim.actions.iter().map(|action| action.action.as_str()).collect();
        let mut expected = vec!["c2pa.opened"];
        expected.extend(is_finished.then_some("c2pa.edited"));
        expected.extend((format != Format::Png).then_some("c2pa.transcoded"));
        assert_eq!(actions, expected);
        let before = claim.ingredients.pop().unwrap().claim.expect("the manifest of the result");
        assert_eq!(before.actions[1].action, "c2pa.edited");
    }
    // Renderings without changes, and those of unmarked results, get no new marks.
    let same = credentials.mark_rendering(bytes(result.clone()), &result, false, now());
    assert_eq!(same.unwrap(), result);
    let plain = picture(Format::Png);
    let file = bytes(picture(Format::Jpeg));
    let unmarked = credentials.mark_rendering(file.clone(), &plain, false, now());
    assert_eq!(unmarked.unwrap(), file);

    let keyless = open(Coverage::Generated, None);
    for format in FORMATS {
        let file = bytes(picture(format));
        let rendering = keyless.mark_rendering(file.clone(), &result, true, now()).unwrap();
        assert_eq!(pixels(&rendering), pixels(&file), "{format:?}");
        let report = verifier.read(&rendering);
        assert_eq!(report.state, State::Absent, "{format:?}");
        assert_eq!(report.source, Some(SourceType::composite_with_trained_media()), "{format:?}");
    }
}
