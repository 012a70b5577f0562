"""Again: what a client that was cut off has of an answer that is told to it once more. Pure.

An AG-UI client adds what it is told to the messages that it has, also where it was told a part of that before: the same
text, and the same arguments of a call, would stand in one message twice.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from treadle.kernel.messages import Json
from treadle.kernel.names import escaped
from treadle.serve.protocols.narrator import Told

# Numbers that nothing has as many digits of are in ids of the client's own.
_PART: Final = re.compile(r"(.*):(?:again-[0-9]{1,15}-)?(text|thinking)-([0-9]{1,15})-[0-9]{1,15}", re.DOTALL)
_SAID: Final = re.compile(r"(.*):said-([0-9]{1,15})", re.DOTALL)


class Before:
    """What of a run, and of those below it, was told before the answer.

    Args:
        run_id: the run.
        told: what was told then: of each run its path, which is empty for the run itself, its id, and how much.
    """

    def __init__(self, run_id: str, told: Iterable[tuple[str, str, Told]]) -> None:
        self._run_id = run_id
        self._runs: dict[str, Told] = {}
        self._calls, self._results = set[str](), set[str]()
        for path, one, known in told:
            self._runs[one] = known
            self._calls |= {self._named(path, call) for call in known.calls}
            self._results |= {self._named(path, call) for call in known.results}

    def thread(self, messages: Sequence[Json]) -> list[Json]:
        """The messages of a client without those that it is told anew."""
        kept = []
        for message in messages:
            if self._is_before(message):
                kept.append(message)
            elif message.get("role") == "reasoning":
                # Its client keeps what was thought where a snapshot has nothing of that kind; so it begins anew.
                kept.append({**message, "content": ""})
        return kept

    def _named(self, path: str, call_id: str) -> str:
        return f"{self._run_id}:{path}{escaped(call_id) if path else call_id}"

    def _is_before(self, message: Mapping[str, object]) -> bool:
        name = str(message.get("id"))
        if not name.startswith((f"{self._run_id}:", f"{self._run_id}.")):
            return True
        if name.endswith(":result"):
            return self._is_call_before(name.removesuffix(":result"), self._results)
        if name.endswith(":calls"):
            return self._is_call_before(name.removesuffix(":calls"), self._calls)
        if part := _PART.fullmatch(name):
            run = self._runs.get(part[1])
            return self._is_run_before(part[1]) if run is None else int(part[3]) <= run.events
        if said := _SAID.fullmatch(name):
            run = self._runs.get(said[1])
            return self._is_run_before(said[1]) if run is None else int(said[2]) <= run.said
        return True

    def _is_call_before(self, name: str, known: set[str]) -> bool:
        """Whether a call was told, or its result: also of a run below whose answer was told."""
        above, mark, _ = name.removeprefix(f"{self._run_id}:").partition("/")
        above = f"{self._run_id}:{above.partition('+')[0]}"
        return name in known or (mark != "" and above in {self._above(one) for one in self._results})

    def _above(self, name: str) -> str:
        return f"{self._run_id}:{escaped(name.removeprefix(f'{self._run_id}:'))}"

    def _is_run_before(self, run_id: str) -> bool:
        """Whether a run below that is not waited for was told: the step that it worked in was over."""
        step = run_id.removeprefix(f"{self._run_id}.").partition(".")[0]
        steps = self._runs[self._run_id].steps if self._run_id in self._runs else 0
        return step.isascii() and step.isdigit() and len(step) < 10 and int(step) < steps
