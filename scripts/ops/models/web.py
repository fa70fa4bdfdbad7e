"""Opens URLs with the proxy, the certificates and the credentials of pip or npm."""

import base64
import netrc
import ssl
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, ProxyHandler, build_opener


def opener(proxy=None, certificates=None, trusted_hosts=()):
    """Returns a replacement for `urlopen`. Without `proxy`, it uses the proxy of the environment."""
    proxies = [ProxyHandler({"http": proxy, "https": proxy})] if proxy else []
    verifying = build_opener(*proxies, HTTPSHandler(context=verifying_context(certificates)))
    # Safe for trusted hosts, because every file is verified by its checksum.
    trusting = build_opener(*proxies, HTTPSHandler(context=trusting_context()))

    def open_address(request, timeout):
        add_credentials(request)
        host = urlsplit(request.full_url)
        is_trusted = {host.hostname, host.netloc} & set(trusted_hosts)
        return (trusting if is_trusted else verifying).open(request, timeout=timeout)

    return open_address


def verifying_context(certificates):
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


def add_credentials(request):
    """Moves credentials from the URL or ~/.netrc to a header that is not sent with redirects."""
    parts = urlsplit(request.full_url)
    credentials = credentials_in(parts) or netrc_credentials(parts.hostname)
    request.full_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    if credentials:
        token = base64.b64encode(":".join(credentials).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")


def credentials_in(parts):
    return (unquote(parts.username), unquote(parts.password or "")) if parts.username else None


def netrc_credentials(host):
    try:
        found = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    return (found[0], found[2] or "") if found else None


def with_credentials_of(page, address):
    """Returns the URL of a file with the credentials of the index page, if both are on the same host."""
    page, parts = urlsplit(page), urlsplit(address)
    credentials, at, _ = page.netloc.rpartition("@")
    if at and parts.username is None and parts.hostname == page.hostname:
        return urlunsplit(parts._replace(netloc=f"{credentials}@{parts.netloc}"))
    return address
