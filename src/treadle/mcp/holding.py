"""Holding: a question of a server that holds its call open for the answer, for which the run waits (`ask="pause"`).

In the versions of the protocol before 2026-07-28 a server asks while its call is under way, and a run that waits cannot
hold the call open. So the server is told that nobody has answered yet, and ends the call as it likes; the person is
asked, and told of that end; and with an answer, the call is made again, in which the same question has it.
"""

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from treadle.mcp.results import is_said
from treadle.mcp.secrets import Secrets
from treadle.mcp.waiting import LONGEST_QUESTION, MOST_KEPT, asked_again, data_of, filled, form_of
from treadle.tools.errors import AsksPerson, ToolError

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

LONGEST_END = 1_000
"""Characters that the person is shown of what the server ended the call with."""

_log = logging.getLogger("treadle")


class Held:
    """The questions of one call, and the answers that there are.

    Args:
        again: what the call was given back with the answer; "" if it is made for the first time.
        answer: what the person answered; None declines.
        secrets: what is not shown of what is asked.

    Attributes:
        refused: whether something was asked that may be of a call which was given up before.

    Raises:
        AsksPerson: the answer does not fit the question, which is asked again.
    """

    def __init__(self, again: str, answer: Any, secrets: Secrets) -> None:
        kept = json.loads(again) if again else {}
        self._secrets, self.refused = secrets, False
        self._given: list[tuple[str, Any, Any]] = [(said, form, one) for said, form, one in kept.get("given", ())]
        self._open: tuple[str, Any] | None = None
        self._ended: Any = None
        self._declined = False
        if "asked" in kept:
            said, form = kept["asked"]
            try:
                found = filled(data_of(answer), form, answer)
            except ToolError as error:
                # The call was made, and ended: that it was not must not be told.
                raise asked_again(error, kept["question"], again) from error
            self._given.append((said, form, found))
            self._ended, self._declined = kept["ended"], found is None
        self._left = [*self._given]

    def declined(self) -> "CallToolResult | None":
        """What the call ended with before, where the person has declined, so that it is not made again."""
        from mcp_types import CallToolResult

        return CallToolResult.model_validate(self._ended, by_name=False) if self._declined else None

    def stands(self, why: str) -> "CallToolResult":
        """What the call ended with before, and beside it why it could not be made again with the answer."""
        from mcp_types import CallToolResult

        words = f"The call ended so while nobody had answered. It could not be made again with the answer: {why}"
        return _with(CallToolResult.model_validate(self._ended, by_name=False), words)

    def answered(self, params: "ElicitRequestParams") -> "ElicitResult":
        """The next answer to this question; "cancel" where there is none, so that the person is asked."""
        from mcp_types import ElicitResult

        form = getattr(params, "requested_schema", None)
        asked = self._secrets.hidden(params.message), self._secrets.without(form)
        for one in self._left:
            if one[:2] == asked:
                self._left.remove(one)
                return ElicitResult(action="accept", content=one[2])
        if self._open is None and form is not None:
            self._open = asked
        return ElicitResult(action="cancel")

    def require_none_open(self, found: "CallToolResult", server: str) -> None:
        """Looks whether a question was left open, now that the call ended with `found`.

        Raises:
            AsksPerson: one was. What has to be kept of it has a bound, beyond which nobody is asked.
        """
        if self._open is None:
            return
        said, form = self._open
        end = json.loads(self._secrets.hidden(found.model_dump_json(by_alias=True, exclude_none=True)))
        words = " ".join(one.get("text", f"({one['type']})") for one in end.get("content", ()))
        told = said if len(said) <= LONGEST_QUESTION else f"{said[:LONGEST_QUESTION]} […]"
        question = (
            f"{server} asks: {told} ({form_of(form)}). It was told that nobody has answered yet, and ended the call "
            f"with: {words[:LONGEST_END]!r}. With an answer the call is made again; if you decline it stays at that"
        )
        kept = json.dumps({"given": self._given, "asked": [said, form], "ended": end, "question": question})
        if len(kept) <= MOST_KEPT:
            raise AsksPerson(question, kept)

    def with_refusal(self, found: "CallToolResult", server: str) -> "CallToolResult":
        """The result, and beside it that a question was refused while the call was under way, if one was."""
        if not self.refused:
            return found
        words = (
            f"{server} asked something while this call was under way. It may be about a call that was given up before, "
            "so it was answered with 'cancel', and no person was asked; so it is until the server is started anew"
        )
        _log.warning("%s", words)
        return _with(found, words)


def _with(found: "CallToolResult", words: str) -> "CallToolResult":
    """The result, and these words beside it."""
    from mcp_types import TextContent

    said = found.content
    if found.structured_content is not None and not is_said(found):
        said = [*said, TextContent(type="text", text=json.dumps(found.structured_content))]
    return found.model_copy(update={"content": [*said, TextContent(type="text", text=f"[{words}]")]})


def is_held(again: str) -> bool:
    """Whether that was kept of a call that was held open."""
    kept = json.loads(again) if again else None
    return isinstance(kept, Mapping) and "asked" in kept
