"""Changes the kernel, the door and the purse in small ways, one at a time, and sees whether a test notices.

    python scripts/mutants.py kernel/decide kernel/stop    every change that there is in these modules
    python scripts/mutants.py                              300 of all changes, drawn by the seed
    python scripts/mutants.py --sample 0                   all of them (some hours)
    python scripts/mutants.py NAME…                        these changes again, by the names that were printed

mutmut makes the changes, in `mutants/`, and runs for each the tests that come by it. First those that lie nearest,
which take seconds; what they do not notice is tried once more on the wide selection (`[tool.mutmut]` in
pyproject.toml), unless `--near` says that they are enough. What no test noticed is printed with what was changed, but
for changes that `scripts/mutants.toml` gives a reason for; docs/decisions/mutation-testing.md tells more.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NEAR = {
    "treadle.kernel.": ["tests/kernel"],
    "treadle.drivers.calls.": [
        "tests/drivers",
        "tests/regressions/test_reactions.py",
        "tests/regressions/test_early.py",
        "tests/regressions/test_sub_runs.py",
        "tests/regressions/test_left_below.py",
        "tests/regressions/test_combined.py",
        "tests/regressions/test_hooks_search_and_skills.py",
        "tests/regressions/test_late_reconcile.py",
        "tests/regressions/test_overlap.py",
        "tests/regressions/test_taken_over.py",
        "tests/regressions/test_calls_told_to_models.py",
        "tests/regressions/test_two_ends_at_once.py",
        "tests/regressions/test_approvals.py",
        "tests/regressions/test_cheap_steps.py",
        "tests/regressions/test_mcp_in_doubt.py",
        "tests/test_on_tool_call.py",
        "tests/test_recovery.py",
        "tests/test_hooks.py",
        "tests/test_agent_skills.py",
        "tests/regressions/test_cached_prefix.py",
        "tests/regressions/test_budgets.py",
        "tests/telemetry/test_logs.py",
        "tests/telemetry/test_redacted_logs.py",
    ],
    "treadle.drivers.purse.": [
        "tests/drivers/purse",
        "tests/regressions/test_purse.py",
        "tests/regressions/test_purse_counts.py",
        "tests/regressions/test_budgets.py",
        "tests/regressions/test_budgets_held_and_failing.py",
        "tests/regressions/test_money_between_features.py",
        "tests/regressions/test_limits_that_land.py",
        "tests/regressions/test_prices.py",
        "tests/regressions/test_sub_runs.py",
        "tests/regressions/test_left_below.py",
        "tests/drivers/test_runs_below.py",
        "tests/drivers/test_sub_runs.py",
        "tests/workers/test_shared_money.py",
        "tests/test_budget.py",
        "tests/test_estimate.py",
        "tests/test_fork.py",
        "tests/test_limits.py",
        "tests/test_recovery.py",
        "tests/test_spending.py",
        "tests/test_spent_so_far.py",
    ],
}
"""The tests that are tried first, by the names of the modules that are changed."""

KILLED, SURVIVED, UNTESTED = (1, 3), 0, 33
"""pytest's words for it, and mutmut's for a change that no test comes by."""

RUN = """
import json, sys
from mutmut.configuration import config
from mutmut.__main__ import cli
tests = json.loads(sys.argv.pop(1))
if tests:
    config().pytest_add_cli_args_test_selection = tests
