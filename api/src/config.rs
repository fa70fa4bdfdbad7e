//! The API's settings, as `retouch-api serve --help` explains them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::builder::RangedU64ValueParser;
use clap::value_parser;
use ipnet::IpNet;
use retouch_catalog::{Tier, ToolName};
use retouch_core::config::{DatabaseConfig, RedisConfig, Secret, StorageConfig};
use retouch_core::images::Quota;
use retouch_core::jobs::QueueLimit;
use retouch_core::telemetry::TelemetryConfig;
use retouch_credentials::CredentialsConfig;
use retouch_heif::HeifConfig;
use url::Url;

/// Returns the bytes of the URL secret.
///
/// # Errors
/// If it is shorter than 16 bytes.
pub fn check_secret(secret: &Secret) -> anyhow::Result<&[u8]> {
    let bytes = secret.reveal().as_bytes();
    ensure!(bytes.len() >= 16, "RETOUCH_URL_SECRET must have at least 16 bytes");
    Ok(bytes)
}

/// The settings of `retouch-api serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ApiConfig {
    /// Address and port to listen on.
    #[arg(long, env = "RETOUCH_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// URL at which browsers and programs reach this installation. Buyers return to it after paying, and `/mcp`
    /// accepts requests for its host only.
    #[arg(long, env = "RETOUCH_PUBLIC_URL", default_value = "http://127.0.0.1:8080")]
    pub public_url: Url,
    /// Folder of the built page, which the API serves.
    #[arg(long, env = "RETOUCH_UI_DIR", default_value = "ui/dist")]
    pub ui_dir: PathBuf,
    /// Secret that signs image URLs and hashes visitors' IP addresses: any long random text, the same in
    /// every API process. Changing it invalidates the URLs issued so far.
    #[arg(long, env = "RETOUCH_URL_SECRET", hide_env_values = true)]
    pub url_secret: Secret,
    /// Proxies whose `X-Forwarded-For` header is trusted: IP addresses (10.0.0.7) or networks (10.0.0.0/24),
    /// separated by commas.
    #[arg(long, env = "RETOUCH_TRUSTED_PROXIES", value_delimiter = ',', value_parser = network)]
    pub trusted_proxies: Vec<IpNet>,
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
    #[command(flatten)]
    pub credentials: CredentialsConfig,
    #[command(flatten)]
    pub heif: HeifConfig,
    #[command(flatten)]
    pub webhooks: WebhooksConfig,
}

/// Parses a network, or a single address as a network of one.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let address = |_| text.parse::<IpAddr>().map(IpNet::from);
    text.parse()
        .or_else(address)
        .map_err(|_| "expected an address (10.0.0.7) or a network (10.0.0.0/24)".to_owned())
}

/// Parses a number that cannot be 0.
fn count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// Checks that an issuer is an address, and keeps its spelling, which tokens must match.
fn issuer(text: &str) -> Result<String, String> {
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https");
    text.parse().ok().filter(is_web).map(|_| text.to_owned()).ok_or_else(|| {
        "expected the URL of the issuer (https://login.example.com/realms/retouch)".to_owned()
    })
}

/// The operator's optional additions to the page.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Site")]
pub struct SiteConfig {
    /// Name of the person or company that runs this installation, for the page's footer.
    #[arg(long, env = "RETOUCH_OPERATOR_NAME")]
    pub operator_name: Option<String>,
    /// Their postal address, with `\n` between lines.
    #[arg(long, env = "RETOUCH_OPERATOR_ADDRESS", requires = "operator_name")]
    pub operator_address: Option<String>,
    /// Email address for the page's contact link.
    #[arg(long, env = "RETOUCH_CONTACT_EMAIL")]
    pub contact_email: Option<String>,
    /// Google Ads account that receives sign-in conversions, with the user's consent: `AW-123`.
    #[arg(long, env = "RETOUCH_AD_TAG_ID", requires = "ad_conversion")]
    pub ad_tag_id: Option<String>,
    /// Conversion to report to that account: `AW-123/abc`.
    #[arg(long, env = "RETOUCH_AD_CONVERSION", requires = "ad_tag_id")]
    pub ad_conversion: Option<String>,
    /// Review service whose rating the landing page shows.
    #[arg(long, env = "RETOUCH_RATING_SERVICE", requires = "rating_url")]
    pub rating_service: Option<String>,
    /// URL of the rating, a page made to be shown in a frame.
    #[arg(long, env = "RETOUCH_RATING_URL", requires = "rating_service")]
    pub rating_url: Option<Url>,
    /// Height of that frame, in pixels.
    #[arg(long, env = "RETOUCH_RATING_HEIGHT", default_value_t = 200, value_parser = value_parser!(u32).range(20..=2000))]
    pub rating_height: u32,
}

