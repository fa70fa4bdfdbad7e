//! The operator's settings: which results to mark, and the key for them.

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use retouch_catalog::Tool;
use retouch_core::config::Secret;

use crate::error::{SetupError, SignError};
use crate::timestamps::HttpTimestamps;
use crate::{Format, Model, Parent, PngSeal, Signer, Statement, Verifier, container, xmp};

/// The settings of Content Credentials.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Content Credentials")]
pub struct CredentialsConfig {
    /// Which results are marked, with a signed manifest (C2PA) and in XMP: `generated` means every Magic Fix, and every
    /// result of a picture that has such a mark.
    #[arg(long, env = "RETOUCH_CREDENTIALS", value_enum, default_value = "generated")]
    pub credentials: Coverage,
    /// Deliver no results that must be signed but cannot be. Without this, such results are only marked in XMP.
    #[arg(long, env = "RETOUCH_CREDENTIALS_REQUIRED")]
    pub credentials_required: bool,
    /// The signing certificate, in PEM, with the certificates of its issuers.
    #[arg(long, env = "RETOUCH_CREDENTIALS_CHAIN")]
    pub credentials_chain: Option<String>,
    /// Its key, in PEM: PKCS #8, not encrypted.
    #[arg(long, env = "RETOUCH_CREDENTIALS_KEY", hide_env_values = true)]
    pub credentials_key: Option<Secret>,
    /// The timestamp authority (RFC 3161) that confirms when a result was signed, so that the signature outlives the
    /// certificate.
    #[arg(long, env = "RETOUCH_CREDENTIALS_TIMESTAMPS")]
    pub credentials_timestamps: Option<url::Url>,
    /// Certificates, in PEM, whose signatures *Verify* trusts.
    #[arg(long, env = "RETOUCH_CREDENTIALS_TRUST")]
    pub credentials_trust: Option<String>,
}

/// Which results are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Coverage {
    /// None.
    Off,
    /// Results of Magic Fix, and results of marked pictures.
    Generated,
    /// All.
    All,
}

/// Marks results by the operator's settings. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    coverage: Coverage,
    is_required: bool,
    key: Key,
    trust: Option<String>,
}

#[derive(Clone)]
enum Key {
    Missing,
    /// The key cannot sign, for this reason.
    Broken(String),
    Usable(Signer),
}

/// The time before its expiry when a certificate is first reported.
const NOTICE: TimeDelta = TimeDelta::days(14);

impl Credentials {
    /// Reads and tests the key. Needs a Tokio runtime if there is a timestamp authority; does not contact it. Does not
    /// fail if the key cannot sign, so that unsigned results are still made: see [`Self::problem`].
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn open(config: &CredentialsConfig, now: DateTime<Utc>) -> Result<Self, SetupError> {
        let coverage = config.credentials;
        let is_required = config.credentials_required;
        if is_required && coverage == Coverage::Off {
            return Err(SetupError::Contradiction);
        }
        let authority =
            config.credentials_timestamps.as_ref().map(HttpTimestamps::new).transpose()?;
        let authority =
            authority.map(|authority| Arc::new(authority) as Arc<dyn crate::TimestampAuthority>);
        let key = match (&config.credentials_chain, &config.credentials_key) {
            (Some(chain), Some(key)) => Signer::new(chain, key.reveal(), authority, now)
                .map_or_else(|error| Key::Broken(error.to_string()), Key::Usable),
            (None, None) => Key::Missing,
            // Not clap's `requires`, which overlooks settings from files.
            _ => return Err(SetupError::Incomplete),
        };
        let trust = config.credentials_trust.clone();
        let credentials = Self { coverage, is_required, key, trust };
        credentials.verifier().map_err(SetupError::Trust)?;
        credentials.describe(now);
        Ok(credentials)
    }

    fn describe(&self, now: DateTime<Utc>) {
        match (&self.key, self.coverage) {
            (_, Coverage::Off) => tracing::info!("Content Credentials are off"),
            (Key::Usable(signer), _) => tracing::info!(
                name = signer.name(),
                expires = %signer.expires(),
                has_timestamps = signer.has_timestamps(),
                "Signing results with Content Credentials"
            ),
            (Key::Missing, _) if !self.is_required => tracing::info!(
                "Results are marked in XMP but not signed; `retouch-api admin credentials init` makes a certificate"
            ),
            _ => {}
        }
        if let Some(problem) = self.problem(now) {
            tracing::error!("{problem}");
        }
    }

    /// Returns a verifier for the marks of pictures.
    ///
    /// # Errors
    /// If the trusted certificates are not PEM; [`Self::open`] has checked them.
    pub fn verifier(&self) -> Result<Verifier, String> {
        Verifier::new(self.signer().map(Signer::chain), self.trust.as_deref())
    }

