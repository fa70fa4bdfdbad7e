//! `/api/verify`: reads the marks of a picture.

use axum::extract::State;
use axum::{Extension, Json};
use retouch_credentials::{
    Action, Claim, Ingredient, Problem as Fault, Report, Signature, SourceType, State as Trust,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::IncomingBody;
use super::caller::{ClientAddress, OptionalUser};
use super::multipart::{FileUpload, UploadBody, multipart, uploaded_file};
use super::problem::Problem;
use crate::error::ApiError;
use crate::state::App;
use crate::usecases::verify_picture::verify_picture;

/// The marks of a picture. All text comes from the file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    state: VerificationState,
    /// The source type: a URI of the IPTC's vocabulary *Digital Source Type*, from the manifest, or otherwise from XMP,
    /// which anybody can change.
    #[schema(
        example = "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
    )]
    source: Option<String>,
    /// Whether the manifest states the source type, not only the XMP.
    is_source_claimed: bool,
    /// Whether the source type means that a trained model made the picture, or parts of it.
    is_generated: bool,
    claim: Option<VerifiedClaim>,
    /// The problems of the manifest.
    problems: Vec<VerificationProblem>,
}

/// Whether the marks of a picture are trustworthy. `absent`: there is no manifest. `invalid`: the manifest is damaged
/// or does not belong to these pixels. `valid`: the manifest is intact, but this server does not know the signer.
/// `trusted`: the operator trusts the signer, or is the signer.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerificationState {
    Absent,
    Invalid,
    Valid,
    Trusted,
}

/// The contents of a manifest.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedClaim {
    /// The program that made the manifest.
    generator: Option<String>,
    signature: Option<VerifiedSignature>,
    /// The edits, in order.
    actions: Vec<VerifiedAction>,
    /// The pictures from which this one was made.
    ingredients: Vec<VerifiedIngredient>,
}

/// The signer of a manifest.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedSignature {
    /// The name in the certificate.
    name: Option<String>,
    /// The organization in the certificate.
    organization: Option<String>,
    /// When a timestamp authority saw the signature, RFC 3339.
    time: Option<String>,
    /// Whether this installation signed.
    is_ours: bool,
}

/// An edit of a picture.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedAction {
    /// The action's name in the C2PA specification.
    #[schema(example = "c2pa.edited")]
    action: String,
    description: Option<String>,
    /// The program that made the edit.
    agent: Option<String>,
    /// The time of the edit, RFC 3339.
    when: Option<String>,
    /// The source type of the pixels that the edit added or changed.
    source: Option<String>,
}

/// A picture from which another was made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedIngredient {
    title: Option<String>,
    /// Whether it is the picture that was edited, not one that was added.
    is_parent: bool,
    /// The contents of its own manifest.
    #[schema(no_recursion)]
    claim: Option<VerifiedClaim>,
    /// The problems that its manifest had when the picture was opened.
    problems: Vec<VerificationProblem>,
}

/// A problem of a manifest.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationProblem {
    /// The status code in the C2PA specification.
    #[schema(example = "assertion.dataHash.mismatch")]
    code: String,
    /// An explanation of the code, in English.
    explanation: Option<String>,
}

/// Reads the marks of a picture: its Content Credentials (C2PA) and the digital source type in its XMP. Accepts
/// pictures from anywhere. Free of charge, needs no account, and stores nothing.
#[utoipa::path(post, path = "/api/verify", tag = "verify",
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    responses((status = 200, body = Verification), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 408, body = Problem), (status = 413, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn verify(
    State(app): State<App>,
    OptionalUser(user): OptionalUser,
    ClientAddress(address): ClientAddress,
    incoming: Option<Extension<IncomingBody>>,
    body: UploadBody,
) -> Result<Json<Verification>, ApiError> {
    let mut file = uploaded_file(multipart(body)?, app.limits.max_upload_bytes).await?;
    if let Some(Extension(incoming)) = incoming {
        incoming.hand_over(vec![&mut file]);
    }
    let report = verify_picture(&app, (user.map(|user| user.id), address), file).await?;
    Ok(Json(report.into()))
}

impl From<Report> for Verification {
    fn from(report: Report) -> Self {
        Self {
            state: match report.state {
                Trust::Absent => VerificationState::Absent,
                Trust::Invalid => VerificationState::Invalid,
                Trust::Valid => VerificationState::Valid,
                Trust::Trusted => VerificationState::Trusted,
            },
            is_generated: report.source.as_ref().is_some_and(SourceType::is_generated),
            source: report.source.map(|source| source.uri()),
            is_source_claimed: report.is_source_claimed,
            claim: report.claim.map(VerifiedClaim::from),
            problems: report.problems.into_iter().map(VerificationProblem::from).collect(),
        }
    }
}

impl From<Claim> for VerifiedClaim {
    fn from(claim: Claim) -> Self {
        Self {
            generator: claim.generator,
            signature: claim.signature.map(VerifiedSignature::from),
            actions: claim.actions.into_iter().map(VerifiedAction::from).collect(),
            ingredients: claim.ingredients.into_iter().map(VerifiedIngredient::from).collect(),
        }
    }
}

impl From<Signature> for VerifiedSignature {
    fn from(Signature { name, organization, time, is_ours }: Signature) -> Self {
        Self { name, organization, time, is_ours }
    }
}

impl From<Action> for VerifiedAction {
    fn from(Action { action, description, agent, when, source }: Action) -> Self {
        Self { action, description, agent, when, source: source.map(|source| source.uri()) }
    }
}

impl From<Ingredient> for VerifiedIngredient {
    fn from(ingredient: Ingredient) -> Self {
        Self {
            title: ingredient.title,
            is_parent: ingredient.is_parent,
            claim: ingredient.claim.map(VerifiedClaim::from),
            problems: ingredient.problems.into_iter().map(VerificationProblem::from).collect(),
        }
    }
}

impl From<Fault> for VerificationProblem {
    fn from(Fault { code, explanation }: Fault) -> Self {
        Self { code, explanation }
    }
}