/// The identity provider.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Sign-in")]
pub struct IdentityConfig {
    /// The `OpenID` Connect issuer, exactly as it appears in tokens.
    #[arg(long, env, value_parser = issuer)]
    pub oidc_issuer: String,
    /// Id of the public client that the page signs in with.
    #[arg(long, env, default_value = "retouch")]
    pub oidc_client_id: String,
    /// Audience that access tokens must name. If empty, tokens must name the client instead
    /// (`client_id`, `azp` or `aud`), as Amazon Cognito's do.
    #[arg(long, env)]
    pub oidc_audience: Option<String>,
    /// Scopes that the page requests.
    #[arg(long, env, default_value = "openid email")]
    pub oidc_scope: String,
    /// Query parameter that selects Google or Facebook at the provider: `identity_provider` for Cognito,
    /// `kc_idp_hint` for Keycloak. Leave empty if the provider has none.
    #[arg(long, env)]
    pub oidc_idp_hint_parameter: Option<String>,
    /// Value that selects Google. Leave empty if the provider does not offer it.
    #[arg(long, env)]
    pub oidc_google_hint: Option<String>,
    /// Value that selects Facebook. Leave empty if the provider does not offer it.
    #[arg(long, env)]
    pub oidc_facebook_hint: Option<String>,
    /// Origins besides the issuer's that the page contacts to sign in, separated by commas. Cognito's
    /// hosted pages need this.
    #[arg(long, env, value_delimiter = ',')]
    pub oidc_page_origins: Vec<String>,
    /// How to sign out: as the standard says, or as Cognito does.
    #[arg(long, env, value_enum, default_value = "end-session")]
    pub oidc_logout_style: LogoutStyle,
    /// Sign-out URL, if not the one from discovery. Required for Cognito.
    #[arg(long, env)]
    pub oidc_logout_endpoint: Option<Url>,
}

/// How to sign out.
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

/// The payment provider.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Payments")]
pub struct PaymentsConfig {
    /// Stripe's secret key (`sk_…`, or a restricted `rk_…`). Without it, credits cannot be bought.
    #[arg(long, env, hide_env_values = true)]
    pub stripe_secret_key: Option<Secret>,
    /// Secret with which Stripe signs its messages to `/api/payments/webhook` (`whsec_…`). While you replace
    /// it, give both, separated by a comma.
    #[arg(long, env, hide_env_values = true)]
    pub stripe_webhook_secret: Option<Secret>,
    /// URL of a Stripe stand-in. Leave empty for Stripe itself.
    #[arg(long, env)]
    pub stripe_api_url: Option<Url>,
}

impl PaymentsConfig {
    /// Returns the accepted webhook secrets.
    pub fn stripe_webhook_secrets(&self) -> Vec<Secret> {
        let all = self.stripe_webhook_secret.as_ref().map_or("", Secret::reveal);
        let each = all.split(',').map(str::trim).filter(|secret| !secret.is_empty());
        each.filter_map(|secret| secret.parse().ok()).collect()
    }
}

/// Webhooks of users.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Webhooks")]
pub struct WebhooksConfig {
    /// Private networks that webhooks may call, also over plain HTTP: addresses (10.0.0.7) or networks (10.0.0.0/24),
    /// separated by commas. Otherwise webhooks call only public addresses, and only over HTTPS.
    #[arg(long = "webhooks-allow-private", env = "RETOUCH_WEBHOOKS_ALLOW_PRIVATE", value_delimiter = ',', value_parser = network)]
    pub allow_private: Vec<IpNet>,
}

