//! Keys that can sign, and keys that cannot.

use std::process::Command;

use chrono::Duration;
use retouch_credentials::{Authority, Format, KeyError, Leaf, SignError, Signer, State};

use crate::{fixed, leaf, now, signer_of, verifier_of};

fn refusal(chain: &str, key: &str) -> KeyError {
    match Signer::new(chain, key, None, now()) {
        Ok(_) => panic!("this key must be refused"),
        Err(error) => error,
    }
}

#[test]
fn a_key_that_cannot_sign_is_refused_with_the_reason() {
    let (own, other) = (leaf("Example Ltd"), leaf("Example Ltd"));
    assert!(matches!(refusal("", &own.key), KeyError::Chain));
    assert!(matches!(refusal(&own.key, &own.key), KeyError::Chain));
    assert!(matches!(refusal(&own.chain, ""), KeyError::Key));
    assert!(matches!(refusal(&own.chain, &own.chain), KeyError::Key));
    assert!(matches!(refusal(&own.chain, &other.key), KeyError::Trial(_)), "of another pair");
    let damaged = own.chain.replacen('A', "!", 3);
    assert!(matches!(refusal(&damaged, &own.key), KeyError::Chain));

    let authority = Authority::new("Example Ltd", now()).unwrap();
    assert!(
        matches!(refusal(&authority.certificate, &authority.key), KeyError::Trial(_)),
        "an authority's certificate is not allowed to sign pictures"
    );
}

#[test]
fn a_certificate_signs_only_while_it_is_valid() {
    let long_ago = now() - Duration::days(3 * 365);
    let authority = Authority::new("Example Ltd", long_ago).unwrap();
    let Leaf { chain, key } = authority.issue("Example Ltd", long_ago).unwrap();
    let error = refusal(&chain, &key);
    assert!(matches!(error, KeyError::Expired { .. }), "{error}");

    let signer = signer_of("Example Ltd");
    let later = signer.expires() + Duration::seconds(1);
    let file = crate::picture(Format::Png);
    let parent = retouch_credentials::Parent { picture: &file, provenance: None };
    let statement = retouch_credentials::Statement::of_run(crate::FIX, &crate::model(), None);
    let outcome = signer.sign(&file, &statement, &parent, later);
    assert!(matches!(outcome, Err(SignError::Expired(_))), "{outcome:?}");
}

#[test]
fn a_renewed_certificate_trusts_what_the_old_one_signed() {
    let authority = Authority::new("Example Ltd", now()).unwrap();
    let issue = || {
        let Leaf { chain, key } = authority.issue("Example Ltd", now()).unwrap();
        Signer::new(&chain, &key, None, now()).unwrap()
    };
    let (old, new) = (issue(), issue());
    let report = verifier_of(&new).read(&fixed(&old, Format::Png));
    assert_eq!(report.state, State::Trusted, "{report:?}");
    assert!(report.claim.unwrap().signature.is_some_and(|by| !by.is_ours));
}

/// Keys made by OpenSSL, as operators bring them.
#[test]
fn keys_of_every_algorithm_sign() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).output().expect("openssl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let (key, certificate) = (path("key.pem"), path("certificate.pem"));
    let (root, root_key) = (path("root.pem"), path("root-key.pem"));
    let request = path("request.pem");
    let extensions = path("extensions");
    std::fs::write(
        &extensions,
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n\
         extendedKeyUsage=emailProtection\nauthorityKeyIdentifier=keyid\n",
    )
    .unwrap();
    openssl(&[
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-keyout",
        &root_key,
        "-out",
        &root,
        "-subj",
        "/O=Example Ltd/CN=Root",
        "-days",
        "30",
        "-addext",
        "keyUsage=critical,keyCertSign",
    ]);
    for algorithm in [
        &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"][..],
        &["EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
        &["EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
        &["ED25519"],
        &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    ] {
        openssl(&[&["genpkey", "-out", &key, "-algorithm"][..], algorithm].concat());
        openssl(&[
            "req",
            "-new",
            "-key",
            &key,
            "-out",
            &request,
            "-subj",
            "/O=Example Ltd/CN=Leaf",
        ]);
        openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            &root,
            "-CAkey",
            &root_key,
            "-CAcreateserial",
            "-days",
            "7",
            "-extfile",
            &extensions,
            "-out",
            &certificate,
        ]);
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let chain = format!("{}{}", read(&certificate), read(&root));
        let signer = Signer::new(&chain, &read(&key), None, now());
        let signer = signer.unwrap_or_else(|error| panic!("{algorithm:?}: {error}"));
        assert_eq!(signer.name(), "Leaf");
        let report = verifier_of(&signer).read(&fixed(&signer, Format::Png));
        assert_eq!(report.state, State::Trusted, "{algorithm:?}: {report:?}");
    }
    openssl(&["ec", "-in", &root_key, "-out", &key]);
    let old_form = std::fs::read_to_string(&key).unwrap();
    assert!(old_form.contains("BEGIN EC PRIVATE KEY"));
    let root = std::fs::read_to_string(&root).unwrap();
    assert!(matches!(refusal(&root, &old_form), KeyError::Key), "openssl pkcs8 converts it");
}
