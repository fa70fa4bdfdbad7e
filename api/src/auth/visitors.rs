//! Visitors (people who are not signed in): their IP addresses and pseudonyms. `limits/rate_limits/visitors.rs` has their limits.

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

    /// Returns the visitor at `address`.
    pub fn visitor(&self, address: IpAddr) -> Visitor {
        let site = match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(self.pseudonym(&format!("{}/48", network::<3>(address)))),
        };
        Visitor { pseudonym: self.pseudonym(&address.to_string()), site }
    }

    /// Returns a keyed hash of `text`.
    fn pseudonym(&self, text: &str) -> String {
        let mut mac = self.key.clone();
        mac.update(text.as_bytes());
        hex::encode(&mac.finalize().into_bytes()[..16])
    }
}

/// Somebody who is not signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// Stands for the address.
    pub pseudonym: String,
    /// Stands for the /48 network of an IPv6 address. One site usually gets a /48, which is 65,536 visitors.
    pub site: Option<String>,
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
        IpAddr::V6(address) => IpAddr::V6(network::<4>(address)),
    }
}

/// Returns whether an address, as [`Visitors::address`] returns it, belongs to this host or to a private network.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        // `::1` is in the network `::`.
        IpAddr::V6(network) => {
            network.is_unspecified() || network.is_unique_local() || network.is_unicast_link_local()
        }
    }
}

/// Keeps the first segments of an address, of 16 bits each.
fn network<const SEGMENTS: usize>(address: Ipv6Addr) -> Ipv6Addr {
    let mut segments = address.segments();
    segments[SEGMENTS..].fill(0);
    segments.into()
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
    fn addresses_of_this_host_and_of_private_networks_are_private() {
        let visitors = visitors(&[]);
        let is_private = |text| is_private(visitors.address(ip(text), &[]));
        for own in ["127.0.0.1", "::1", "10.1.2.3", "172.17.0.1", "::ffff:192.168.1.9", "fd12::3"] {
            assert!(is_private(own), "{own}");
        }
        for other in ["9.9.9.9", "172.32.0.1", "2001:db8::1", "::ffff:9.9.9.9"] {
            assert!(!is_private(other), "{other}");
        }
    }

    #[test]
    fn addresses_in_one_ipv6_network_are_one_visitor() {
        let visitors = visitors(&[]);
        let one = visitors.address(ip("2001:db8:1:2:3::4"), &[]);
        let other = visitors.address(ip("2001:db8:1:2:ffff::9"), &[]);
        assert_eq!(visitors.visitor(one), visitors.visitor(other));
        let neighbor = visitors.visitor(visitors.address(ip("2001:db8:1:3::4"), &[]));
        assert_ne!(visitors.visitor(one).pseudonym, neighbor.pseudonym);
        assert_eq!(visitors.visitor(one).site, neighbor.site, "of one site");
        let elsewhere = visitors.visitor(ip("2001:db8:2:2::"));
        assert_ne!(visitors.visitor(one).site, elsewhere.site);
        assert_eq!(visitors.visitor(ip("9.9.9.9")).site, None);
    }
}
