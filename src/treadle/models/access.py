"""Access: where the requests of a model go, and the key and headers that they go with.

Reads the environment, as the table of providers says; what it holds for a provider goes to no other server. Neighbours:
`treadle.models.http_model`, `treadle.models.providers`.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from treadle.kernel.errors import Misuse
from treadle.models.providers import Provider
from treadle.models.transport import checked_url


class Access(Struct, frozen=True):
    """How a server is reached.

    Attributes:
        address: its base URL.
        key: the key; empty if there is none.
        key_source: where the key is from, in words.
        headers: what is sent with each request, the key among it.
    """

    address: str
    key: str = ""
    key_source: str = ""
    headers: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Access({self.address!r})"

    @property
    def advice(self) -> str:
        """What to do where the server refuses the key."""
        if self.key:
            return f"Check the key {self.key_source}"
        return "No key was sent; give api_key= (what the environment holds goes to the provider's own address only)"


def access_of(provider: Provider, base_url: str | None, key: str | None, headers: Mapping[str, str] | None) -> Access:
    """The way to `base_url`, by default the provider's own address, with `key`, by default the environment's.

    Raises:
        MissingKey: the provider needs a key, and there is none.
        Misuse: there is no address, or the address or the key cannot be one.
    """
    own = provider.address()
    if not (base_url or own):
        variable = provider.url_variable
        set_it = f"set the environment variable {variable}, or " if variable else ""
        raise Misuse(f"{provider.name} has no address of its own: {set_it}give base_url=")
    # Without `base_url`, only the environment can hold one that is wrong.
    address = checked_url(base_url or own, "base_url" if base_url else provider.url_variable)
    sent: dict[str, str] = {}
    found, source = "", ""
    if key is not None:
        found, source = key.strip(), "given as api_key="
    elif host_in(address) == host_in(own):
        # What the environment holds for a provider goes to no other server.
        found, source = provider.key(), f"in {provider.key_set}"
        sent = provider.environment_headers()
    if not (found.isascii() and found.isprintable()):
        raise Misuse(f"the key {source} holds characters that no key has; was it copied whole?")
    return Access(address, found, source, sent | {**provider.auth_headers(found), **(headers or {})})


def host_in(address: str) -> str:
    """The host in an address; empty if there is none to be found."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
