"""Skills in folders of generated runs: which there are, how a model asks for them, and what must hold of them."""

from atexit import register
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from hypothesis import strategies as st
from player import Says

from treadle import agent_skills
from treadle.context.stubs import READ_RESULT
from treadle.kernel.events import Event, StepPrepared, ToolFinished
from treadle.kernel.fold import fold
from treadle.kernel.messages import Message, ToolMessage, UserMessage
from treadle.kernel.state import RunState
from treadle.timetravel.replay import Replay
from treadle.tools.agent_skills.skill import ACTIVATE, READ, AgentSkills

OUTSIDE = "what stands outside of every folder"
INSIDE = "how it is done, told in a file of the folder"
BODY = "the way in which a skill has it done"

ALLOWED: tuple[dict[str, tuple[str, ...] | None], ...] = (
    {},
    {"free": None, "tight": ("look", "put", "helper"), "closed": ()},
    {"tight": ("look", "put", "helper")},
    {"tight": ("write", "guarded", "pass_on"), "free": None},
)
"""Which skills an agent may have, and which tools each of them allows; None where it does not say. `tight` of the last
is another than that of the others."""

NAMES = ("tight", "tight", "closed", "free", "nobody")
PATHS = ("guide.md", "sub/more.md", "../outside.txt", "sub/../../outside.txt", "link.txt", "linked/outside.txt", "nil")


@cache
def skills_of(which: int) -> AgentSkills | None:
    """The skills of that number, whose tools need no threads; None for none."""
    if not which:
        return None
    kept = TemporaryDirectory(prefix="skills-")
    register(kept.cleanup)
    root = Path(kept.name)
    (root / "outside.txt").write_text(OUTSIDE)
    for name, allowed in ALLOWED[which].items():
        place = root / "skills" / name
        (place / "sub").mkdir(parents=True)
        head = "" if allowed is None else f"allowed-tools: {' '.join(allowed)}\n"
        (place / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Is {name}.\n{head}---\n{BODY} ({which})\n")
        (place / "guide.md").write_text(INSIDE)
        (place / "sub" / "more.md").write_text(INSIDE)
        (place / "link.txt").symlink_to(root / "outside.txt")
        (place / "linked").symlink_to(root)
    made = agent_skills(root / "skills")
    return msgspec.structs.replace(made, tools=[msgspec.structs.replace(one, thread=False) for one in made.tools])


def asking(name: str) -> tuple[str, str]:
    """A call that activates a skill: the tool, and its arguments."""
    return ACTIVATE, f'{{"name": "{name}"}}'


asks = st.one_of(
    st.sampled_from(NAMES).map(asking),
    st.builds(
        lambda name, path: (READ, f'{{"skill": "{name}", "path": "{path}"}}'), *map(st.sampled_from, (NAMES[:4], PATHS))
    ),
    st.just((ACTIVATE, "{}")),
)
plans = st.lists(st.tuples(st.integers(0, 3), asks), min_size=1, max_size=5)


def with_asks(setup: Any, plan: list[tuple[int, tuple[str, str]]]) -> Any:
    """`setup`, whose model asks for skills: each in the first reply from a step on, before what else it calls."""
    turns = list(setup.script)
    for number, (at, (tool, arguments)) in enumerate(plan):
        place = next((i for i in range(at, len(turns)) if isinstance(turns[i], Says)), len(turns))
        if place == len(turns):
            turns.append(Says(finish="tool_calls"))
        turn = turns[place]
        turns[place] = replace(turn, calls=((f"s{number}", tool, arguments), *turn.calls), finish="tool_calls")
    return replace(setup, script=tuple(turns))


Told = tuple[str, int]
"""A skill that was told: its name, and of which number its instructions are."""


def skills_hold(trial: Any) -> Iterator[str]:
    """An activation happens once and stays; what an active skill does not allow is not run; no file outside is read."""
    if not trial.setup.has_skills:
        return
    for run in trial.journal.runs:
        events, where = trial.journal.events(run), trial.path(run)
        for event in events:
            if isinstance(event, ToolFinished) and OUTSIDE in str(event.content):
                yield f"{where}: a file outside of the skill's folder is read"
        may: dict[int, list[frozenset[str]]] = {}
        for step, state in _prepared(events):
            active = _active(events, state, trial.setup.at(where).skills)
            there = [one for message in state.messages if (one := _skill_in(message))]
            # What another call may yet take the place of does not count as told, so the next one is told too.
            most = len(there) if trial.setup.at(where).hooks.reacts is not None else 1
            for one in active:
                if not 1 <= there.count(one) <= most:
                    yield f"{where}: in step {step} the instructions of {one} stand {there.count(one)} times"
            may.setdefault(step, []).append(_allowed(active))
        for one in trial.executed([run]):
            if not any(not allowed or one.tool in allowed for allowed in may.get(one.step, [frozenset()])):
                yield f"{where}: {one.tool} runs in step {one.step}, where only {may[one.step]} may"


def _prepared(events: list[Event]) -> Iterator[tuple[int, RunState]]:
    """Each step that was prepared, and the state that it was prepared in."""
    state = RunState()
    for event in events:
        if isinstance(event, StepPrepared):
            yield event.step, state
        state = fold(state, event)


def _active(events: list[Event], state: RunState, which: int) -> list[Told]:
    """The skills of the run's own agent that have become active in it, or were before it began, in their order."""
    started: Any = events[0]
    own = ALLOWED[which] if ACTIVATE in started.tools else {}
    brought = [record.result for step in state.steps for record in step.calls if record.result is not None]
    said = [*started.messages, *state.pinned, *brought]
    return list(dict.fromkeys(one for message in said if (one := _skill_in(message)) and one[0] in own))


def _skill_in(message: Message) -> Told | None:
    """The skill whose instructions a message has."""
    by_tool = isinstance(message, ToolMessage) and message.name == ACTIVATE and not message.is_error
    if not by_tool and not (isinstance(message, UserMessage) and message.skill):
        return None
    names = [name for name in ("free", "tight", "closed") if f'<skill_content name="{name}"' in message.text]
    numbers = [number for number in range(len(ALLOWED)) if f"{BODY} ({number})" in message.text]
    return (names[0], numbers[0]) if names and numbers else None


def _allowed(active: list[Told]) -> frozenset[str]:
    """The tools that may run beside those that read; empty for all. What a skill said last counts."""
    last = dict(active)
    said = [allowed for name, number in last.items() if (allowed := ALLOWED[number][name]) is not None]
    return (
        frozenset([ACTIVATE, READ, READ_RESULT, *[name for names in said for name in names]]) if said else frozenset()
    )


def differing(trial: Any, found: Replay, alone: Replay) -> list[str]:
    """What comes out otherwise than recorded; an agent without its skills, which is said to be another, may decide
    otherwise about their tools.
    """
    lost = trial.setup.forgotten(trial.world)
    wrong = [one for one in _runs(found) if one.difference is not None and not (lost and one.changed)]
    if trial.world.quotes and trial.setup.goes_by_arguments:
        # What is asked about arguments is asked about those that stand in the journal.
        wrong = []
    return [str(one) for one in (*wrong, *([] if alone.same else [alone]))]


def _runs(replay: Replay) -> Iterator[Replay]:
    yield replay
    for one in replay.below:
        yield from _runs(one)
