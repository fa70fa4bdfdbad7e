//! Visitors (people who are not signed in): their addresses, pseudonyms and rate limits.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use hmac::{Hmac, Mac};
use ipnet::IpNet;
use sha2::Sha256;

use crate::config::LimitsConfig;
use crate::error::ApiError;

/// Identifies visitors by their address and limits their runs and uploads.
pub struct Visitors {
    key: Hmac<Sha256>,
    trusted_proxies: Vec<IpNet>,
    runs: DefaultKeyedRateLimiter<IpAddr>,
    uploads: DefaultKeyedRateLimiter<IpAddr>,
}

impl Visitors {
    /// Creates the limiters. `secret` keys the pseudonyms, which cannot be turned back into addresses without it.
    pub fn new(secret: &[u8], limits: &LimitsConfig, trusted_proxies: &[IpNet]) -> Self {
        let mut key = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        key.update(b"visitor:");
        let limiter = |per_hour: u32| {
            let per_hour = NonZeroU32::new(per_hour).unwrap_or(NonZeroU32::MIN);
            RateLimiter::keyed(Quota::per_hour(per_hour))
        };
        Self {
            key,
            trusted_proxies: trusted_proxies.to_vec(),
            runs: limiter(limits.visitor_runs_per_hour),
            uploads: limiter(limits.visitor_uploads_per_hour),
        }
    }

    /// Returns the client's address: the peer, or what trusted proxies report in `X-Forwarded-For`.
    pub fn address(&self, peer: IpAddr, forwarded_for: Option<&str>) -> IpAddr {
        // Each proxy appends the address it saw, so read from the right; a client can forge everything left of that.
        let mut address = peer;
        for forwarded in forwarded_for.unwrap_or_default().rsplit(',') {
            let canonical = address.to_canonical();
            if !self.trusted_proxies.iter().any(|proxies| proxies.contains(&canonical)) {
                break;
            }
            match forwarded.trim().parse::<IpAddr>() {
                Ok(forwarded) => address = forwarded,
                Err(_) => break,
            }
        }
        subscriber(address.to_canonical())
    }

    /// Returns a keyed hash of `address`.
    pub fn pseudonym(&self, address: IpAddr) -> String {
        let mut mac = self.key.clone();
        mac.update(address.to_string().as_bytes());
        hex::encode(&mac.finalize().into_bytes()[..16])
    }

    /// Counts a run; an error if it exceeds the limit.
    pub fn count_run(&self, address: IpAddr) -> Result<(), ApiError> {
        count(&self.runs, address, "free runs")
    }

    /// Counts an upload, even one that is rejected later, because inspecting a file takes CPU time; an error if it
    /// exceeds the limit.
    pub fn count_upload(&self, address: IpAddr) -> Result<(), ApiError> {
        count(&self.uploads, address, "uploads")
    }
}

fn count(
    limiter: &DefaultKeyedRateLimiter<IpAddr>,
    address: IpAddr,
    what: &str,
) -> Result<(), ApiError> {
    if limiter.len() > 100_000 {
        limiter.retain_recent();
    }
    limiter.check_key(&address).map_err(|until| {
        let retry_after_secs = until.wait_time_from(DefaultClock::default().now()).as_secs() + 1;
        let minutes = retry_after_secs.div_ceil(60);
        ApiError::RateLimited {
            detail: format!(
                "Too many {what} from your network. Try again in {minutes} minutes, or sign up."
            ),
            retry_after_secs,
        }
    })
}

/// Returns the address that identifies a subscriber: for IPv6 the /64 network, within which a subscriber chooses
/// addresses freely.
fn subscriber(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::network;

    fn visitors(trusted: &[&str]) -> Visitors {
        let limits = LimitsConfig {
            max_dimension: 6000,
            max_upscale_dimension: 1440,
            max_upload_bytes: 1,
            wait_secs: 1,
            upload_memory_mib: 1,
            upload_pause_secs: 1,
            visitor_runs_per_hour: 3,
            visitor_uploads_per_hour: 3,
            user_runs_per_minute: 60,
            user_uploads_per_minute: 60,
            visitor_queue: 20,
            free_queue: 200,
            paid_queue: 5000,
            user_queue: 200,
        };
        let trusted: Vec<IpNet> =
            trusted.iter().map(|proxy| network(proxy).expect("one")).collect();
        Visitors::new(b"secret", &limits, &trusted)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn only_trusted_proxies_can_report_a_client_address() {
        let direct = visitors(&[]);
        assert_eq!(direct.address(ip("9.9.9.9"), Some("1.1.1.1")), ip("9.9.9.9"));
        let proxied = visitors(&["10.0.0.1", "10.0.0.2"]);
        assert_eq!(proxied.address(ip("10.0.0.1"), Some("6.6.6.6, 7.7.7.7")), ip("7.7.7.7"));
        assert_eq!(
            proxied.address(ip("10.0.0.1"), Some("6.6.6.6, 7.7.7.7, 10.0.0.2")),
            ip("7.7.7.7")
        );
        assert_eq!(proxied.address(ip("10.0.0.1"), Some("nonsense")), ip("10.0.0.1"));
        assert_eq!(proxied.address(ip("10.0.0.1"), None), ip("10.0.0.1"));
    }

    #[test]
    fn a_whole_network_of_proxies_can_be_trusted() {
        let proxied = visitors(&["10.0.0.0/24", "fd00::/8"]);
        assert_eq!(proxied.address(ip("10.0.0.77"), Some("7.7.7.7, fd12::3")), ip("7.7.7.7"));
        assert_eq!(proxied.address(ip("::ffff:10.0.0.77"), Some("7.7.7.7")), ip("7.7.7.7"));
        assert_eq!(proxied.address(ip("10.0.1.77"), Some("7.7.7.7")), ip("10.0.1.77"));
        for wrong in ["10.0.0.0/33", "proxy", ""] {
            assert!(network(wrong).unwrap_err().contains("10.0.0.0/24"), "{wrong}");
        }
    }

    #[test]
    fn addresses_in_one_ipv6_network_share_their_runs() {
        let visitors = visitors(&[]);
        let one = visitors.address(ip("2001:db8:1:2:3::4"), None);
        let other = visitors.address(ip("2001:db8:1:2:ffff::9"), None);
        assert_eq!(one, other);
        for _ in 0..3 {
            visitors.count_run(one).expect("within the limit");
        }
        assert!(matches!(
            visitors.count_run(other),
            Err(ApiError::RateLimited { retry_after_secs: 1..=1201, .. })
        ));
        visitors.count_run(ip("9.9.9.9")).expect("another visitor");
    }
}
