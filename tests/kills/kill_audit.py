"""The audit: what the ledger, the journal and the answer of a killed run say about the promises.

The journal's events are read here one by one and not folded: the audit must not believe the code that it looks at.
"""

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from kill_life import Life, Snapshot
from kill_worlds import WRITES, label_in

from treadle.kernel.events import ModelReplied, ToolFinished, ToolReacted, ToolStarted

QUESTIONS = ("repeated", "doubled", "lost", "asked again")
"""What is counted: recorded results repeated, writes doubled, runs lost, finished results asked about again."""


class Made(NamedTuple):
    """A call that was made: the run, its tool, its label, and the how-manieth for the model's call it is."""

    run: str
    tool: str
    label: str
    made: int


@dataclass
class Findings:
    """What is wrong with one life, by question, each as a sentence."""

    found: dict[str, list[str]] = field(default_factory=lambda: {one: [] for one in QUESTIONS})

    def add(self, question: str, sentence: str) -> None:
        """Adds one."""
        self.found[question].append(sentence)

    def __bool__(self) -> bool:
        return any(self.found.values())


def audit(life: Life, undisturbed: Life) -> Findings:
    """What is wrong with `life`, compared with the same run undisturbed."""
    findings = Findings()
    _lost(findings, life, undisturbed)
    known = [finished(one) for one in life.before]
    asked_by_now: dict[int, set[tuple[str, str]]] = {}
    writes: dict[tuple[str, str], int] = {}
    for line in life.ledger:
        tool, label, process = line["tool"], line["label"], line["process"]
        before = known[process - 1]
        if line["what"] == "effect":
            made = Made(line["run"], tool, label, line["made"])
            if made in before:
                findings.add("repeated", f"{made} ran in process {process}, though its result was in the journal")
            if tool in WRITES:
                writes[tool, label] = writes.get((tool, label), 0) + 1
                if writes[tool, label] > 1:
                    findings.add("doubled", f"{made} ran for the {writes[tool, label]}. time, in process {process}")
            asked_by_now.setdefault(process, set()).add((tool, label))
        else:
            done = {(one.tool, one.label) for one in before} | asked_by_now.get(process, set())
            if (tool, label) in done:
                findings.add("asked again", f"{tool}({label}) was asked about in process {process}, though it is known")
    return findings


def _lost(findings: Findings, life: Life, undisturbed: Life) -> None:
    for fault in life.faults:
        findings.add("lost", fault)
    for name in ("reason", "text", "output"):
        if life.outcome and life.outcome[name] != undisturbed.outcome[name]:
            findings.add("lost", f"its {name} is {life.outcome[name]!r}, undisturbed {undisturbed.outcome[name]!r}")
    if life.outcome:
        for one in _writes(life) ^ _writes(undisturbed):
            where = "only when it was killed" if one in _writes(life) else "only undisturbed"
            findings.add("lost", f"{one[0]}({one[1]}) happened {where}")


def _writes(life: Life) -> set[tuple[str, str]]:
    return {(one["tool"], one["label"]) for one in life.ledger if one["what"] == "effect" and one["tool"] in WRITES}


def finished(journal: Snapshot) -> set[Made]:
    """The calls whose results a journal holds."""
    found: set[Made] = set()
    for run_id, events in journal.items():
        # By step and call id: what is called for it now, and the how-manieth that is.
        calls: dict[tuple[int, str], tuple[str, str, int]] = {}
        for event in events:
            match event:
                case ToolStarted(step=step, call_id=call_id, name=name) if name:
                    calls[step, call_id] = (name, event.arguments, 1)
                case ModelReplied(step=step, message=message):
                    calls |= {(step, call.id): (call.name, call.arguments, 1) for call in message.calls}
                case ToolReacted(step=step, call_id=call_id, call=call) if call is not None:
                    made = calls[step, call_id][2] + 1
                    calls[step, call_id] = (call.name, call.arguments, made)
                case ToolFinished(step=step, call_id=call_id) if not _refused(event):
                    name, arguments, made = calls[step, call_id]
                    found.add(Made(run_id, name, label_in(arguments), made))
                case _:
                    pass
    return found


def _refused(event: ToolFinished) -> bool:
    """Whether this says that the call was never made."""
    try:
        said = json.loads(event.content) if isinstance(event.content, str) and event.is_error else None
    except ValueError:
        return False
    return isinstance(said, dict) and said.get("executed") is False
