//! The API's settings. `retouch-api serve --help` is the manual.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use retouch_catalog::{Tier, ToolName};
use retouch_core::config::{DatabaseConfig, RedisConfig, Secret, StorageConfig};
use retouch_core::jobs::MostWaiting;
use retouch_core::telemetry::TelemetryConfig;
use url::Url;

/// Everything `serve` needs to know.
#[derive(Clone, Debug, clap::Args)]
pub struct ApiConfig {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub redis: RedisConfig,
    #[command(flatten)]
    pub storage: StorageConfig,
    #[command(flatten)]
    pub telemetry: TelemetryConfig,
    #[command(flatten)]
    pub identity: IdentityConfig,
    #[command(flatten)]
    pub payments: PaymentsConfig,
    #[command(flatten)]
    pub limits: LimitsConfig,
    #[command(flatten)]
    pub site: SiteConfig,
    /// Where to listen.
    #[arg(long, env = "RETOUCH_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The built page that is served beside the API.
    #[arg(long, env = "RETOUCH_UI_DIR", default_value = "ui/dist")]
    pub ui_dir: PathBuf,
    /// Signs the addresses of pictures and hides visitors' addresses; any long random text. The same on
    /// every instance of the API; changing it makes the addresses given out so far invalid.
    #[arg(long, env = "RETOUCH_URL_SECRET", hide_env_values = true)]
    pub url_secret: Secret,
    /// Proxies whose `X-Forwarded-For` is believed, addresses (10.0.0.7) or networks (10.0.0.0/24), separated by
    /// commas.
    #[arg(long, env = "RETOUCH_TRUSTED_PROXIES", value_delimiter = ',', value_parser = network)]
    pub trusted_proxies: Vec<IpNet>,
}

/// An address is the network of itself alone.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let address = |_| text.parse::<IpAddr>().map(IpNet::from);
    text.parse()
        .or_else(address)
        .map_err(|_| "an address (10.0.0.7) or a network (10.0.0.0/24) is wanted".to_owned())
}

/// What an operator adds to the page; nothing of it is there by default.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SiteConfig {
    /// Where people write to: the page's contact link.
    #[arg(long, env = "RETOUCH_CONTACT_EMAIL")]
    pub contact_email: Option<String>,
    /// An advertising account of Google that is told of sign-ins, of those people who agree: `AW-123`.
    #[arg(long, env = "RETOUCH_AD_TAG_ID", requires = "ad_conversion")]
    pub ad_tag_id: Option<String>,
    /// What is counted in that account: `AW-123/abc`.
    #[arg(long, env = "RETOUCH_AD_CONVERSION", requires = "ad_tag_id")]
    pub ad_conversion: Option<String>,
    /// The review service whose rating the landing page shows.
    #[arg(long, env = "RETOUCH_RATING_SERVICE", requires = "rating_url")]
    pub rating_service: Option<String>,
    /// Its page with the rating, made to be shown in a frame.
    #[arg(long, env = "RETOUCH_RATING_URL", requires = "rating_service")]
    pub rating_url: Option<Url>,
    /// How high the frame is, in pixels.
    #[arg(long, env = "RETOUCH_RATING_HEIGHT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(20..=2000))]
    pub rating_height: u32,
}

/// Who signs people in, and how the page speaks to them.
#[derive(Clone, Debug, clap::Args)]
pub struct IdentityConfig {
    /// The `OpenID` Connect issuer, byte for byte as it writes itself into tokens.
    #[arg(long, env)]
    pub oidc_issuer: String,
    /// The public client that the page signs in with.
    #[arg(long, env, default_value = "retouch")]
    pub oidc_client_id: String,
    /// The audience that access tokens must name. When empty, tokens must name the client instead
    /// (`client_id`, `azp` or `aud`), as Amazon Cognito's do.
    #[arg(long, env)]
    pub oidc_audience: Option<String>,
    /// What the page asks for.
    #[arg(long, env, default_value = "openid email")]
    pub oidc_scope: String,
    /// The parameter that chooses Google or Facebook at the provider: `identity_provider` for Cognito,
    /// `kc_idp_hint` for Keycloak. Empty when the provider has no such choice.
    #[arg(long, env)]
    pub oidc_idp_hint_parameter: Option<String>,
    /// The hint for Google; empty when the provider does not offer it.
    #[arg(long, env)]
    pub oidc_google_hint: Option<String>,
    /// The hint for Facebook; empty when the provider does not offer it.
    #[arg(long, env)]
    pub oidc_facebook_hint: Option<String>,
    /// Further origins that the page speaks to while signing in, separated by commas: Cognito's hosted
    /// pages are not at its issuer's origin.
    #[arg(long, env, value_delimiter = ',')]
    pub oidc_page_origins: Vec<String>,
    /// How signing out works: by the standard, or as Cognito does it.
    #[arg(long, env, value_enum, default_value = "end-session")]
    pub oidc_logout_style: LogoutStyle,
    /// Where signing out goes, if not where discovery says; needed for Cognito.
    #[arg(long, env)]
    pub oidc_logout_endpoint: Option<Url>,
}

/// How signing out works.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LogoutStyle {
    /// The standard's `end_session_endpoint`.
    EndSession,
    /// `client_id` and `logout_uri`.
    Cognito,
}

