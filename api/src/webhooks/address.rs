//! The IP addresses that webhooks may call: public ones over HTTPS, and the exceptions that the operator allows.
//!
//! Users choose the URLs, and a name can resolve to something else at any time. So each call resolves the name, checks
//! every IP address that it has, and connects to exactly those.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ipnet::IpNet;
use reqwest::dns::{Name, Resolve, Resolving};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::{Host, Url};

/// Maximum length of a URL, in characters.
pub const MAX_URL_LENGTH: usize = 2000;

/// IPv4 networks that are not public, from the IANA's registry of special-purpose addresses, and one address that has a
/// special meaning in a large cloud.
const SPECIAL_V4: [&str; 16] = [
    "0.0.0.0/8",        // this network
    "10.0.0.0/8",       // private
    "100.64.0.0/10",    // shared by a provider's customers (CGNAT)
    "127.0.0.0/8",      // loopback
    "168.63.129.16/32", // Azure's platform services
    "169.254.0.0/16",   // link-local, and clouds' metadata
    "172.16.0.0/12",    // private
    "192.0.0.0/24",     // protocol assignments
    "192.0.2.0/24",     // documentation
    "192.88.99.0/24",   // relays of 6to4
    "192.168.0.0/16",   // private
    "198.18.0.0/15",    // benchmarks
    "198.51.100.0/24",  // documentation
    "203.0.113.0/24",   // documentation
    "224.0.0.0/4",      // multicast
    "240.0.0.0/4",      // reserved, and broadcast
];
/// The public part of IPv6. Loopback, private, link-local, multicast, NAT64 and mapped IPv4 addresses are outside.
const PUBLIC_V6: &str = "2000::/3";
/// The exceptions in it.
const SPECIAL_V6: [&str; 4] = [
    "2001::/23",     // protocol assignments, Teredo among them
    "2001:db8::/32", // documentation
    "2002::/16",     // 6to4, which contains IPv4 addresses
    "3fff::/20",     // documentation
];

static SPECIAL: LazyLock<Vec<IpNet>> =
    LazyLock::new(|| networks(&[&SPECIAL_V4[..], &SPECIAL_V6[..]]));
static PUBLIC: LazyLock<Vec<IpNet>> = LazyLock::new(|| networks(&[&[PUBLIC_V6, "0.0.0.0/0"]]));

fn networks(lists: &[&[&str]]) -> Vec<IpNet> {
    let all = lists.iter().flat_map(|list| list.iter());
    all.map(|network| network.parse().expect("a network")).collect()
}

/// Why an address is refused; its owner sees the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not a URL with a host, or too long.
    #[error("Enter a complete address, such as https://example.com/hooks.")]
    Malformed,
    /// Neither https nor, where it is allowed, http.
    #[error("The address must begin with https://.")]
    Scheme,
    /// It has a user name or a password.
    #[error("The address must not contain a user name or a password.")]
    UserInfo,
    /// It has a port below 1024 that belongs to another service.
    #[error("The address must use port 443, or a port above 1023.")]
    Port,
    /// It is, or resolves to, an address that must not be called.
    #[error("This address belongs to a private network. Webhooks can only call public ones.")]
    Private,
}

/// The rules of this installation. Clones share them.
#[derive(Clone, Debug)]
pub struct AddressRules {
    allowed: Arc<[IpNet]>,
    /// DNS lookup permits of [`Self::check_host`]; deliveries have permits of their own.
    lookups: Arc<Semaphore>,
}

impl AddressRules {
    /// Creates rules that allow `allowed` besides public addresses.
    pub fn new(allowed: &[IpNet]) -> Self {
        Self { allowed: allowed.into(), lookups: Arc::new(Semaphore::new(CHECKED_AT_ONCE)) }
    }

