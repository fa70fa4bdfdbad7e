//! Checks the key of Content Credentials.

use retouch_core::Clock;
use retouch_credentials::{Credentials, CredentialsConfig};

use super::finding::Finding;

pub fn check(config: &CredentialsConfig) -> Finding {
    let now = Clock::system().now();
    let credentials = match Credentials::open(config, now) {
        Ok(credentials) => credentials,
        Err(error) => return Finding::bad(error.to_string(), "fix the setting"),
    };
    if let Some(problem) = credentials.problem(now) {
        return Finding::bad(
            problem,
            "`retouch-api admin credentials renew` issues another certificate; see docs/credentials.md",
        );
    }
    match credentials.signer() {
        _ if !credentials.may_mark() => Finding::note("results are not marked"),
        Some(signer) => Finding::good(format!(
            "{} signs results until {}",
            signer.name(),
            signer.expires().date_naive()
        )),
        None => Finding::note("results are marked in XMP but not signed, because there is no key"),
    }
}
