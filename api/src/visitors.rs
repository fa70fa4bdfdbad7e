//! People without an account: who they are (a hash of an address) and how much they may do.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use hmac::{Hmac, Mac};
use ipnet::IpNet;
use sha2::Sha256;

use crate::config::LimitsConfig;
use crate::error::ApiError;
use crate::signing::hex;

/// Tells visitors apart and counts their runs.
pub struct Visitors {
    key: Hmac<Sha256>,
    trusted_proxies: Vec<IpNet>,
    runs: DefaultKeyedRateLimiter<IpAddr>,
    uploads: DefaultKeyedRateLimiter<IpAddr>,
}

impl Visitors {
    /// `secret` keeps the hashes from being turned back into addresses.
    pub fn new(secret: &[u8], limits: &LimitsConfig, trusted_proxies: &[IpNet]) -> Self {
        let mut key = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        key.update(b"visitor:");
        let limiter = |an_hour: u32| {
            RateLimiter::keyed(Quota::per_hour(NonZeroU32::new(an_hour).unwrap_or(NonZeroU32::MIN)))
        };
        Self {
            key,
            trusted_proxies: trusted_proxies.to_vec(),
            runs: limiter(limits.visitor_runs_per_hour),
            uploads: limiter(limits.visitor_uploads_per_hour),
        }
    }

    /// Where a request really comes from: the peer, or what the nearest proxies we trust say of it.
    pub fn address(&self, peer: IpAddr, forwarded_for: Option<&str>) -> IpAddr {
        // Read from the right: each trusted proxy appended the address it saw; what stands further
        // left anybody can have written.
        let mut address = peer;
        for said in forwarded_for.unwrap_or_default().rsplit(',') {
            let canonical = address.to_canonical();
            if !self.trusted_proxies.iter().any(|proxies| proxies.contains(&canonical)) {
                break;
            }
            match said.trim().parse::<IpAddr>() {
                Ok(said) => address = said,
                Err(_) => break,
            }
        }
        household(address.to_canonical())
    }

    /// A name for whoever is at `address` that says nothing about it.
    pub fn pseudonym(&self, address: IpAddr) -> String {
        let mut mac = self.key.clone();
        mac.update(address.to_string().as_bytes());
        hex(&mac.finalize().into_bytes()[..16])
    }

    /// Counts a run, or refuses it.
    pub fn count_run(&self, address: IpAddr) -> Result<(), ApiError> {
        count(&self.runs, address)
            .map_err(|retry_after_secs| ApiError::TooManyRequests { retry_after_secs })
    }

    /// Counts a picture that is sent, whatever comes of it, or refuses it: looking at one takes the processor too.
    pub fn count_upload(&self, address: IpAddr) -> Result<(), ApiError> {
        count(&self.uploads, address).map_err(|retry_after_secs| ApiError::TooMuchOfOne {
            detail: format!(
                "Too many pictures from your network. Try again in {} minutes, or sign up",
                retry_after_secs.div_ceil(60)
            ),
            retry_after_secs,
        })
    }
}

/// Counts one of `address`; else after how many seconds there is room again.
fn count(limiter: &DefaultKeyedRateLimiter<IpAddr>, address: IpAddr) -> Result<(), u64> {
    if limiter.len() > 100_000 {
        limiter.retain_recent();
    }
    limiter
        .check_key(&address)
        .map_err(|early| early.wait_time_from(DefaultClock::default().now()).as_secs() + 1)
}

/// An IPv6 subscriber has a whole /64 to choose addresses from.
fn household(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
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
    fn only_a_trusted_proxy_is_believed_and_only_about_its_neighbour() {
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
    fn one_household_shares_its_runs() {
        let visitors = visitors(&[]);
        let one = visitors.address(ip("2001:db8:1:2:3::4"), None);
        let other = visitors.address(ip("2001:db8:1:2:ffff::9"), None);
        assert_eq!(one, other);
        for _ in 0..3 {
            visitors.count_run(one).expect("within the limit");
        }
        assert!(matches!(
            visitors.count_run(other),
            Err(ApiError::TooManyRequests { retry_after_secs: 1..=1201 })
        ));
        visitors.count_run(ip("9.9.9.9")).expect("somebody else");
    }
}
