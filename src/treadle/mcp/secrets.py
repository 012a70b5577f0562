"""Secrets: what a server was given to know and nobody else is to read, such as the keys in its environment.

Whatever comes from a server, and whatever is told about one, has these values taken out as they are written: a server
that prints its environment does not put a key in a journal.
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

SHORTEST: Final = 6
"""Characters from which on a value is taken for a secret: shorter ones are words such as "true", found everywhere."""


class Secrets:
    """Values that are shown by their names only.

    Args:
        named: the values, by name.
    """

    def __init__(self, named: Mapping[str, str]) -> None:
        forms = {
            form: name
            for name, value in named.items()
            for written in (value, value.strip())
            for form in (
                written, json.dumps(written)[1:-1], json.dumps(written, ensure_ascii=False)[1:-1], quote(written, "")
            )
            if len(value.strip()) >= SHORTEST
        }  # fmt: skip
        # The longest first: one may be a part of another.
        self._forms = sorted(forms.items(), key=lambda one: -len(one[0]))

    @property
    def longest(self) -> int:
        """Characters of the longest of them."""
        return max((len(form) for form, _ in self._forms), default=0)

    def hidden(self, text: str) -> str:
        """`text` with a name in the place of each value."""
        for form, name in self._forms:
            if form in text:
                text = text.replace(form, f"[{name}]")
        return text

    def without(self, value: Any) -> Any:
        """JSON data with none of them in it, in names neither."""
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, dict):
            return {self.hidden(name): self.without(one) for name, one in value.items()}
        return [self.without(one) for one in value] if isinstance(value, list) else value


def of_header(name: str, value: str) -> dict[str, str]:
    """The secrets in a header: all of it, and what follows the word "Bearer" or the like."""
    scheme, _, rest = value.partition(" ")
    return {name: value, **({f"{name} {scheme}": rest} if rest else {})}


def of_url(url: str) -> dict[str, str]:
    """The secrets in an address: a user and a password, either of which may be a key, and what follows a "?"."""
    parts = urlsplit(url)
    found = {f"url {number}": one.partition("=")[2] for number, one in enumerate(parts.query.split("&"))}
    found |= {"url user": parts.username or "", "url password": parts.password or ""}
    return found | {f"{name} decoded": unquote(value) for name, value in found.items() if unquote(value) != value}