    /// Parses and checks a URL. [`Self::check_host`] and [`Resolver`] check its addresses.
    pub fn parse(&self, text: &str) -> Result<Url, AddressError> {
        if text.chars().count() > MAX_URL_LENGTH || text.chars().any(char::is_whitespace) {
            return Err(AddressError::Malformed);
        }
        let url: Url = text.parse().map_err(|_| AddressError::Malformed)?;
        let plain_port = match url.scheme() {
            "https" => 443,
            "http" if !self.allowed.is_empty() => 80,
            _ => return Err(AddressError::Scheme),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::UserInfo);
        }
        let port = url.port_or_known_default().ok_or(AddressError::Malformed)?;
        if port != plain_port && port < 1024 {
            return Err(AddressError::Port);
        }
        let is_plain = url.scheme() == "http";
        match url.host().ok_or(AddressError::Malformed)? {
            Host::Ipv4(address) => self.check(address.into(), is_plain)?,
            Host::Ipv6(address) => self.check(address.into(), is_plain)?,
            Host::Domain(_) => {}
        }
        Ok(url)
    }

    /// Checks the present addresses of a parsed URL's host. A name that does not resolve passes: that may be temporary.
    pub async fn check_host(&self, url: &Url) -> Result<(), AddressError> {
        let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
        match timeout(LOOKUP_TIMEOUT, lookup(name, &self.lookups)).await {
            Ok(Ok(addresses)) => addresses
                .iter()
                .try_for_each(|address| self.check(*address, url.scheme() == "http")),
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Checks an address; `is_plain` for HTTP without TLS.
    fn check(&self, address: IpAddr, is_plain: bool) -> Result<(), AddressError> {
        // `::ffff:10.0.0.1` is 10.0.0.1.
        let address = address.to_canonical();
        let is_in = |networks: &[IpNet]| networks.iter().any(|network| network.contains(&address));
        if is_in(&self.allowed) || (!is_plain && is_in(&PUBLIC) && !is_in(&SPECIAL)) {
            Ok(())
        } else {
            Err(AddressError::Private)
        }
    }
}

/// Maximum concurrent DNS lookups for addresses that users register.
const CHECKED_AT_ONCE: usize = 16;
/// Maximum wait for a name server.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Resolves a name to all its addresses, once `permits` has one. Each lookup keeps a thread from the pool that also decodes
/// pictures, for as long as a name server takes to answer.
async fn lookup(name: &str, permits: &Arc<Semaphore>) -> io::Result<Vec<IpAddr>> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    let name = name.to_owned();
    let resolve = tokio::task::spawn_blocking(move || {
        // The thread keeps running after its caller stops waiting.
        let _permit = permit;
        (name.as_str(), 0).to_socket_addrs().map(Iterator::collect::<Vec<_>>)
    });
    let addresses = timeout(LOOKUP_TIMEOUT, resolve).await???;
    if addresses.is_empty() {
        return Err(io::Error::other("the name has no address"));
    }
    Ok(addresses.iter().map(SocketAddr::ip).collect())
}

/// Why a name did not resolve to permitted addresses.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// At least one of its addresses must not be called.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// It does not resolve.
    #[error("the name does not resolve")]
    Dns(#[source] io::Error),
}

