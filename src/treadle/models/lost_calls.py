"""Lost calls: replies that say that they end with a call of a tool, and have none.

Servers lose a call, or cannot read what the model wrote; what stands before a call is no answer. Some say so of every
reply, a whole answer too, once tools are offered (https://github.com/InternLM/lmdeploy/issues/3349,
https://github.com/mudler/LocalAI/issues/6218): what tells them apart is that they never say that a reply just stops.
Pure but for what is kept of a model. Neighbours: `treadle.models.http_model` and `treadle.models.langchain`.
"""

import logging
from typing import Final

from treadle.models.errors import UnfinishedReply
from treadle.models.port import ModelReply, ModelRequest

ENOUGH: Final = 3
"""How many requests answered so, and none otherwise, say that a server's word means nothing."""

log = logging.getLogger("treadle")


class LostCalls:
    """Whether the calls with which a model's replies are said to end were lost.

    Args:
        name: the model, for the log.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._says_stop = False
        self._missed: set[tuple[str, int]] = set()

    def check(self, reply: ModelReply, request: ModelRequest) -> None:
        """Raises `UnfinishedReply` for a whole reply that ends with calls which are not there, if tools may be called.

        Not once its server has said so again of the same request, or of several, and never that a reply stops: its
        words are the answer then.
        """
        if reply.message.calls or not request.tools or request.tool_choice == "none":
            return
        if reply.finish != "tool_calls":
            self._says_stop = self._says_stop or reply.finish == "stop"
            return
        asked = (request.run_id, len(request.messages))
        doubted = not self._says_stop and request.tool_choice == "auto" and bool(reply.message.text.strip())
        if doubted and (asked in self._missed or len(self._missed) >= ENOUGH):
            log.warning(
                "%s says of each reply that it ends with a call of a tool, though none comes; its words are taken for "
                "the answer",
                self._name,
                extra={"run_id": request.run_id, "model": self._name},
            )
            return
        if doubted:
            self._missed.add(asked)
        raise UnfinishedReply(
            "the reply says that it ends with a call of a tool, and none came: the server lost it, or could not read "
            "what the model wrote; it is not used, for what stands before a call is no answer"
        )
