//! Reads the marks of a picture and checks whether they are trustworthy.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use c2pa::assertions::{self, Actions, SoftwareAgent};
use c2pa::validation_results::{IngredientDeltaValidationResult, StatusCodes};
use c2pa::validation_status::SIGNING_CREDENTIAL_UNTRUSTED;
use c2pa::{Context, Error, Manifest, Reader, Relationship, ValidationState};
use serde::Serialize;
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::Pem;

use crate::guard::guard;
use crate::{Format, SourceType, bounds, container, xmp};

/// The maximum number of reported generations of ingredients.
const MAX_DEPTH: usize = 8;
/// The maximum number of reported actions, ingredients, and problems of one manifest, each.
const MAX_LISTED: usize = 32;
/// The maximum number of reported ingredients in total. Many of them can share one manifest, so a small file could
/// otherwise cause a report of any size.
const MAX_INGREDIENTS: usize = 256;
/// The maximum length of a reported text, in characters.
const MAX_TEXT: usize = 200;

/// Whether the marks of a picture are trustworthy. `absent`: there is no manifest. `invalid`: the manifest is damaged
/// or does not belong to these pixels. `valid`: the manifest is intact, but this server does not know the signer.
/// `trusted`: the operator trusts the signer, or is the signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = VerificationState))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The picture has no manifest.
    Absent,
    /// The manifest is damaged, or does not belong to these pixels.
    Invalid,
    /// The manifest is intact and belongs to these pixels, but we do not know the signer.
    Valid,
    /// The manifest is valid, and its signer is trusted by the operator or is this installation.
    Trusted,
}

/// The marks of a picture. All text comes from the file.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Verification))]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether the marks are trustworthy.
    pub state: State,
    /// The source type: a URI of the IPTC's vocabulary *Digital Source Type*, from the manifest, or otherwise from XMP,
    /// which anybody can change.
    #[cfg_attr(feature = "openapi", schema(
        value_type = Option<String>,
        example = "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
    ))]
    pub source: Option<SourceType>,
    /// Whether the manifest states the source type, not only the XMP.
    pub is_source_claimed: bool,
    /// Whether the source type means that a trained model made the picture, or parts of it.
    pub is_generated: bool,
    /// The contents of the manifest, if there is one and it can be read.
    pub claim: Option<Claim>,
    /// The problems of the manifest.
    pub problems: Vec<Problem>,
}

/// The contents of a manifest.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = VerifiedClaim))]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The program that made the manifest.
    pub generator: Option<String>,
    /// The signature.
    pub signature: Option<Signature>,
    /// The edits, in order.
    pub actions: Vec<Action>,
    /// The pictures from which this one was made.
    pub ingredients: Vec<Ingredient>,
}

/// The signer of a manifest.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = VerifiedSignature))]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    /// The name in the signer's certificate.
    pub name: Option<String>,
    /// The organization in the signer's certificate.
    pub organization: Option<String>,
    /// When a timestamp authority saw the signature, RFC 3339.
    pub time: Option<String>,
    /// Whether this installation made the signature, with its present certificate.
    pub is_ours: bool,
}

/// An edit of a picture.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = VerifiedAction))]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// The action's name in the C2PA specification.
    #[cfg_attr(feature = "openapi", schema(example = "c2pa.edited"))]
    pub action: String,
    /// The program's description of the edit.
    pub description: Option<String>,
    /// The program that made the edit.
    pub agent: Option<String>,
    /// The time of the edit, RFC 3339.
    pub when: Option<String>,
    /// The source type of the pixels that the edit added or changed.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub source: Option<SourceType>,
}

/// A picture from which another was made.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = VerifiedIngredient))]
#[serde(rename_all = "camelCase")]
pub struct Ingredient {
    /// Its title.
    pub title: Option<String>,
    /// Whether it is the edited picture, not an added one.
    pub is_parent: bool,
    /// The contents of its own manifest.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub claim: Option<Claim>,
    /// The problems that its manifest had when the picture was opened.
    pub problems: Vec<Problem>,
}

/// A problem of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = VerificationProblem))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The status code in the C2PA specification (15.2).
    #[cfg_attr(feature = "openapi", schema(example = "assertion.dataHash.mismatch"))]
    pub code: String,
    /// An explanation of the code, in English.
    pub explanation: Option<String>,
}

/// Returns the peak memory that reading the marks of a file takes beside the file, in bytes.
pub fn reading_bytes(file: &[u8]) -> u64 {
    let manifest = Format::of(file).and_then(|format| container::manifest_bytes(file, format));
    manifest.map_or(0, |_| bounds::PARSING_BYTES)
}

