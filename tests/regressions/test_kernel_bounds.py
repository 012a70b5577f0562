"""The kernel is only the machine: what of that can be seen from outside.

- `RunState` has no more than 30 fields -> test_no_state_has_over_thirty_fields
- the kernel can be read in an hour: it does not grow -> test_the_kernel_does_not_grow
- it runs no user code, and holds no judgement -> test_decide_is_told_what_was_judged,
  test_judgement_and_context_stand_above_the_kernel, test_the_kernel_imports_nothing_above_it
- import circles, lazy and typing imports included, are gone from drivers and tools
  -> test_no_two_modules_of_drivers_and_tools_import_each_other
- a context variable is a door too -> test_drivers_hold_no_hidden_channel
- names that stand for two things -> test_why_a_reply_ended_and_the_command_to_end_have_a_name_each
- what became of the old names -> test_the_old_names_of_a_state_stay
"""

import ast
import inspect
from pathlib import Path

import pytest

import treadle
from treadle import Agent, RunState, decide
from treadle.testing import ScriptedModel

SOURCE = Path(treadle.__file__).parent


def modules(*rooms):
    """The files of these rooms by module name."""
    found = {}
    for room in rooms:
        for path in sorted((SOURCE / room).rglob("*.py")):
            parts = ("treadle", *path.relative_to(SOURCE).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path, known):
    """The modules of `known` that a file imports anywhere, also lazily and for types."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (below & known) or {node.module}
    return names & known


def test_no_state_has_over_thirty_fields():
    assert len(RunState.__struct_fields__) <= 30


def test_the_kernel_does_not_grow():
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules("kernel").values())
    # 40 of them say what servers of tools listed: what comes from outside is an event; 30, which arguments a person
    # put in place of the model's, and whether they are others; 7, what was asked before a conversation was handed on,
    # and which results a run below tells.
    assert lines <= 2_970


def test_decide_is_told_what_was_judged():
    names = list(inspect.signature(decide).parameters)
    assert names == ["state", "judgement"]


def test_the_kernel_imports_nothing_above_it():
    everything = {name for name in modules(".") if not name.startswith("treadle.kernel")} - {"treadle"}
    for name, path in modules("kernel").items():
        assert not imported(path, everything), name


def test_judgement_and_context_stand_above_the_kernel():
    kernel = modules("kernel")
    assert "treadle.kernel.progress" not in kernel
    assert "treadle.kernel.conditions" not in kernel
    assert "treadle.judging" in modules("judging")


@pytest.mark.parametrize("rooms", [("drivers",), ("tools",), ("kernel",), ("drivers", "tools", "kernel")])
def test_no_two_modules_of_drivers_and_tools_import_each_other(rooms):
    files = modules(*rooms)
    known = set(files)
    edges = {name: imported(path, known) - {name} for name, path in files.items()}
    circles = []
    for start in sorted(known):
        seen, ahead = set(), list(edges[start])
        while ahead:
            name = ahead.pop()
            if name not in seen:
                seen.add(name)
                ahead += edges[name]
        if start in seen:
            circles.append(start)
    assert not circles


def test_drivers_hold_no_hidden_channel():
    for name, path in modules("drivers").items():
        assert "ContextVar" not in path.read_text(encoding="utf-8"), name


def test_why_a_reply_ended_and_the_command_to_end_have_a_name_each():
    from treadle.kernel import messages

    assert hasattr(messages, "FinishReason")
    assert not hasattr(messages, "Finish")
    assert treadle.Finish.__module__ == "treadle.kernel.decide"


def test_the_old_names_of_a_state_stay():
    run = Agent(ScriptedModel(["done"]), name="someone").start("go")
    state = run.state
    names = ("run_id", "agent", "model", "usage", "cost", "tool_calls", "call_counts", "errors", "sub_steps", "elapsed")
    assert all(hasattr(state, name) for name in (*names, "stuck", "polling", "tools", "watch"))
    assert (state.agent, state.model, state.tool_calls) == ("someone", "scripted", 0)
