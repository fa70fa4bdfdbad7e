//! The configuration as JSON.

use retouch_catalog::{FixMode, Reach, Tier, ToolName};
use retouch_prompts::Offer;
use serde::Serialize;
use utoipa::ToSchema;

use crate::config::{LogoutStyle, SiteConfig};

/// The configuration of this installation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Config)]
pub struct ConfigView {
    #[schema(example = 20)]
    pub new_user_credits: i32,
    pub limits: LimitsView,
    pub packs: Vec<PackView>,
    pub identity: IdentityView,
    pub tools: Vec<ToolOffer>,
    pub magic_fix: MagicFixView,
    pub features: FeaturesView,
    pub site: SiteView,
}

/// The limits of uploads and prompts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Limits)]
#[expect(clippy::struct_field_names, reason = "the names in the JSON")]
pub struct LimitsView {
    #[schema(example = 6000)]
    pub max_dimension: u32,
    #[schema(example = 1440)]
    pub max_upscale_dimension: u32,
    pub max_upload_bytes: usize,
    #[schema(example = 500)]
    pub max_prompt_length: usize,
}

/// A pack of credits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pack)]
pub struct PackView {
    pub number: u8,
    pub credits: i32,
    /// The price in cents.
    pub amount: i64,
    pub currency: &'static str,
    pub label: &'static str,
    pub note: Option<&'static str>,
}

/// How to sign in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = IdentityProvider)]
pub struct IdentityView {
    pub issuer: String,
    pub client_id: String,
    pub scope: String,
    /// The query parameter for the hints in `providers`.
    pub idp_hint_parameter: Option<String>,
    pub providers: ProvidersView,
    pub logout_style: LogoutStyle,
    pub logout_endpoint: Option<String>,
}

/// The hint for each sign-in option: null if the option is not offered, empty if it needs no hint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Providers)]
pub struct ProvidersView {
    pub google: Option<String>,
    pub facebook: Option<String>,
    pub password: Option<String>,
}

/// A tool of this installation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOffer {
    pub tool: ToolName,
    /// True if a worker serves paid runs.
    pub available: bool,
    /// True if a worker serves free runs.
    pub free_available: bool,
    pub costs: Vec<CostView>,
    pub models: ModelsView,
    /// The typical times of recent runs, by tier and model.
    pub times: Vec<TimeView>,
}

/// The typical time of a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TypicalTime)]
pub struct TimeView {
    pub tier: Tier,
    pub model: String,
    /// The median over recent runs.
    #[schema(example = 1.8)]
    pub seconds: f64,
    /// The same for each megapixel of the picture. A smaller picture counts as 256 × 256 pixels.
    pub seconds_per_megapixel: f64,
}

/// A price.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cost)]
pub struct CostView {
    /// 2 or 4, for upscales.
    pub factor: Option<u8>,
    pub credits: i32,
}

/// The model that serves a tool; null if none or several do.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolModels)]
#[serde(rename_all = "camelCase")]
pub struct ModelsView {
    pub paid: Option<String>,
    pub free: Option<String>,
    /// Every model that serves paid runs, and for which pictures.
    pub all_paid: Vec<BoundModelView>,
    /// The same for free runs.
    pub all_free: Vec<BoundModelView>,
}

/// A model, and the pictures that it serves.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BoundModel)]
pub struct BoundModelView {
    pub model: String,
    /// The SHA-256 of its file.
    pub sha256: String,
    /// 2 or 4 if it serves only this factor; null otherwise.
    pub factor: Option<u8>,
    /// The maximum number of pixels, width times height, of a picture; null for any size.
    pub largest_pixels: Option<u64>,
}

/// The modes of Magic Fix that the installed models can serve.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MagicFix)]
pub struct MagicFixView {
    /// The modes that a model is installed for.
    pub modes: Vec<FixMode>,
    /// The words that the text-guided model understands; null if it understands any, or is not installed.
    pub vocabulary: Option<Vec<String>>,
    /// True if the text-guided model is a demo with limited abilities.
    pub demo: bool,
    /// How far each mode may change the picture beyond the mask.
    pub reach: Vec<ReachView>,
}

/// How far a mode may change the picture beyond the mask, in pixels: the longer side divided by `divisor`, between
/// `least` and `most`, but at most an eighth of the shorter side and at least 1. With an exact mask, nothing changes
/// beyond it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Reach)]
pub struct ReachView {
    pub mode: FixMode,
    pub divisor: u32,
    pub least: u32,
    pub most: u32,
    /// True if the mask is exact unless the request says otherwise.
    pub exact_by_default: bool,
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
    pub payments: bool,
    /// True if HEIC can be uploaded.
    pub heic: bool,
    /// True if AVIF can be uploaded.
    pub avif: bool,
}

/// The operator's additions to the page.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Site)]
pub struct SiteView {
    /// Who runs this installation.
    pub operator_name: Option<String>,
    /// Their postal address; lines end with a line feed.
    pub operator_address: Option<String>,
    pub contact_email: Option<String>,
    /// The advertising account to report sign-ins to, with the user's consent.
    pub ad_tag: Option<AdTagView>,
    /// The rating on the landing page.
    pub rating: Option<RatingView>,
}

/// A Google Ads account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdTag)]
pub struct AdTagView {
    #[schema(example = "AW-123")]
    pub id: String,
    /// The conversion to report.
    #[schema(example = "AW-123/abc")]
    pub conversion: String,
}

/// A review service's rating, to be shown in a frame.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rating)]
pub struct RatingView {
    pub service: String,
    pub url: String,
    /// The height of the frame, in pixels.
    pub height: u32,
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