/// Verifies pictures from anywhere. Opens no connections: a linked manifest is reported as absent.
#[derive(Clone)]
pub struct Verifier {
    context: Arc<Context>,
    /// The DER of our own certificate.
    own: Option<Vec<u8>>,
}

impl Verifier {
    /// Trusts `own`, our certificate chain, if its authority is private, and the certificates under `anchors` (both PEM).
    ///
    /// # Errors
    /// If one of them is not a list of PEM certificates.
    pub fn new(own: Option<&str>, anchors: Option<&str>) -> Result<Self, String> {
        let mut trusted = anchors.unwrap_or_default().to_owned();
        let mut leaf = None;
        for pem in own.into_iter().flat_map(|own| Pem::iter_from_buffer(own.as_bytes())) {
            let pem = pem.map_err(|error| error.to_string())?;
            let certificate = pem.parse_x509().map_err(|error| error.to_string())?;
            if certificate.is_ca() && certificate.subject() == certificate.issuer() {
                trusted.push('\n');
                trusted.push_str(&to_pem(&pem.contents));
            }
            leaf.get_or_insert(pem.contents.clone());
        }
        let trusted = Some(trusted.as_str()).filter(|pem| !pem.is_empty());
        let context = crate::context::with_anchors(trusted).map_err(|error| error.to_string())?;
        Ok(Self { context, own: leaf })
    }

    /// Reads a file. Blocks for a time that grows with the file.
    pub fn read(&self, file: &[u8]) -> Report {
        let Some(format) = Format::of(file) else { return Report::absent(None) };
        let packet = container::xmp(file, format);
        let stated = packet.and_then(xmp::source_type);
        if container::manifest_bytes(file, format).is_none() {
            return Report::absent(stated);
        }
        let read = || {
            let reader = crate::context::reader(&self.context, file, format)?;
            let claimed = claimed_source(&reader);
            let is_source_claimed = claimed.is_some();
            let source = claimed.or_else(|| stated.clone());
            let mut left = MAX_INGREDIENTS;
            let claim = reader
                .active_manifest()
                .map(|manifest| self.claim(&reader, manifest, MAX_DEPTH, &mut left));
            let state = match (&claim, reader.validation_state()) {
                (None, _) | (_, ValidationState::Invalid) => State::Invalid,
                (_, ValidationState::Valid) => State::Valid,
                (_, ValidationState::Trusted) => State::Trusted,
            };
            let problems = problems_of(&reader);
            let is_generated = source.as_ref().is_some_and(SourceType::is_generated);
            Ok(Report { state, source, is_source_claimed, is_generated, claim, problems })
        };
        guard(read).unwrap_or_else(|error| Report {
            state: State::Invalid,
            problems: vec![unreadable(&error)],
            ..Report::absent(stated.clone())
        })
    }

    /// Describes a manifest and the manifests of its ingredients, for up to `depth` generations; `left` is the number
    /// of ingredients that may still be described.
    fn claim(&self, reader: &Reader, manifest: &Manifest, depth: usize, left: &mut usize) -> Claim {
        let generator = manifest.claim_generator_info.as_ref().and_then(|all| all.first());
        let generator = generator.map(|info| named(&info.name, info.version.as_deref()));
        let generator = generator.or_else(|| manifest.claim_generator().map(text));
        // Ingredients of this manifest come before the ingredients of its ingredients.
        let described = manifest.ingredients().iter().take(MAX_LISTED.min(*left));
        *left -= described.len();
        let ingredients = described.map(|ingredient| {
            let of_manifest =
                ingredient.active_manifest().and_then(|label| reader.get_manifest(label));
            let of_manifest = of_manifest.filter(|_| depth > 0);
            Ingredient {
                title: ingredient.title().map(text),
                is_parent: *ingredient.relationship() == Relationship::ParentOf,
                claim: of_manifest.map(|manifest| self.claim(reader, manifest, depth - 1, left)),
                problems: problems_of_ingredient(ingredient),
            }
        });
        Claim {
            generator,
            signature: manifest.signature_info().map(|info| Signature {
                name: info.common_name.as_deref().map(text),
                organization: info.issuer.as_deref().map(text),
                time: info.time.as_deref().map(text),
                is_ours: self.own.is_some() && leaf_of(info.cert_chain()) == self.own,
            }),
            actions: actions_of(manifest)
                .take(MAX_LISTED)
                .map(|action| reported(&action))
                .collect(),
            ingredients: ingredients.collect(),
        }
    }
}