    /// Returns the signer, if a usable key is configured.
    pub fn signer(&self) -> Option<&Signer> {
        match &self.key {
            Key::Usable(signer) => Some(signer),
            Key::Missing | Key::Broken(_) => None,
        }
    }

    pub fn signs(&self, now: DateTime<Utc>) -> bool {
        self.coverage != Coverage::Off
            && self.signer().is_some_and(|signer| now <= signer.expires())
    }

    /// Returns the problem that prevents signing as configured, or soon will.
    pub fn problem(&self, now: DateTime<Utc>) -> Option<String> {
        if self.coverage == Coverage::Off {
            return None;
        }
        let cause = match &self.key {
            Key::Missing if self.is_required => {
                "RETOUCH_CREDENTIALS_REQUIRED is set, but there is no key: set RETOUCH_CREDENTIALS_CHAIN_FILE and \
                 RETOUCH_CREDENTIALS_KEY_FILE; `retouch-api admin credentials init` makes both."
                    .to_owned()
            }
            Key::Missing => return None,
            Key::Broken(reason) => {
                format!("The key of Content Credentials cannot be used: {reason}.")
            }
            Key::Usable(signer) => {
                let expires = signer.expires();
                let day = expires.format("%Y-%m-%d");
                if now + NOTICE < expires {
                    return None;
                }
                if now <= expires {
                    return Some(format!(
                        "The certificate of Content Credentials expires on {day}."
                    ));
                }
                format!("The certificate of Content Credentials expired on {day}.")
            }
        };
        let consequence = if self.is_required {
            "Nothing that must be signed is delivered."
        } else {
            "Results are marked in XMP only."
        };
        Some(format!("{cause} {consequence}"))
    }

    /// Returns whether results may need marks; if so, the caller must load the provenance of the picture.
    pub fn may_mark(&self) -> bool {
        self.coverage != Coverage::Off
    }

    /// Returns whether the result of a tool is marked.
    ///
    /// # Errors
    /// [`SignError::NoKey`] if it must be signed but there is no usable key.
    pub fn marks(&self, tool: Tool, parent: &Parent<'_>) -> Result<bool, SignError> {
        let is_marked = match self.coverage {
            Coverage::Off => false,
            Coverage::Generated => matches!(tool, Tool::MagicFix(_)) || parent.is_marked(),
            Coverage::All => true,
        };
        if is_marked && self.is_required && self.signer().is_none() {
            return Err(SignError::NoKey);
        }
        Ok(is_marked)
    }

    /// Prepares the marks of a result; `None` if it gets none.
    ///
    /// # Errors
    /// If it must be signed but cannot be.
    pub fn seal(
        &self,
        tool: Tool,
        model: &Model,
        parent: &Parent<'_>,
        now: DateTime<Utc>,
    ) -> Result<Option<PngSeal>, SignError> {
        if !self.marks(tool, parent)? {
            return Ok(None);
        }
        let statement = Statement::of_run(tool, model, parent.source().as_ref());
        let signed = |signer: &Signer| signer.seal(&statement, parent, now);
        self.or_xmp(signed, || Ok(PngSeal::unsigned(statement.source()))).map(Some)
    }

    /// Marks a file that was made from a result, `png`, as the result is marked.
    ///
    /// # Errors
    /// If it must be signed but cannot be.
    pub fn mark_rendering(
        &self,
        file: Bytes,
        png: &[u8],
        is_finished: bool,
        now: DateTime<Utc>,
    ) -> Result<Bytes, SignError> {
        // A rendering without changes is the result itself, with its marks.
        if file == png {
            return Ok(file);
        }
        let parent = Parent { picture: png, provenance: None };
        let is_wanted = self.coverage != Coverage::Off
            && (self.coverage == Coverage::All || parent.is_marked() || parent.source().is_some());
        let Some(format) = Format::of(&file).filter(|_| is_wanted) else { return Ok(file) };
        let statement = Statement::of_rendering(format, is_finished, parent.source().as_ref());
        let packet = xmp::packet(statement.source());
        let marked = self.or_xmp(
            |signer| signer.sign(&file, &statement, &parent, now),
            || container::with_xmp(&file, format, &packet),
        )?;
        Ok(marked.into())
    }

    /// Signs if there is a usable key, and otherwise marks in XMP, unless signing is required.
    fn or_xmp<T>(
        &self,
        sign: impl FnOnce(&Signer) -> Result<T, SignError>,
        mark: impl FnOnce() -> Result<T, SignError>,
    ) -> Result<T, SignError> {
        let signed = match &self.key {
            Key::Usable(signer) => sign(signer),
            Key::Missing | Key::Broken(_) if self.is_required => Err(SignError::NoKey),
            Key::Missing | Key::Broken(_) => return mark(),
        };
        match signed {
            Err(error) if !self.is_required => {
                tracing::error!(%error, "Cannot sign a result; marking it in XMP only");
                mark()
            }
            outcome => outcome,
        }
    }
}
