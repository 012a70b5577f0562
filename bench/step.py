"""What a step of the loop does, by file and by function: calls, and bytecodes that the interpreter carries out for it.

    python bench/step.py         # by file, and the 30 dearest functions
    python bench/step.py 100     # the 100 dearest

Time on a busy machine says little of a change of some per cent; these figures are the same each time. What is written
in C (msgspec, Pydantic, asyncio's tasks) has no bytecodes, and counts for nothing here.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from loop import LIMITS, add, agent

from treadle import Agent, tool

FEW, MANY = 20, 60
ROOT = Path(__file__).resolve().parent.parent


def counted(steps: int) -> tuple[Counter[CodeType], Counter[CodeType]]:
    """How often each function is called, or taken up again, in a run of so many steps; and its bytecodes."""
    calls, bytecodes = Counter[CodeType](), Counter[CodeType]()

    def within(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            bytecodes[frame.f_code] += 1
        return within

    def entered(frame: FrameType, _: str, __: Any) -> Any:
        calls[frame.f_code] += 1
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return within

    async def carried() -> None:
        # A tool that writes, as most do: none of its calls starts early.
        one = Agent(agent(steps).model, tools=[tool(add)], limits=LIMITS)
        await one.run("go")
        sys.settrace(entered)
        try:
            await one.run("go")
        finally:
            sys.settrace(None)

    asyncio.run(carried())
    return calls, bytecodes


def place(code: CodeType) -> str:
    """The file of a function, as short as it can be told."""
    path = Path(code.co_filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else f"…/{path.parent.name}/{path.name}"


def main() -> None:
    """Prints the tables."""
    shown = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    (few, few_codes), (many, many_codes) = counted(FEW), counted(MANY)
    steps = MANY - FEW
    a_step = {code: ((many[code] - few[code]) / steps, (many_codes[code] - few_codes[code]) / steps) for code in many}
    files: dict[str, list[float]] = {}
    for code, (calls, bytecodes) in a_step.items():
        row = files.setdefault(place(code), [0.0, 0.0])
        row[0], row[1] = row[0] + calls, row[1] + bytecodes
    print(f"{'a step takes':58}{'calls':>8}{'bytecodes':>11}")
    for name, row in sorted(files.items(), key=lambda item: -item[1][1]):
        if row[1] >= 1:
            print(f"{name:58}{row[0]:8.1f}{row[1]:11.0f}")
    print(f"{'all':58}{sum(row[0] for row in files.values()):8.1f}{sum(row[1] for row in files.values()):11.0f}\n")
    for code, (calls, bytecodes) in sorted(a_step.items(), key=lambda item: -item[1][1])[:shown]:
        print(f"{place(code).removeprefix('src/treadle/') + ' ' + code.co_qualname:58.58}{calls:8.1f}{bytecodes:11.0f}")


if __name__ == "__main__":
    main()
