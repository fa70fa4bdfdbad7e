//! `/api/config`: what the page needs to know about this installation. One build of the page serves all of them.

use axum::Json;
use axum::extract::State;
use retouch_catalog::{Factor, FixMode, Reach, Tier, Tool, ToolName};
use retouch_core::credits::{self, PACKS, SIGNUP_CREDITS};
use retouch_core::jobs::TypicalTime;
use retouch_core::workers::{self, ServedModel};
use retouch_heif::Support;
use retouch_prompts::{MAX_PROMPT_LENGTH, Offer};
use serde::Serialize;
use utoipa::ToSchema;

use crate::config::{LogoutStyle, SiteConfig};
use crate::error::ApiError;
use crate::state::App;

/// The configuration of this installation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Config)]
pub struct ConfigView {
    #[schema(example = 20)]
    new_user_credits: i32,
    limits: LimitsView,
    packs: Vec<PackView>,
    identity: IdentityView,
    tools: Vec<ToolOffer>,
    magic_fix: MagicFixView,
    features: FeaturesView,
    site: SiteView,
}

/// The limits of uploads and prompts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Limits)]
#[expect(clippy::struct_field_names, reason = "the names in the JSON")]
pub struct LimitsView {
    #[schema(example = 6000)]
    max_dimension: u32,
    #[schema(example = 1440)]
    max_upscale_dimension: u32,
    max_upload_bytes: usize,
    #[schema(example = 500)]
    max_prompt_length: usize,
}

/// A pack of credits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pack)]
pub struct PackView {
    number: u8,
    credits: i32,
    /// The price in cents.
    amount: i64,
    currency: &'static str,
    label: &'static str,
    note: Option<&'static str>,
}

/// How to sign in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = IdentityProvider)]
pub struct IdentityView {
    issuer: String,
    client_id: String,
    scope: String,
    /// The query parameter for the hints in `providers`.
    idp_hint_parameter: Option<String>,
    providers: ProvidersView,
    logout_style: LogoutStyle,
    logout_endpoint: Option<String>,
}

/// The hint for each sign-in option: null if the option is not offered, empty if it needs no hint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Providers)]
pub struct ProvidersView {
    google: Option<String>,
    facebook: Option<String>,
    password: Option<String>,
}

/// A tool of this installation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOffer {
    tool: ToolName,
    /// True if a worker serves paid runs.
    available: bool,
    /// True if a worker serves free runs.
    free_available: bool,
    costs: Vec<CostView>,
    models: ModelsView,
    /// The typical times of recent runs, by tier and model.
    times: Vec<TimeView>,
}

/// The typical time of a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TypicalTime)]
pub struct TimeView {
    tier: Tier,
    model: String,
    /// The median over recent runs.
    #[schema(example = 1.8)]
    seconds: f64,
    /// The same for each megapixel of the picture. A smaller picture counts as 256 × 256 pixels.
    seconds_per_megapixel: f64,
}

/// A price.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cost)]
pub struct CostView {
    /// 2 or 4, for upscales.
    factor: Option<u8>,
    credits: i32,
}

/// The model that serves a tool; null if none or several do.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolModels)]
#[serde(rename_all = "camelCase")]
pub struct ModelsView {
    paid: Option<String>,
    free: Option<String>,
    /// Every model that serves paid runs, and for which pictures.
    all_paid: Vec<BoundModelView>,
    /// The same for free runs.
    all_free: Vec<BoundModelView>,
}

/// A model, and the pictures that it serves.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BoundModel)]
pub struct BoundModelView {
    model: String,
    /// The SHA-256 of its file.
    sha256: String,
    /// 2 or 4 if it serves only this factor; null otherwise.
    factor: Option<u8>,
    /// The maximum number of pixels, width times height, of a picture; null for any size.
    largest_pixels: Option<u64>,
}

/// The modes of Magic Fix that the installed models can serve.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MagicFix)]
pub struct MagicFixView {
    /// The modes that a model is installed for.
    modes: Vec<FixMode>,
    /// The words that the text-guided model understands; null if it understands any, or is not installed.
    vocabulary: Option<Vec<String>>,
    /// True if the text-guided model is a demo with limited abilities.
    demo: bool,
    /// How far each mode may change the picture beyond the mask.
    reach: Vec<ReachView>,
}

/// How far a mode may change the picture beyond the mask, in pixels: the longer side divided by `divisor`, between
/// `least` and `most`, but at most an eighth of the shorter side and at least 1. With an exact mask, nothing changes
/// beyond it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Reach)]
pub struct ReachView {
    mode: FixMode,
    divisor: u32,
    least: u32,
    most: u32,
    /// True if the mask is exact unless the request says otherwise.
    exact_by_default: bool,
}

impl From<FixMode> for ReachView {
    fn from(mode: FixMode) -> Self {
        let Reach { divisor, least, most } = Reach::of(mode);
        Self { mode, divisor, least, most, exact_by_default: mode.is_mask_exact_by_default() }
    }
}

impl From<Offer> for MagicFixView {
    fn from(offer: Offer) -> Self {
        let Offer { modes, vocabulary, is_demo } = offer;
        let reach = FixMode::ALL.map(ReachView::from).into();
        Self { modes, vocabulary, demo: is_demo, reach }
    }
}

/// Optional features.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Features)]
pub struct FeaturesView {
    /// True if credits can be bought.
    payments: bool,
    /// True if HEIC can be uploaded.
    heic: bool,
    /// True if AVIF can be uploaded.
    avif: bool,
}

/// The operator's additions to the page.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Site)]
pub struct SiteView {
    /// Who runs this installation.
    operator_name: Option<String>,
    /// Their postal address; lines end with a line feed.
    operator_address: Option<String>,
    contact_email: Option<String>,
    /// The advertising account to report sign-ins to, with the user's consent.
    ad_tag: Option<AdTagView>,
    /// The rating on the landing page.
    rating: Option<RatingView>,
}