/// Resolves names for an HTTP client, which connects only to the results. Literal IP addresses never get here:
/// [`AddressRules::parse`] checks them.
#[derive(Clone, Debug)]
pub struct Resolver {
    pub rules: AddressRules,
    /// Whether the client uses HTTP without TLS.
    pub is_plain: bool,
    /// Permits to resolve a name.
    pub lookups: Arc<Semaphore>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { rules, is_plain, lookups } = self.clone();
        Box::pin(async move {
            let addresses = lookup(name.as_str(), &lookups).await.map_err(ResolveError::Dns)?;
            for address in &addresses {
                rules.check(*address, is_plain).map_err(ResolveError::Address)?;
            }
            // The client replaces port 0 with the port of the URL.
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as reqwest::dns::Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allowed: &[&str]) -> AddressRules {
        AddressRules::new(&networks(&[allowed]))
    }

    #[test]
    fn only_public_addresses_pass() {
        let rules = rules(&[]);
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.15",
            "169.253.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.1.1",
            "223.255.255.255",
            "2001:200::1",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "::ffff:1.1.1.1",
        ] {
            assert_eq!(rules.check(public.parse().unwrap(), false), Ok(()), "{public}");
            assert_eq!(
                rules.check(public.parse().unwrap(), true),
                Err(AddressError::Private),
                "http to {public}"
            );
        }
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::101:101",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert_eq!(
                rules.check(special.parse().unwrap(), false),
                Err(AddressError::Private),
                "{special}"
            );
        }
    }

    #[test]
    fn urls_pass_only_without_tricks() {
        let rules = rules(&[]);
        for good in [
            "https://example.com",
            "https://example.com:8443/a?b=c#d",
            "https://[2606:4700::1111]/",
            "https://1.1.1.1",
        ] {
            assert!(rules.parse(good).is_ok(), "{good}");
        }
        let long = format!("https://example.com/{}", "a".repeat(MAX_URL_LENGTH));
        for (bad, why) in [
            ("", AddressError::Malformed),
            ("example.com", AddressError::Malformed),
            ("https://", AddressError::Malformed),
            ("https://exa mple.com", AddressError::Malformed),
            ("https://example.com\n.evil", AddressError::Malformed),
            (&long, AddressError::Malformed),
            ("http://example.com", AddressError::Scheme),
            ("ftp://example.com", AddressError::Scheme),
            ("file:///etc/passwd", AddressError::Scheme),
            ("https://ada@example.com", AddressError::UserInfo),
            ("https://:secret@example.com", AddressError::UserInfo),
            ("https://1.1.1.1@127.0.0.1", AddressError::UserInfo),
            ("https://example.com:22", AddressError::Port),
            ("https://example.com:80", AddressError::Port),
            ("https://127.0.0.1", AddressError::Private),
            ("https://127.1", AddressError::Private),
            ("https://2130706433", AddressError::Private),
            ("https://0x7f.1", AddressError::Private),
            ("https://0177.0.0.1", AddressError::Private),
            ("https://１２７.0.0.1", AddressError::Private),
            ("https://[::1]:8443", AddressError::Private),
            ("https://[::ffff:10.0.0.1]", AddressError::Private),
        ] {
            assert_eq!(rules.parse(bad).err(), Some(why), "{bad}");
        }
    }

    #[test]
    fn an_operator_can_allow_networks() {
        let rules = rules(&["10.1.0.0/16", "::1/128"]);
        for (address, is_plain, passes) in [
            ("10.1.2.3", false, true),
            ("10.1.2.3", true, true),
            ("::ffff:10.1.2.3", true, true),
            ("::1", true, true),
            ("10.2.0.1", false, false),
            ("127.0.0.1", false, false),
            ("1.1.1.1", false, true),
            ("1.1.1.1", true, false),
        ] {
            let checked = rules.check(address.parse().unwrap(), is_plain);
            assert_eq!(checked.is_ok(), passes, "{address}, plain: {is_plain}");
        }
        assert!(rules.parse("http://10.1.2.3/hook").is_ok());
        assert_eq!(rules.parse("http://1.1.1.1/hook"), Err(AddressError::Private));
        assert!(
            rules.parse("http://erp.internal/hook").is_ok(),
            "its addresses are checked when it is called"
        );
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to() {
        let check = async |allowed: &[&str], url: &str| {
            let rules = rules(allowed);
            rules.check_host(&rules.parse(url).unwrap()).await
        };
        assert_eq!(check(&[], "https://localhost").await, Err(AddressError::Private));
        assert_eq!(check(&[], "https://LOCALHOST:8443").await, Err(AddressError::Private));
        assert_eq!(check(&["127.0.0.0/8", "::1/128"], "http://localhost").await, Ok(()));
        assert_eq!(
            check(&[], "https://no-such-host.invalid").await,
            Ok(()),
            "DNS may be away for a moment"
        );
        let lookups = Arc::new(Semaphore::new(1));
        let resolver = Resolver { rules: rules(&[]), is_plain: false, lookups };
        let refused = resolver.resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert!(matches!(
            refused.downcast_ref(),
            Some(ResolveError::Address(AddressError::Private))
        ));
        let unknown =
            resolver.resolve("no-such-host.invalid".parse().unwrap()).await.err().unwrap();
        assert!(matches!(unknown.downcast_ref(), Some(ResolveError::Dns(_))));
    }
}
