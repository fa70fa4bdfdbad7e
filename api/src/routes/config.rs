//! `/api/config`: what the page needs to know before it can show anything. One build of the page serves
//! every installation.

use axum::Json;
use axum::extract::State;
use retouch_catalog::{Factor, FixMode, Tier, Tool, ToolName};
use retouch_core::credits::{self, PACKS, SIGNUP_CREDITS};
use retouch_core::magic_fix::{MAX_PROMPT_LENGTH, Offer};
use retouch_core::workers::{self, ServedModel};
use serde::Serialize;
use utoipa::ToSchema;

use super::views::{ModeView, ToolView};
use crate::config::{LogoutStyle, SiteConfig};
use crate::error::ApiError;
use crate::state::App;

/// What this installation offers.
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

/// What is refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Limits)]
#[expect(clippy::struct_field_names, reason = "the names of the JSON")]
pub struct LimitsView {
    #[schema(example = 6000)]
    max_dimension: u32,
    #[schema(example = 1440)]
    max_upscale_dimension: u32,
    max_upload_bytes: usize,
    #[schema(example = 500)]
    max_prompt_length: usize,
}

/// Credits on sale.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pack)]
pub struct PackView {
    number: u8,
    credits: i32,
    /// In cents.
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
    /// The parameter that takes the hints below.
    idp_hint_parameter: Option<String>,
    providers: ProvidersView,
    logout_style: LogoutStyle,
    logout_endpoint: Option<String>,
}

/// The hint for each way to sign in; null where it is not offered, empty where none is needed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Providers)]
pub struct ProvidersView {
    google: Option<String>,
    facebook: Option<String>,
    password: Option<String>,
}

/// A tool as this installation has it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOffer {
    tool: ToolView,
    /// Whether a worker serves it.
    available: bool,
    /// Whether a worker serves its free runs.
    free_available: bool,
    costs: Vec<CostView>,
    models: ModelsView,
}

/// A price.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cost)]
pub struct CostView {
    /// 2 or 4, for upscales.
    factor: Option<u8>,
    credits: i32,
}

/// Which model serves a tool; null where none does, or several do.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolModels)]
pub struct ModelsView {
    paid: Option<String>,
    free: Option<String>,
}

/// What Magic Fix can do here.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MagicFix)]
pub struct MagicFixView {
    /// What an engine is installed for.
    modes: Vec<ModeView>,
    /// The words that may be painted with, where the text-guided engine knows no others; null where it
    /// takes any, and where there is none.
    vocabulary: Option<Vec<String>>,
    /// Whether the text-guided engine only shows that the way works.
    demo: bool,
}

impl From<Offer> for MagicFixView {
    fn from(offer: Offer) -> Self {
        let Offer { modes, vocabulary, is_demo } = offer;
        Self { modes: modes.into_iter().map(ModeView::from).collect(), vocabulary, demo: is_demo }
    }
}

/// What is switched on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Features)]
pub struct FeaturesView {
    /// Whether credits can be bought.
    payments: bool,
}

/// What the operator has added to the page.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Site)]
pub struct SiteView {
    /// Where people write to.
    contact_email: Option<String>,
    /// An advertising account that is told of sign-ins, of those people who agree.
    ad_tag: Option<AdTagView>,
    /// A rating that the landing page shows.
    rating: Option<RatingView>,
}

/// An advertising account of Google.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdTag)]
pub struct AdTagView {
    #[schema(example = "AW-123")]
    id: String,
    /// What is counted in it.
    #[schema(example = "AW-123/abc")]
    conversion: String,
}

/// A review service's own page with a rating, made to be shown in a frame.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rating)]
pub struct RatingView {
    service: String,
    url: String,
    /// In pixels.
    height: u32,
}

impl From<&SiteConfig> for SiteView {
    fn from(site: &SiteConfig) -> Self {
        let ad_tag = site.ad_tag_id.clone().zip(site.ad_conversion.clone());
        let rating = site.rating_service.clone().zip(site.rating_url.as_ref());
        Self {
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

/// Limits, prices, packs, sign-in and tools of this installation.
#[utoipa::path(get, path = "/api/config", tag = "config", responses((status = 200, body = ConfigView)))]
pub async fn get_config(State(app): State<App>) -> Result<Json<ConfigView>, ApiError> {
    let served = workers::known_models(&app.pool).await?;
    let identity = &app.identity;
    let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
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
            idp_hint_parameter: some(&identity.oidc_idp_hint_parameter),
            providers: ProvidersView {
                google: some(&identity.oidc_google_hint),
                facebook: some(&identity.oidc_facebook_hint),
                password: Some(String::new()),
            },
            logout_style: identity.oidc_logout_style,
            logout_endpoint: identity.oidc_logout_endpoint.as_ref().map(ToString::to_string),
        },
        tools: ToolName::ALL.iter().map(|tool| offer(*tool, &served)).collect(),
        magic_fix: workers::fix_offer(&served).into(),
        features: FeaturesView { payments: app.payments.is_some() },
        site: SiteView::from(&app.site),
    }))
}

fn offer(tool: ToolName, served: &[ServedModel]) -> ToolOffer {
    let serving = |tier: Tier| {
        let fits = move |served: &&ServedModel| served.tool == tool && served.tier == tier;
        served.iter().filter(fits).map(|served| served.model.as_str())
    };
    // Where a tool has a model for each thing it does, no one of them is its model.
    let model = |tier: Tier| {
        let mut names = serving(tier);
        let first = names.next()?;
        let is_only = tool != ToolName::MagicFix || names.all(|name| name == first);
        is_only.then(|| first.to_owned())
    };
    let models = ModelsView { paid: model(Tier::Paid), free: model(Tier::Free) };
    let costs: &[Tool] = match tool {
        ToolName::RemoveBackground => &[Tool::RemoveBackground],
        ToolName::Upscale => &[Tool::Upscale(Factor::X2), Tool::Upscale(Factor::X4)],
        // Every mode costs the same.
        ToolName::MagicFix => &[Tool::MagicFix(FixMode::Edit)],
    };
    ToolOffer {
        tool: tool.into(),
        available: serving(Tier::Paid).next().is_some(),
        free_available: serving(Tier::Free).next().is_some(),
        costs: costs
            .iter()
            .map(|tool| CostView {
                factor: tool.factor().map(Factor::get),
                credits: credits::price(*tool),
            })
            .collect(),
        models,
    }
}