/// Size, rate and queue limits.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitsConfig {
    /// Maximum width and height of an uploaded image, in pixels.
    #[arg(long, env = "RETOUCH_MAX_DIMENSION", default_value_t = 6000, value_parser = value_parser!(u32).range(1..))]
    pub max_dimension: u32,
    /// Maximum width and height of an image to upscale, in pixels.
    #[arg(long, env = "RETOUCH_MAX_UPSCALE_DIMENSION", default_value_t = 1440, value_parser = value_parser!(u32).range(1..))]
    pub max_upscale_dimension: u32,
    /// Maximum size of an upload, in bytes.
    #[arg(long, env = "RETOUCH_MAX_UPLOAD_BYTES", default_value_t = 25 * 1024 * 1024, value_parser = count())]
    pub max_upload_bytes: usize,
    /// Memory for uploads in progress, in MiB. The API answers 503 to uploads beyond it. One IP address can
    /// use half of what the others leave.
    #[arg(long, env = "RETOUCH_UPLOAD_MEMORY_MIB", default_value_t = 256, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_048_576))]
    pub upload_memory_mib: usize,
    /// Seconds without new bytes after which an upload is aborted.
    #[arg(long, env = "RETOUCH_UPLOAD_PAUSE_SECS", default_value_t = 30, value_parser = value_parser!(u64).range(1..=3600))]
    pub upload_pause_secs: u64,
    /// Seconds that a run request waits for the result before it answers with the job instead.
    #[arg(long, env = "RETOUCH_WAIT_SECS", default_value_t = 120, value_parser = value_parser!(u64).range(1..=3600))]
    pub wait_secs: u64,
    /// Free runs per hour and IP address of visitors.
    #[arg(long, env = "RETOUCH_VISITOR_RUNS_PER_HOUR", default_value_t = 10)]
    pub visitor_runs_per_hour: u32,
    /// Uploads per hour and IP address of visitors, including rejected ones. Samples have a separate limit of the same
    /// size.
    #[arg(long, env = "RETOUCH_VISITOR_UPLOADS_PER_HOUR", default_value_t = 60)]
    pub visitor_uploads_per_hour: u32,
    /// Runs per minute and user, in browsers and programs together.
    #[arg(long, env = "RETOUCH_USER_RUNS_PER_MINUTE", default_value_t = 60)]
    pub user_runs_per_minute: u32,
    /// Uploads per minute and user, in browsers and programs together. Selections and renders of results have
    /// separate limits of the same size, samples one of a sixth.
    #[arg(long, env = "RETOUCH_USER_UPLOADS_PER_MINUTE", default_value_t = 60)]
    pub user_uploads_per_minute: u32,
    /// Maximum number of visitors' runs in the queue.
    #[arg(long, env = "RETOUCH_VISITOR_QUEUE", default_value_t = 20, value_parser = value_parser!(i64).range(0..))]
    pub visitor_queue: i64,
    /// Maximum number of visitors' runs in the queue per IP address.
    #[arg(long, env = "RETOUCH_ADDRESS_QUEUE", default_value_t = 5, value_parser = value_parser!(i64).range(0..))]
    pub address_queue: i64,
    /// Maximum number of users' free runs in the queue.
    #[arg(long, env = "RETOUCH_FREE_QUEUE", default_value_t = 200, value_parser = value_parser!(i64).range(0..))]
    pub free_queue: i64,
    /// Maximum number of free runs in the queue per user.
    #[arg(long, env = "RETOUCH_USER_FREE_QUEUE", default_value_t = 20, value_parser = value_parser!(i64).range(0..))]
    pub user_free_queue: i64,
    /// Maximum number of paid runs in the queue.
    #[arg(long, env = "RETOUCH_PAID_QUEUE", default_value_t = 5000, value_parser = value_parser!(i64).range(0..))]
    pub paid_queue: i64,
    /// Maximum number of paid runs in the queue per user.
    #[arg(long, env = "RETOUCH_USER_QUEUE", default_value_t = 200, value_parser = value_parser!(i64).range(0..))]
    pub user_queue: i64,
    /// Storage per user for images and results, in MiB; 0 for no limit. Uploads beyond it are refused.
    #[arg(long, env = "RETOUCH_USER_STORAGE_MIB", default_value_t = 100 * 1024, value_parser = value_parser!(i64).range(0..=1_099_511_627_776))]
    pub user_storage_mib: i64,
    /// Number of images and results that a user can store; 0 for no limit. Uploads beyond it are refused.
    #[arg(long, env = "RETOUCH_USER_PICTURES", default_value_t = 100_000, value_parser = value_parser!(i64).range(0..))]
    pub user_pictures: i64,
    /// Seconds for which `/v1.0/removebg` and the tools of `/mcp` return the result of an equal request without another
    /// charge. 0 only joins runs that have not ended.
    #[arg(long, env = "RETOUCH_REPEAT_WINDOW_SECS", default_value_t = 600)]
    pub repeat_window_secs: u64,
    /// Memory for decoding and rendering pictures, in MiB. By default, what the container's memory leaves beside
    /// uploads. A picture that takes more is rejected.
    #[arg(long, env = "RETOUCH_DECODE_MEMORY_MIB", value_parser = value_parser!(u32).range(1..=1_048_576))]
    pub decode_memory_mib: Option<u32>,
    /// Threads that decode and render pictures. By default, one per CPU of the container.
    #[arg(long, env = "RETOUCH_DECODE_THREADS", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub decode_threads: Option<usize>,
    /// Seconds that an image waits for that memory before the API answers 503.
    #[arg(long, env = "RETOUCH_DECODE_WAIT_SECS", default_value_t = 20, value_parser = value_parser!(u64).range(0..=3600))]
    pub decode_wait_secs: u64,
    /// KiB per second that must arrive of an upload, averaged over `RETOUCH_UPLOAD_PAUSE_SECS`; slower ones are
    /// aborted.
    #[arg(long, env = "RETOUCH_UPLOAD_MIN_KIB_PER_SEC", default_value_t = 4, value_parser = value_parser!(u64).range(0..=1_048_576))]
    pub upload_min_kib_per_sec: u64,
    /// Maximum number of open connections, and of requests in flight, and at most half of the files that the process may
    /// open. One IP address can have half of what the others leave. The connections of trusted proxies have no limit of
    /// their own; the requests that they forward count for the clients' addresses.
    #[arg(long, env = "RETOUCH_MAX_CONNECTIONS", default_value_t = 4096, value_parser = count())]
    pub max_connections: usize,
    /// Maximum number of open connections per IP address, and of its requests in flight.
    #[arg(long, env = "RETOUCH_ADDRESS_CONNECTIONS", default_value_t = 256, value_parser = count())]
    pub address_connections: usize,
    /// Seconds within which a new connection must send its first request head.
    #[arg(long, env = "RETOUCH_HEAD_TIMEOUT_SECS", default_value_t = 10, value_parser = value_parser!(u64).range(1..=3600))]
    pub head_timeout_secs: u64,
}

