//! Tests of the crate's public functions on whole files.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]
#![expect(clippy::similar_names, reason = "signers sign, and what they signed is signed")]

mod coverage;
mod keys;
mod provenance;
mod reading;
mod signing;
mod timestamps;

use std::io::Cursor;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use image::{ImageFormat, RgbImage};
use retouch_catalog::{FixMode, Tool};
use retouch_core::Clock;
use retouch_credentials::{
    Authority, Format, Leaf, Model, Parent, Report, Signer, Statement, Verifier,
};

const FORMATS: [Format; 3] = [Format::Png, Format::Jpeg, Format::WebP];
const FIX: Tool = Tool::MagicFix(FixMode::Edit);

fn now() -> DateTime<Utc> {
    Clock::system().now()
}

/// Returns a certificate of a new private authority.
fn leaf(organization: &str) -> Leaf {
    let authority = Authority::new(organization, now()).expect("an authority");
    authority.issue(organization, now()).expect("a certificate")
}

fn signer_of(organization: &str) -> Signer {
    let Leaf { chain, key } = leaf(organization);
    Signer::new(&chain, &key, None, now()).expect("a key that signs")
}

fn verifier_of(signer: &Signer) -> Verifier {
    Verifier::new(Some(signer.chain()), None).expect("a verifier")
}

fn model() -> Model {
    Model { name: "tiny-edit".to_owned(), sha256: "ab".repeat(32), is_trained: true }
}

/// Returns a picture without symmetry.
fn picture(format: Format) -> Vec<u8> {
    let pixels =
        RgbImage::from_fn(97, 61, |x, y| image::Rgb([(x * 7) as u8, (y * 5) as u8, (x ^ y) as u8]));
    if format == Format::WebP {
        return webp::Encoder::from_rgb(&pixels, 97, 61).encode(80.0).to_vec();
    }
    let encoding = if format == Format::Png { ImageFormat::Png } else { ImageFormat::Jpeg };
    let mut bytes = Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, encoding).expect("a picture in memory");
    bytes.into_inner()
}

fn pixels(file: &[u8]) -> image::RgbaImage {
    image::load_from_memory(file).expect("a picture that decodes").into_rgba8()
}

/// Returns a picture that `signer` signed as the result of Magic Fix.
fn fixed(signer: &Signer, format: Format) -> Vec<u8> {
    let statement = Statement::of_run(FIX, &model(), None);
    let parent = picture(Format::Png);
    let parent = Parent { picture: &parent, provenance: None };
    signer.sign(&picture(format), &statement, &parent, now()).expect("a signed picture")
}

fn codes(report: &Report) -> Vec<&str> {
    report.problems.iter().map(|problem| problem.code.as_str()).collect()
}

fn without_chunk(png: &[u8], name: [u8; 4]) -> Vec<u8> {
    let mut kept = png[..8].to_vec();
    let mut at = 8;
    while at < png.len() {
        let length = u32::from_be_bytes(*png[at..].first_chunk().expect("a length")) as usize;
        let end = at + 12 + length;
        if png[at + 4..at + 8] != name {
            kept.extend_from_slice(&png[at..end]);
        }
        at = end;
    }
    kept
}

fn bytes(file: Vec<u8>) -> Bytes {
    file.into()
}
