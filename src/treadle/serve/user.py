"""User: who calls, and what of the journal they may see and decide."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from treadle.kernel.errors import Misuse


@dataclass(frozen=True, slots=True)
class User:
    """Who calls. What an application's `auth` returns for a request.

    Attributes:
        name: their name. It stands in the journal with what they begin, say and decide, and is the key of a
            `Budget(per="user")`. Never empty.
        sees: "own" for the runs and conversations that are theirs, "all" for everybody's.
        decides: likewise, for what may be done with a run that exists: decide on its calls, speak to it, pause, cancel,
            resume, fork and delete it; "nothing" for somebody who may only look. What is not seen is not decided on.
        begins: whether they may begin runs.
        agents: the names of the agents that they may use and whose runs they may see; None for all.
        inside: whether they see what is for whoever runs the agents: what those are told, and the words of providers
            and exceptions.
        raises_limits: whether limits that they ask for may be higher than the agent's; otherwise each limit is at most
            the agent's own.

    Raises:
        Misuse: the name is empty or no text, or a word is none of these.
    """

    name: str
    sees: Literal["own", "all"] = "own"
    decides: Literal["own", "all", "nothing"] = "own"
    begins: bool = True
    agents: Collection[str] | None = None
    inside: bool = False
    raises_limits: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise Misuse(f"User takes a name that is not empty; it was given {self.name!r:.100}")
        if self.sees not in ("own", "all") or self.decides not in ("own", "all", "nothing"):
            raise Misuse(
                f'User takes sees="own" or "all" and decides="own", "all" or "nothing"; it was given '
                f"{self.sees!r:.50} and {self.decides!r:.50}"
            )
        if isinstance(self.agents, str):
            raise Misuse(f"User takes agents as a list of names, or None; it was given {self.agents!r:.100}")

    def may_see(self, owner: str, agent: str) -> bool:
        """Whether they may see what belongs to `owner` and is of `agent`."""
        return self.may_use(agent) and (self.sees == "all" or owner == self.name)

    def may_decide(self, owner: str, agent: str) -> bool:
        """Whether they may decide on it."""
        mine = self.decides == "all" or (self.decides == "own" and owner == self.name)
        return mine and self.may_see(owner, agent)

    def may_use(self, agent: str) -> bool:
        """Whether they may use the agent."""
        return self.agents is None or agent in self.agents


def operator(name: str) -> User:
    """Somebody who may do everything: whoever is at this machine, or has the token."""
    return User(name, sees="all", decides="all", inside=True, raises_limits=True)