impl LimitsConfig {
    /// Returns the maximum width and height that a tool accepts, in pixels.
    pub fn max_dimension_of(&self, tool: ToolName) -> u32 {
        match tool {
            ToolName::Upscale => self.max_upscale_dimension.min(self.max_dimension),
            ToolName::RemoveBackground | ToolName::MagicFix => self.max_dimension,
        }
    }

    /// Returns how many jobs of `tier` the queue accepts.
    pub fn queue_limit(&self, tier: Tier) -> QueueLimit {
        match tier {
            Tier::Paid => QueueLimit { total: self.paid_queue, per_owner: Some(self.user_queue) },
            Tier::Free => {
                QueueLimit { total: self.free_queue, per_owner: Some(self.user_free_queue) }
            }
            Tier::Visitor => {
                QueueLimit { total: self.visitor_queue, per_owner: Some(self.address_queue) }
            }
        }
    }

    /// Returns how much a user may store.
    pub fn quota(&self) -> Quota {
        let limit = |number: i64| (number > 0).then_some(number);
        Quota { bytes: limit(self.user_storage_mib << 20), pictures: limit(self.user_pictures) }
    }

    /// Returns how long the same content counts as a repeat.
    pub fn repeat_window(&self) -> Duration {
        Duration::from_secs(self.repeat_window_secs)
    }

    /// Returns how long a run request waits for its result.
    pub fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_secs)
    }
}