/// A Google Ads account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdTag)]
pub struct AdTagView {
    #[schema(example = "AW-123")]
    id: String,
    /// The conversion to report.
    #[schema(example = "AW-123/abc")]
    conversion: String,
}

/// A review service's rating, to be shown in a frame.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rating)]
pub struct RatingView {
    service: String,
    url: String,
    /// The height of the frame, in pixels.
    height: u32,
}

impl From<&SiteConfig> for SiteView {
    fn from(site: &SiteConfig) -> Self {
        let ad_tag = site.ad_tag_id.clone().zip(site.ad_conversion.clone());
        let rating = site.rating_service.clone().zip(site.rating_url.as_ref());
        Self {
            operator_name: site.operator_name.clone(),
            operator_address: site.operator_address.as_ref().map(|text| text.replace("\\n", "\n")),
            contact_email: site.contact_email.clone(),
            ad_tag: ad_tag.map(|(id, conversion)| AdTagView { id, conversion }),
            rating: rating.map(|(service, url)| RatingView {
                service,
                url: url.to_string(),
                height: site.rating_height,
            }),
        }
    }
}

/// The limits, prices, packs, identity provider and tools of this installation.
#[utoipa::path(get, path = "/api/config", tag = "config", responses((status = 200, body = ConfigView)))]
pub async fn get_config(State(app): State<App>) -> Result<Json<ConfigView>, ApiError> {
    let served = app.known_models().await?;
    let times = app.typical_times().await?;
    let identity = &app.identity;
    let Support { heic, avif, .. } = app.heif.support().await;
    let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    Ok(Json(ConfigView {
        new_user_credits: SIGNUP_CREDITS,
        limits: LimitsView {
            max_dimension: app.limits.max_dimension,
            max_upscale_dimension: app.limits.max_upscale_dimension,
            max_upload_bytes: app.limits.max_upload_bytes,
            max_prompt_length: MAX_PROMPT_LENGTH,
        },
        packs: PACKS
            .iter()
            .map(|pack| PackView {
                number: pack.number,
                credits: pack.credits,
                amount: pack.amount_cents,
                currency: pack.currency,
                label: pack.label,
                note: pack.note,
            })
            .collect(),
        identity: IdentityView {
            issuer: identity.oidc_issuer.clone(),
            client_id: identity.oidc_client_id.clone(),
            scope: identity.oidc_scope.clone(),
            idp_hint_parameter: non_empty(&identity.oidc_idp_hint_parameter),
            providers: ProvidersView {
                google: non_empty(&identity.oidc_google_hint),
                facebook: non_empty(&identity.oidc_facebook_hint),
                password: Some(String::new()),
            },
            logout_style: identity.oidc_logout_style,
            logout_endpoint: identity.oidc_logout_endpoint.as_ref().map(ToString::to_string),
        },
        tools: ToolName::ALL.iter().map(|tool| offer(*tool, &served, &times)).collect(),
        magic_fix: workers::fix_offer(&served).into(),
        features: FeaturesView { payments: app.payments.is_some(), heic, avif },
        site: SiteView::from(&app.site),
    }))
}

fn offer(tool: ToolName, served: &[ServedModel], times: &[TypicalTime]) -> ToolOffer {
    let of_tier = |tier: Tier| -> Vec<&ServedModel> {
        served.iter().filter(|served| served.tool == tool && served.tier == tier).collect()
    };
    let (paid, free) = (of_tier(Tier::Paid), of_tier(Tier::Free));
    let times = times.iter().filter(|time| time.tool == tool).map(|time| TimeView {
        tier: time.tier,
        model: time.model.clone(),
        seconds: time.secs,
        seconds_per_megapixel: time.secs_per_megapixel,
    });
    let priced: &[Tool] = match tool {
        ToolName::RemoveBackground => &[Tool::RemoveBackground],
        ToolName::Upscale => &[Tool::Upscale(Factor::X2), Tool::Upscale(Factor::X4)],
        // Every mode costs the same.
        ToolName::MagicFix => &[Tool::MagicFix(FixMode::Edit)],
    };
    ToolOffer {
        tool,
        available: for_any_size(&paid).next().is_some(),
        free_available: for_any_size(&free).next().is_some(),
        costs: priced
            .iter()
            .map(|tool| CostView {
                factor: tool.factor().map(Factor::get),
                credits: credits::price(*tool),
            })
            .collect(),
        models: ModelsView {
            paid: main_model(tool, &paid),
            free: main_model(tool, &free),
            all_paid: bound_models(&paid),
            all_free: bound_models(&free),
        },
        times: times.collect(),
    }
}

/// Returns the models that serve pictures of any size.
fn for_any_size<'a>(served: &[&'a ServedModel]) -> impl Iterator<Item = &'a ServedModel> {
    served.iter().copied().filter(|served| served.largest_pixels.is_none())
}

/// Returns the model that serves a tool. Magic Fix may have one model per mode; then the tool as a whole has none.
fn main_model(tool: ToolName, served: &[&ServedModel]) -> Option<String> {
    let mut models = for_any_size(served).map(|served| &served.model);
    let first = models.next()?;
    let is_only = tool != ToolName::MagicFix || models.all(|model| model == first);
    is_only.then(|| first.clone())
}

/// Returns each model once, although several workers may serve it.
fn bound_models(served: &[&ServedModel]) -> Vec<BoundModelView> {
    let mut models = Vec::new();
    for served in served {
        let model = BoundModelView {
            model: served.model.clone(),
            sha256: served.sha256.clone(),
            factor: served.factor,
            largest_pixels: served.largest_pixels,
        };
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models
}
