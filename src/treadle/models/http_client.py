"""HTTP client: the one by which all models of an event loop are reached, with its certificates and its proxy.

It keeps connections from request to request, and no cookies; it is closed with its loop. Neighbour:
`treadle.models.transport`, which sends by it.
"""

import ssl
from collections.abc import AsyncGenerator
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from anyio.lowlevel import RunVar

from treadle.kernel.errors import Misuse

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS: Final = 15.0

_clients: "RunVar[tuple[httpx2.AsyncClient, AsyncGenerator[None, None]] | None]" = RunVar("treadle.models.http_client")


async def client_here() -> "httpx2.AsyncClient":
    """The client of the running event loop. Raises `Misuse` for certificates or a proxy that cannot be used."""
    kept = _clients.get(None)
    if kept is None or kept[0].is_closed:
        try:
            import httpx2
        except ImportError as error:
            raise Misuse('a model over the network needs httpx2: pip install "treadle[http]"') from error

        tls = _tls()
        try:
            client = httpx2.AsyncClient(
                verify=tls,
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0),
                # Runs of different people share the client; no server is to tell one from what it told another.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        except (ImportError, ValueError) as error:
            raise _of_proxy(error) from None
        kept = (client, _closing(client))
        await anext(kept[1])
        _clients.set(kept)
    return kept[0]


def _of_proxy(error: Exception) -> Misuse:
    # The client's own words may hold the address, and so the password.
    named = "the proxy that the environment names (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY)"
    if isinstance(error, ImportError):
        return Misuse(f"{named} speaks SOCKS, which needs socksio: pip install socksio. Or name one that speaks HTTP.")
    return Misuse(f"{named} cannot be used: its address begins with http://, https:// or socks5://.")


def by_proxy(base_url: str) -> str:
    """What an error adds where a proxy stands between: it may be what is not there. Its address may hold a password."""
    from urllib.request import getproxies, proxy_bypass

    address, named = urlsplit(base_url), getproxies()
    if not (named.get(address.scheme) or named.get("all")) or proxy_bypass(address.hostname or ""):
        return ""
    return f" by way of the proxy that {address.scheme.upper()}_PROXY, ALL_PROXY or the system's settings name"


async def _closing(client: "httpx2.AsyncClient") -> AsyncGenerator[None, None]:
    """Closes `client` with its event loop: a loop's last act is to close the generators that are still open."""
    try:
        yield
    finally:
        # This generator knows its loop; kept on, it would keep the loop as well.
        _clients.set(None)
        await client.aclose()


@cache
def _tls() -> ssl.SSLContext:
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        raise Misuse(
            "the certificates that the environment names (SSL_CERT_FILE or SSL_CERT_DIR) cannot be read: "
            f"{error.strerror or error}. Name a file in PEM form, or leave the variable out for those of the system."
        ) from error
