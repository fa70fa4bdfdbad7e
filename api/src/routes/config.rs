//! `/api/config`: what the page needs to know about this installation. One build of the page serves all of them.

mod views;

use axum::Json;
use axum::extract::State;
use retouch_catalog::{Factor, FixMode, Tier, Tool, ToolName};
use retouch_core::credits::{self, PACKS, SIGNUP_CREDITS};
use retouch_core::jobs::TypicalTime;
use retouch_core::workers::{self, ServedModel};
use retouch_heif::Support;
use retouch_prompts::MAX_PROMPT_LENGTH;

use crate::error::ApiError;
use crate::state::App;
use views::{
    BoundModelView, ConfigView, CostView, FeaturesView, IdentityView, LimitsView, ModelsView,
    PackView, ProvidersView, SiteView, TimeView, ToolOffer,
};

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
