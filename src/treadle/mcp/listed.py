"""Listed: what a server says of its tools, as a run records it. It is a claim, and is believed as far as the user does.

Where a server is not trusted each tool is taken to write, whatever its annotations say; and one of which it says
something else than at first is marked, so that a person looks at it before it is called again.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from treadle.context.storable import storable_text
from treadle.kernel.messages import ListedTool
from treadle.mcp.naming import LONGEST, tool_names
from treadle.mcp.results import require_schema
from treadle.mcp.secrets import Secrets
from treadle.tools import BadTool, Effect
from treadle.tools.arguments import from_json_schema
from treadle.tools.errors import did_you_mean, nearest
from treadle.tools.server import ServerFailed
from treadle.visible import visible

if TYPE_CHECKING:
    import mcp_types

MOST_TOOLS: Final = 256
"""Tools of one server; models choose badly among far fewer."""

MOST_BYTES: Final = 500_000
"""Bytes of all that a server says of its tools: it stands in each run's journal, and goes to the model at each step."""

LONGEST_WORDS: Final = 8_000
"""Characters of a description that the model is shown."""

MOST_NAMED: Final = 30
"""Tools that a person is told of who has named one that is not there."""

_log = logging.getLogger("treadle")


class Reader:
    """Reads what one server lists.

    Args:
        server: its name.
        secrets: what is not to be shown of what it says.
        trusted: whether its annotations count.
        effects: what the user says of its tools, by the names that it gives them.
        only: the names of those that are wanted; None for all.
    """

    def __init__(
        self,
        server: str,
        secrets: Secrets,
        trusted: bool,
        effects: Mapping[str, Effect],
        only: Sequence[str] | None,
    ) -> None:
        self._server, self._secrets, self._trusted = server, secrets, trusted
        self._effects, self._only = effects, only
        self._first: dict[str, ListedTool] = {}
        self._told: set[tuple[str, str]] = set()

    def read(
        self, tools: "Sequence[mcp_types.Tool]", known: Sequence[ListedTool], first: Sequence[ListedTool]
    ) -> tuple[ListedTool, ...]:
        """The tools as they are recorded; `known` is how they were, and `first` how each was at first in the run.

        Raises:
            ServerFailed: they are too many, or too much is said of them.
        """
        firsts = {one.remote: one for one in first}
        self._tell_of_unknown([one.name for one in tools])
        by_name = {one.name: one for one in tools if self._is_wanted(one.name)}
        names = tool_names(self._server, by_name)
        found: list[ListedTool] = []
        for remote, tool in by_name.items():
            listed = self._listed(names[remote], tool)
            try:
                from_json_schema(listed.name, listed.input_schema, None, "")
                # Else it would be called, and what it gave could not be used.
                require_schema(listed.name, listed.output_schema)
            except BadTool as error:
                _log.warning("a tool of the server %s is left out: %s", self._server, error)
                continue
            found.append(self._held_against(listed, known, firsts.get(remote)))
        self._require_bounded(found)
        for one in [*first, *found]:
            self._first.setdefault(one.remote, one)
        return tuple(found)

    def _tell_of_unknown(self, tools: Sequence[str]) -> None:
        """Warns, once, of each name that the user gave and the server has not: it may be misspelt, or come later."""
        there = [name for name in tools if self._secrets.hidden(name) == name]
        for option, names in (("only", self._only or ()), ("effects", self._effects)):
            for name in names:
                if name in tools or (option, name) in self._told:
                    continue
                self._told.add((option, name))
                meant = did_you_mean(nearest(name, there)) or "."
                has = ", ".join(visible(one)[:LONGEST] for one in there[:MOST_NAMED]) or "none"
                more = f" and {len(there) - MOST_NAMED} more" if len(there) > MOST_NAMED else ""
                words = "the server %s has no tool %r, which %s= names%s It has %s%s"
                _log.warning(words, self._server, name, option, meant, has, more)

    def _is_wanted(self, name: str) -> bool:
        if self._secrets.hidden(name) != name:
            # The name is what it is called by, so nothing can stand in its place.
            _log.warning("a tool of the server %s is left out: a secret is in its name", self._server)
            return False
        return self.is_one_of(name)

    def is_one_of(self, name: str) -> bool:
        """Whether a tool of that name is among those that are wanted."""
        return self._only is None or name in self._only

    def as_said_here(self, listed: ListedTool) -> ListedTool:
        """A tool that was listed in whatever process, with what the user says here of its effect."""
        own = self._effects.get(listed.remote)
        if own is not None:
            return replace(listed, effect=own, says_effect=True)
        return listed if self._trusted else replace(listed, effect="write", says_effect=False)

    def _listed(self, name: str, tool: "mcp_types.Tool") -> ListedTool:
        words = storable_text(self._secrets.hidden(tool.description or tool.title or ""))
        if len(words) > LONGEST_WORDS:
            words = f"{words[:LONGEST_WORDS]} […]"
        effect, says = self._effect(tool)
        schema, output = self._secrets.without(tool.input_schema), self._secrets.without(tool.output_schema)
        return ListedTool(name, self._server, tool.name, words, schema, output, effect, says, digest_of(tool))

    def _effect(self, tool: "mcp_types.Tool") -> tuple[Effect, bool]:
        own, hints = self._effects.get(tool.name), tool.annotations
        if own is not None:
            return own, True
        if not self._trusted or hints is None:
            return "write", False
        if hints.read_only_hint:
            return "read", True
        return ("idempotent" if hints.idempotent_hint else "write"), hints.destructive_hint is not None

    def _held_against(self, listed: ListedTool, known: Sequence[ListedTool], first: ListedTool | None) -> ListedTool:
        """`listed`, marked if it is not what the server said of it at `first` in the run, or in this process."""
        if self._trusted:
            return listed
        last = next((one for one in known if one.remote == listed.remote), None)
        if last is not None and last.changed and last.digest == listed.digest:
            return replace(listed, changed=last.changed)
        for one in (first, self._first.get(listed.remote)):
            # One that was marked as the run first had it stays so: nobody knows here what it was before.
            if one is not None and (one.changed or one.digest != listed.digest):
                return replace(listed, changed=one.changed if one.digest == listed.digest else _change(one, listed))
        return listed

    def _require_bounded(self, found: Sequence[ListedTool]) -> None:
        size = sum(len(json.dumps([one.description, one.input_schema, one.output_schema])) for one in found)
        if len(found) > MOST_TOOLS or size > MOST_BYTES:
            raise ServerFailed(
                f"the server {self._server} lists {len(found)} tools with {size:,} bytes of descriptions, and at most "
                f"{MOST_TOOLS} with {MOST_BYTES:,} are taken: name those that are wanted (only=[…])"
            )


def digest_of(tool: "mcp_types.Tool") -> str:
    """What tells whether a server says the same of a tool as before."""
    said = tool.model_dump(mode="json", by_alias=True, exclude={"meta", "icons"}, exclude_none=True)
    return sha256(json.dumps(said, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _change(first: ListedTool, now: ListedTool) -> str:
    """What a person is told who is to look at it."""
    if first.description == now.description:
        what = "takes or gives something else than when it was first listed, or says something else of its effect"
    else:
        what = f"was first described as {_short(first.description)}, and now as {_short(now.description)}"
    return f"The server {now.server} has changed its tool {now.remote}: it {what}."


def _short(text: str) -> str:
    return repr(text if len(text) <= 300 else f"{text[:300]}…")