/// Who takes payments.
#[derive(Clone, Debug, clap::Args)]
pub struct PaymentsConfig {
    /// The address that browsers reach this installation at: where they come back to after paying.
    #[arg(long, env = "RETOUCH_PUBLIC_URL", default_value = "http://127.0.0.1:8080")]
    pub public_url: Url,
    /// Stripe's secret key (`sk_…`, or a restricted `rk_…`). Without it credits cannot be bought.
    #[arg(long, env, hide_env_values = true)]
    pub stripe_secret_key: Option<Secret>,
    /// What Stripe signs its messages to `/api/payments/webhook` with (`whsec_…`). Several, separated by commas,
    /// while one is being replaced.
    #[arg(long, env, hide_env_values = true)]
    pub stripe_webhook_secret: Option<Secret>,
    /// Where Stripe's API is, for a stand-in; empty for Stripe itself.
    #[arg(long, env)]
    pub stripe_api_url: Option<Url>,
}

impl PaymentsConfig {
    /// Each secret that a message may be signed with.
    pub fn stripe_webhook_secrets(&self) -> Vec<Secret> {
        let all = self.stripe_webhook_secret.as_ref().map_or("", Secret::reveal);
        let each = all.split(',').map(str::trim).filter(|secret| !secret.is_empty());
        each.filter_map(|secret| secret.parse().ok()).collect()
    }
}

/// What is refused.
#[derive(Clone, Debug, clap::Args)]
pub struct LimitsConfig {
    /// The widest and highest picture that can be uploaded, in pixels.
    #[arg(long, env = "RETOUCH_MAX_DIMENSION", default_value_t = 6000)]
    pub max_dimension: u32,
    /// The widest and highest picture that can be upscaled, in pixels.
    #[arg(long, env = "RETOUCH_MAX_UPSCALE_DIMENSION", default_value_t = 1440)]
    pub max_upscale_dimension: u32,
    /// The largest upload, in bytes.
    #[arg(long, env = "RETOUCH_MAX_UPLOAD_BYTES", default_value_t = 25 * 1024 * 1024)]
    pub max_upload_bytes: usize,
    /// How much of uploads is held in memory at once, in MiB; whatever comes beyond it is refused for the moment. Half of
    /// it is the most for one address.
    #[arg(long, env = "RETOUCH_UPLOAD_MEMORY_MIB", default_value_t = 256)]
    pub upload_memory_mib: usize,
    /// How long nothing of an upload may arrive before it is given up, in seconds.
    #[arg(long, env = "RETOUCH_UPLOAD_PAUSE_SECS", default_value_t = 30)]
    pub upload_pause_secs: u64,
    /// How long a run route waits before it answers with the job instead, in seconds.
    #[arg(long, env = "RETOUCH_WAIT_SECS", default_value_t = 120)]
    pub wait_secs: u64,
    /// How many free runs a visitor's address gets in an hour.
    #[arg(long, env = "RETOUCH_VISITOR_RUNS_PER_HOUR", default_value_t = 10)]
    pub visitor_runs_per_hour: u32,
    /// How many pictures a visitor's address may send in an hour, those that are refused among them.
    #[arg(long, env = "RETOUCH_VISITOR_UPLOADS_PER_HOUR", default_value_t = 60)]
    pub visitor_uploads_per_hour: u32,
    /// How many runs a user may start in a minute, with browsers and programs together.
    #[arg(long, env = "RETOUCH_USER_RUNS_PER_MINUTE", default_value_t = 60)]
    pub user_runs_per_minute: u32,
    /// How many pictures a user may upload in a minute, with browsers and programs together.
    #[arg(long, env = "RETOUCH_USER_UPLOADS_PER_MINUTE", default_value_t = 60)]
    pub user_uploads_per_minute: u32,
    /// How many visitors' runs may wait before another is refused.
    #[arg(long, env = "RETOUCH_VISITOR_QUEUE", default_value_t = 20)]
    pub visitor_queue: i64,
    /// How many users' free runs may wait before another is refused.
    #[arg(long, env = "RETOUCH_FREE_QUEUE", default_value_t = 200)]
    pub free_queue: i64,
    /// How many paid runs may wait before another is refused.
    #[arg(long, env = "RETOUCH_PAID_QUEUE", default_value_t = 5000)]
    pub paid_queue: i64,
    /// How many paid runs of one user may wait before another of theirs is refused.
    #[arg(long, env = "RETOUCH_USER_QUEUE", default_value_t = 200)]
    pub user_queue: i64,
}

impl LimitsConfig {
    /// The widest and highest picture that a tool works on, in pixels.
    pub fn max_dimension_of(&self, tool: ToolName) -> u32 {
        match tool {
            ToolName::Upscale => self.max_upscale_dimension.min(self.max_dimension),
            ToolName::RemoveBackground | ToolName::MagicFix => self.max_dimension,
        }
    }

    /// How much may wait beside a new job of `tier`.
    pub fn most_waiting(&self, tier: Tier) -> MostWaiting {
        match tier {
            Tier::Paid => MostWaiting { in_all: self.paid_queue, of_owner: Some(self.user_queue) },
            Tier::Free => MostWaiting { in_all: self.free_queue, of_owner: None },
            Tier::Visitor => MostWaiting { in_all: self.visitor_queue, of_owner: None },
        }
    }

    /// How long a run route waits.
    pub fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_secs)
    }
}
