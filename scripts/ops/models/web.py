"""Opens addresses as a registry's client is set up to: by its proxy, with its certificates and logins."""

import base64
import netrc
import ssl
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, ProxyHandler, build_opener


def opener(proxy=None, certificates=None, trusted_hosts=()):
    """A stand-in for `urlopen`. Where no proxy is given, that of the environment holds."""
    proxies = [ProxyHandler({"http": proxy, "https": proxy})] if proxy else []
    checking = build_opener(*proxies, HTTPSHandler(context=checking_context(certificates)))
    # Files are known by their checksums; a host that the client was told to trust gets no further than that.
    trusting = build_opener(*proxies, HTTPSHandler(context=trusting_context()))

    def open_address(request, timeout):
        log_in(request)
        host = urlsplit(request.full_url)
        is_trusted = {host.hostname, host.netloc} & set(trusted_hosts)
        return (trusting if is_trusted else checking).open(request, timeout=timeout)

    return open_address


def checking_context(certificates):
    context = ssl.create_default_context()
    if certificates:
        kind = "capath" if Path(certificates).is_dir() else "cafile"
        context.load_verify_locations(**{kind: certificates})
    return context


def trusting_context():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def log_in(request):
    """A login in the address or in ~/.netrc goes into a header, which redirects do not hand on."""
    parts = urlsplit(request.full_url)
    login = login_in(parts) or login_known_for(parts.hostname)
    request.full_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    if login:
        token = base64.b64encode(":".join(login).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")


def login_in(parts):
    return (unquote(parts.username), unquote(parts.password or "")) if parts.username else None


def login_known_for(host):
    try:
        found = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    return (found[0], found[2] or "") if found else None


def with_login_of(page, address):
    """An index that was reached with a login has its files behind the same login, when they are on the same host."""
    page, parts = urlsplit(page), urlsplit(address)
    login, at, _ = page.netloc.rpartition("@")
    if at and parts.username is None and parts.hostname == page.hostname:
        return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))
    return address
