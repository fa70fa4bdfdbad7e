//! `admin credentials`: makes and checks what signs Content Credentials. Needs no database.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use chrono::{DateTime, Utc};
use clap::Subcommand;
use retouch_core::Clock;
use retouch_credentials::{Authority, Coverage, Credentials, CredentialsConfig, Leaf, Signer};
use serde_json::json;

use super::answer::Answer;

/// The certificate chain that signs.
const CHAIN: &str = "chain.pem";
/// Its key.
const KEY: &str = "key.pem";
/// The certificate of the private authority.
const AUTHORITY: &str = "authority.pem";
/// The key of the private authority, which only `renew` needs.
const AUTHORITY_KEY: &str = "authority-key.pem";
/// Keys are readable only by their owner.
const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Create a private authority, and a certificate to sign with. Viewers show its signatures as valid, but from an
    /// unknown signer; for a certificate that they trust, ask one of the authorities on the C2PA trust list.
    Init {
        /// The folder to make: chain.pem and key.pem sign, authority.pem and authority-key.pem renew them.
        #[arg(long, default_value = "content-credentials", value_name = "FOLDER")]
        out: PathBuf,
        /// The name in the certificates: who runs this installation.
        #[arg(long, env = "RETOUCH_OPERATOR_NAME", default_value = "Retouch")]
        organization: String,
    },
    /// Issue another certificate from the private authority, and replace chain.pem and key.pem. Then restart API and
    /// workers.
    Renew {
        /// The folder that `init` made.
        #[arg(long, default_value = "content-credentials", value_name = "FOLDER")]
        out: PathBuf,
        /// The name in the certificate.
        #[arg(long, env = "RETOUCH_OPERATOR_NAME", default_value = "Retouch")]
        organization: String,
    },
    /// Test the configured key, and show when its certificate expires.
    Check(Box<CredentialsConfig>),
}

impl Task {
    pub fn perform(&self) -> anyhow::Result<Answer> {
        let now = Clock::system().now();
        match self {
            Self::Init { out, organization } => init(out, organization, now),
            Self::Renew { out, organization } => renew(out, organization, now),
            Self::Check(config) => check(config, now),
        }
    }
}

fn init(folder: &Path, organization: &str, now: DateTime<Utc>) -> anyhow::Result<Answer> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    // In a folder of something else, nobody would look for a key.
    let mut files =
        fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    ensure!(
        files.next().is_none(),
        "{} is not empty; name a new folder with --out",
        folder.display()
    );
    let authority = Authority::new(organization, now)?;
    let Leaf { chain, key } = authority.issue(organization, now)?;
    // The keys come first: a file that exists already stops everything.
    write_new(&folder.join(AUTHORITY_KEY), &authority.key, PRIVATE)?;
    write_new(&folder.join(KEY), &key, PRIVATE)?;
    write_new(&folder.join(AUTHORITY), &authority.certificate, PUBLIC)?;
    write_new(&folder.join(CHAIN), &chain, PUBLIC)?;
    let text = format!(
        "Made a private authority in {}. Set for API and workers:\n\
         \x20 RETOUCH_CREDENTIALS_CHAIN_FILE={}\n\
         \x20 RETOUCH_CREDENTIALS_KEY_FILE={}\n\
         Keep {AUTHORITY_KEY} away from both: only `renew` needs it.\n\
         Viewers show these signatures as valid, but of an unknown signer.",
        folder.display(),
        folder.join(CHAIN).display(),
        folder.join(KEY).display(),
    );
    Ok(Answer::good(
        text,
        json!({ "folder": folder, "chain": folder.join(CHAIN), "key": folder.join(KEY) }),
    ))
}

fn renew(folder: &Path, organization: &str, now: DateTime<Utc>) -> anyhow::Result<Answer> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let authority = Authority { certificate: read(AUTHORITY)?, key: read(AUTHORITY_KEY)? };
    let Leaf { chain, key } = authority.issue(organization, now)?;
    // Both are complete before either is replaced, so that a full disk leaves the old pair.
    let (new_key, new_chain) = (folder.join("key.pem.new"), folder.join("chain.pem.new"));
    for left in [&new_key, &new_chain] {
        if left.exists() {
            fs::remove_file(left)?;
        }
    }
    write_new(&new_key, &key, PRIVATE)?;
    write_new(&new_chain, &chain, PUBLIC)?;
    fs::rename(new_key, folder.join(KEY))?;
    fs::rename(new_chain, folder.join(CHAIN))?;
    let text = format!("Renewed the certificate in {}. Restart API and workers.", folder.display());
    Ok(Answer::good(text, json!({ "folder": folder })))
}

fn check(config: &CredentialsConfig, now: DateTime<Utc>) -> anyhow::Result<Answer> {
    // A timestamp authority is contacted only for a result.
    let config = CredentialsConfig { credentials_timestamps: None, ..config.clone() };
    let credentials = Credentials::open(&config, now)?;
    if config.credentials == Coverage::Off {
        let text = "Content Credentials are off (RETOUCH_CREDENTIALS): results are neither marked nor signed.";
        return Ok(Answer {
            text: text.to_owned(),
            json: json!({ "signs": false }),
            is_good: false,
        });
    }
    let signer = credentials.signer();
    let json = json!({
        "signs": credentials.signs(now),
        "name": signer.map(Signer::name),
        "expires": signer.map(Signer::expires),
        "problem": credentials.problem(now),
    });
    let (text, is_good) = match (credentials.problem(now), signer) {
        (Some(problem), _) => (problem, false),
        (None, Some(signer)) => {
            let (name, expires) = (signer.name(), signer.expires());
            let days = (expires - now).num_days();
            (format!("{name} signs until {}, {days} days from now.", expires.date_naive()), true)
        }
        (None, None) => {
            ("No key is configured: results are marked in XMP but not signed.".to_owned(), false)
        }
    };
    Ok(Answer { text, json, is_good })
}

/// Writes a file that must not exist yet.
fn write_new(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = file.with_context(|| format!("making {}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
    file.sync_all().with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use retouch_core::Clock;

    use super::*;

    #[test]
    fn in_its_last_days_a_certificate_still_signs_and_says_until_when() {
        let now = Clock::system().now();
        let authority = Authority::new("Example Ltd", now).unwrap();
        let Leaf { chain, key } = authority.issue("Example Ltd", now).unwrap();
        let config = CredentialsConfig {
            credentials: Coverage::Generated,
            credentials_required: false,
            credentials_chain: Some(chain),
            credentials_key: Some(key.parse().unwrap()),
            credentials_timestamps: None,
            credentials_trust: None,
        };
        let expires = Credentials::open(&config, now).unwrap().signer().unwrap().expires();
        let Answer { text, json, is_good } = check(&config, expires - TimeDelta::days(3)).unwrap();
        assert!(!is_good && text.contains("expires"), "{text}");
        assert_eq!(json["signs"], true);
        assert_eq!(json["expires"], serde_json::to_value(expires).unwrap());
    }
}