cli()
"""


class Change(NamedTuple):
    """A change: the function that it is in, as "kernel/decide._said", and its lines before and after."""

    where: str
    was: str
    now: str


def main() -> int:
    """Runs as the command line says; 1 if a change was not noticed and has no reason."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("of", nargs="*", help="modules, as kernel/decide, or changes by their names")
    parser.add_argument("--sample", type=int, default=300, help="how many, where no module is named; 0 for all")
    parser.add_argument("--seed", type=int, default=9, help="by which they are drawn")
    parser.add_argument("--near", action="store_true", help="try the nearest tests only")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args()
    os.chdir(ROOT)
    # The examples of the properties are the same for each change. To look for pytest's plugins takes longer than most
    # tests; those that are needed stand in pyproject.toml.
    os.environ |= {"CI": "1", "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    shutil.rmtree("mutants/tests", ignore_errors=True)
    # A name that nothing has: mutmut writes all changes and makes none; that it then complains is no news.
    mutmut(NEAR["treadle.kernel."], given.workers, ["no.such.change"], quiet=True)
    names = chosen(given.of, given.sample, given.seed)
    found: dict[str, int | None] = {}
    for room, tests in NEAR.items():
        if here := [name for name in names if name.startswith(room)]:
            mutmut(tests, given.workers, here)
            found |= results(here)
    left = [name for name in names if found[name] in (SURVIVED, UNTESTED)]
    if left and not given.near:
        mutmut([], given.workers, left)
        found |= results(left)
    return report(names, found)


def chosen(of: list[str], sample: int, seed: int) -> list[str]:
    """The names of the changes that are to be made."""
    every = sorted(written())
    if not every:
        sys.exit("mutmut wrote no changes: run `.venv/bin/mutmut run` to see why")
    if not of:
        return sorted(Random(seed).sample(every, min(sample, len(every)))) if sample else every
    wanted = [one if "__mutmut_" in one else f"treadle.{one.replace('/', '.')}.x*" for one in of]
    for one in wanted:
        if not any(fnmatch(name, one) for name in every):
            sys.exit(f"there is no change {one!r}")
    return [name for name in every if any(fnmatch(name, one) for one in wanted)]


def mutmut(tests: list[str], workers: int, names: list[str], *, quiet: bool = False) -> None:
    """Has mutmut make these changes, and run `tests`, or the wide selection if there are none."""
    command = [sys.executable, "-c", RUN, json.dumps(tests), "run", "--max-children", str(workers), *names]
    subprocess.run(command, capture_output=quiet, check=False)


def written() -> dict[str, int | None]:
    """What mutmut last noted of each change, as pytest's exit code; None for one that was not made."""
    found: dict[str, int | None] = {}
    for meta in sorted(Path("mutants/src").rglob("*.meta")):
        found |= json.loads(meta.read_text())["exit_code_by_key"]
    return found


def results(names: list[str]) -> dict[str, int | None]:
    """What became of these changes."""
    every = written()
    return {name: every[name] for name in names}


def report(names: list[str], found: dict[str, int | None]) -> int:
    """Prints how many changes were noticed, by module, and each that was not and has no reason; 1 if there is one."""
    table: dict[str, Counter[str]] = {}
    reasons, strange = reasons_given(), list[tuple[str, Change]]()
    for name in names:
        code, module = found[name], name.partition(".x")[0].removeprefix("treadle.")
        became = "noticed" if code in KILLED else "timed out"
        if code in (SURVIVED, UNTESTED):
            change = change_of(name)
            became = "may live" if change in reasons else "survived"
            if change not in reasons:
                strange.append((name, change))
        table.setdefault(module, Counter())[became] += 1
    print(f"\n{'':34}{'changes':>9}{'noticed':>9}{'timed out':>11}{'may live':>10}{'survived':>10}")
    for module, row in [*sorted(table.items()), ("all", sum(table.values(), Counter()))]:
        told = [row.total(), row["noticed"], row["timed out"], row["may live"], row["survived"]]
        print(f"{module:34}{told[0]:9}{told[1]:9}{told[2]:11}{told[3]:10}{told[4]:10}")
    for name, change in strange:
        lines = [*[f"- {line}" for line in change.was.splitlines()], *[f"+ {line}" for line in change.now.splitlines()]]
        print(f"\n{name}\n  {change.where}\n" + "\n".join(f"    {line}" for line in lines))
    return 1 if strange else 0


def reasons_given() -> dict[Change, str]:
    """Why a change may live, where somebody has looked at it."""
    listed = tomllib.loads((ROOT / "scripts/mutants.toml").read_text(encoding="utf-8")).get("change", [])
    return {Change(one["in"], one["was"], one["now"]): one["why"] for one in listed}


def change_of(name: str) -> Change:
    """What was changed."""
    from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant
    from mutmut.utils.format_utils import orig_function_and_class_names_from_key

    function, kind = orig_function_and_class_names_from_key(name)
    module = name.partition(".x")[0].removeprefix("treadle.").replace(".", "/")
    diff = get_diff_for_mutant(name, path=find_mutant(name).path).splitlines()
    changed = [line for line in diff if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    was, now = ("\n".join(line[1:].strip() for line in changed if line[0] == sign) for sign in "-+")
    return Change(f"{module}.{f'{kind}.' if kind else ''}{function}", was, now)


if __name__ == "__main__":
    sys.exit(main())