impl Report {
    fn absent(source: Option<SourceType>) -> Self {
        Self {
            state: State::Absent,
            is_generated: source.as_ref().is_some_and(SourceType::is_generated),
            source,
            is_source_claimed: false,
            claim: None,
            problems: Vec::new(),
        }
    }
}

/// Returns the weightiest source type that the manifests of a file claim: the pixels of the ingredients are in the
/// picture.
pub(crate) fn claimed_source(reader: &Reader) -> Option<SourceType> {
    let active = reader.active_manifest()?;
    let rest = reader.iter_manifests().filter(|manifest| manifest.label() != active.label());
    let all = rest.chain(std::iter::once(active)).flat_map(sources_of);
    // If several have the same key, `max_by_key` returns the last one, which is the latest action.
    all.max_by_key(SourceType::weight)
}

fn sources_of(manifest: &Manifest) -> Vec<SourceType> {
    actions_of(manifest).filter_map(|action| source_of(&action)).collect()
}

fn actions_of(manifest: &Manifest) -> impl Iterator<Item = assertions::Action> {
    let assertions = manifest.assertions().iter();
    let actions = assertions.filter(|assertion| assertion.label().starts_with(Actions::LABEL));
    let lists = actions.filter_map(|assertion| assertion.to_assertion::<Actions>().ok());
    lists.flat_map(|list| list.actions().to_vec())
}

fn source_of(action: &assertions::Action) -> Option<SourceType> {
    let value = serde_json::to_value(action.source_type()?).ok()?;
    SourceType::parse(value.as_str()?)
}

fn reported(action: &assertions::Action) -> Action {
    let agent = action.software_agent().map(|agent| match agent {
        SoftwareAgent::String(name) => text(name),
        SoftwareAgent::ClaimGeneratorInfo(info) => named(&info.name, info.version.as_deref()),
    });
    Action {
        action: text(action.action()),
        description: action.description().map(text),
        agent,
        when: action.when().map(text),
        source: source_of(action),
    }
}

fn problems_of(reader: &Reader) -> Vec<Problem> {
    let statuses = reader.validation_status().unwrap_or_default();
    let failed = statuses.iter().filter(|status| !status.passed());
    failed.filter_map(problem).take(MAX_LISTED).collect()
}

/// Returns the problems that an ingredient's manifest had when the picture was opened. Its assertion contains results
/// (version 3 of the assertion) or statuses.
fn problems_of_ingredient(ingredient: &c2pa::Ingredient) -> Vec<Problem> {
    let results = ingredient.validation_results();
    let of_manifest = results.and_then(|results| results.active_manifest());
    let of_ingredients = results.and_then(|results| results.ingredient_deltas());
    let deltas = of_ingredients
        .into_iter()
        .flatten()
        .map(IngredientDeltaValidationResult::validation_deltas);
    let failed = of_manifest.into_iter().chain(deltas).flat_map(StatusCodes::failure);
    let statuses = ingredient.validation_status().unwrap_or_default();
    let older = statuses.iter().filter(|status| !status.passed() && results.is_none());
    failed.chain(older).filter_map(problem).take(MAX_LISTED).collect()
}

/// Returns a problem; `None` for an unknown signer, which the state expresses.
fn problem(status: &c2pa::validation_status::ValidationStatus) -> Option<Problem> {
    (status.code() != SIGNING_CREDENTIAL_UNTRUSTED)
        .then(|| Problem { code: text(status.code()), explanation: status.explanation().map(text) })
}

fn unreadable(error: &Error) -> Problem {
    Problem { code: "claim.malformed".to_owned(), explanation: Some(text(&error.to_string())) }
}

fn named(name: &str, version: Option<&str>) -> String {
    match version {
        Some(version) => text(&format!("{name} {version}")),
        None => text(name),
    }
}

/// Returns a text from a file, truncated and without control characters.
fn text(text: &str) -> String {
    let printable = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    printable.take(MAX_TEXT).collect()
}

fn leaf_of(chain: &str) -> Option<Vec<u8>> {
    Some(Pem::iter_from_buffer(chain.as_bytes()).next()?.ok()?.contents)
}

fn to_pem(der: &[u8]) -> String {
    let encoded = BASE64.encode(der);
    let lines = encoded.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// Returns the common name of a certificate, or else its organization.
pub(crate) fn name_of(certificate: &X509Certificate<'_>) -> String {
    let subject = certificate.subject();
    let names = subject.iter_common_name().chain(subject.iter_organization());
    let mut readable = names.filter_map(|name| name.as_str().ok());
    readable.next().map(text).unwrap_or_default()
}
