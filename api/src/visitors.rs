//! Visitors (people who are not signed in): their addresses and pseudonyms. `rate_limits/visitors.rs` has their limits.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use hmac::{Hmac, Mac};
use ipnet::IpNet;
use sha2::Sha256;

/// Identifies visitors by their address.
pub struct Visitors {
    key: Hmac<Sha256>,
    trusted_proxies: Vec<IpNet>,
}

impl Visitors {
    /// `secret` keys the pseudonyms, which cannot be turned back into addresses without it.
    pub fn new(secret: &[u8], trusted_proxies: &[IpNet]) -> Self {
        let mut key = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        key.update(b"visitor:");
        Self { key, trusted_proxies: trusted_proxies.to_vec() }
    }

    /// Returns the address that identifies the subscriber behind a connection; `None` for a trusted proxy, whose
    /// connections carry the requests of many.
    pub fn subscriber(&self, peer: IpAddr) -> Option<IpAddr> {
        let peer = peer.to_canonical();
        (!self.is_proxy(peer)).then(|| subscriber(peer))
    }

    fn is_proxy(&self, canonical: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|proxies| proxies.contains(&canonical))
    }

    /// Returns the client's address: the peer, or what trusted proxies report in the lines of `X-Forwarded-For`.
    pub fn address(&self, peer: IpAddr, forwarded_for: &[&str]) -> IpAddr {
        // Each proxy appends the address it saw, to the last line or as a line of its own. So read from the end; a client can
        // forge everything before.
        let mut address = peer;
        for forwarded in forwarded_for.iter().rev().flat_map(|line| line.rsplit(',')) {
            if !self.is_proxy(address.to_canonical()) {
                break;
            }
            match address_of(forwarded.trim()) {
                Some(forwarded) => address = forwarded,
                None => break,
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
}

/// Reads an address; some proxies report the port too.
fn address_of(forwarded: &str) -> Option<IpAddr> {
    let with_port = || forwarded.parse::<SocketAddr>().ok().map(|address| address.ip());
    forwarded.parse().ok().or_else(with_port)
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
        let trusted: Vec<IpNet> =
            trusted.iter().map(|proxy| network(proxy).expect("one")).collect();
        Visitors::new(b"secret", &trusted)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn only_trusted_proxies_can_report_a_client_address() {
        let direct = visitors(&[]);
        assert_eq!(direct.address(ip("9.9.9.9"), &["1.1.1.1"]), ip("9.9.9.9"));
        let proxied = visitors(&["10.0.0.1", "10.0.0.2"]);
        assert_eq!(proxied.address(ip("10.0.0.1"), &["6.6.6.6, 7.7.7.7"]), ip("7.7.7.7"));
        assert_eq!(proxied.address(ip("10.0.0.1"), &["6.6.6.6, 7.7.7.7, 10.0.0.2"]), ip("7.7.7.7"));
        assert_eq!(proxied.address(ip("10.0.0.1"), &["nonsense"]), ip("10.0.0.1"));
        assert_eq!(proxied.address(ip("10.0.0.1"), &[]), ip("10.0.0.1"));
        let lines = ["6.6.6.6", "7.7.7.7, 10.0.0.2"];
        assert_eq!(proxied.address(ip("10.0.0.1"), &lines), ip("7.7.7.7"));
        for (with_port, client) in
            [("7.7.7.7:4711", ip("7.7.7.7")), ("[2001:db8::1]:4711", ip("2001:db8::"))]
        {
            assert_eq!(proxied.address(ip("10.0.0.1"), &[with_port]), client);
        }
    }

    #[test]
    fn a_trusted_proxy_is_no_subscriber() {
        let proxied = visitors(&["10.0.0.1"]);
        assert_eq!(proxied.subscriber(ip("10.0.0.1")), None);
        assert_eq!(proxied.subscriber(ip("::ffff:10.0.0.1")), None);
        assert_eq!(proxied.subscriber(ip("9.9.9.9")), Some(ip("9.9.9.9")));
    }

    #[test]
    fn a_whole_network_of_proxies_can_be_trusted() {
        let proxied = visitors(&["10.0.0.0/24", "fd00::/8"]);
        assert_eq!(proxied.address(ip("10.0.0.77"), &["7.7.7.7, fd12::3"]), ip("7.7.7.7"));
        assert_eq!(proxied.address(ip("::ffff:10.0.0.77"), &["7.7.7.7"]), ip("7.7.7.7"));
        assert_eq!(proxied.address(ip("10.0.1.77"), &["7.7.7.7"]), ip("10.0.1.77"));
        for wrong in ["10.0.0.0/33", "proxy", ""] {
            assert!(network(wrong).unwrap_err().contains("10.0.0.0/24"), "{wrong}");
        }
    }

    #[test]
    fn addresses_in_one_ipv6_network_are_one_visitor() {
        let visitors = visitors(&[]);
        let one = visitors.address(ip("2001:db8:1:2:3::4"), &[]);
        let other = visitors.address(ip("2001:db8:1:2:ffff::9"), &[]);
        assert_eq!(visitors.pseudonym(one), visitors.pseudonym(other));
        assert_ne!(visitors.pseudonym(one), visitors.pseudonym(ip("9.9.9.9")));
    }
}
