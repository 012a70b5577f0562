"""Changes the kernel and the door in small ways, one at a time, and sees whether a test notices.

    python scripts/mutants.py --sample 300 --seed 9    as many of the changes that there are, drawn by the seed
    python scripts/mutants.py --sample 0               all of them (some hours)
    python scripts/mutants.py NAME…                    these again

mutmut makes the changes, in `mutants/`, and runs for each the tests that come by it (`[tool.mutmut]` in
pyproject.toml). Those that no test noticed are printed with what was changed; docs/decisions/mutation-testing.md says
of each that was looked at why it may live.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
MUTMUT = [str(Path(sys.executable).parent / "mutmut")]
KILLED, SURVIVED, UNTESTED = (1, 3), 0, 33


def main() -> int:
    """Runs as the command line says; 1 if a change was not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="the changes to make again, by their names")
    parser.add_argument("--sample", type=int, default=300, help="how many; 0 for all")
    parser.add_argument("--seed", type=int, default=9, help="by which they are drawn")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args()
    os.chdir(ROOT)
    # The examples of the properties are the same for each change.
    os.environ |= {"CI": "1", "PYTHONPATH": str(ROOT / "src")}
    names = given.names
    if not names:
        shutil.rmtree("mutants", ignore_errors=True)
        # A name that nothing has: mutmut writes all changes and makes none; that it then complains is no news.
        subprocess.run([*MUTMUT, "run", "no.such.change"], capture_output=True, check=False)
        names = every_name()
        if not names:
            sys.exit("mutmut wrote no changes: run `.venv/bin/mutmut run` to see why")
        if given.sample:
            names = sorted(Random(given.seed).sample(names, min(given.sample, len(names))))
    subprocess.run([*MUTMUT, "run", "--max-children", str(given.workers), *names], check=False)
    return report(names)


def results() -> dict[str, int | None]:
    """What became of each change, as pytest's exit code; None for one that was not made."""
    found: dict[str, int | None] = {}
    for meta in sorted(Path("mutants/src").rglob("*.meta")):
        found |= json.loads(meta.read_text())["exit_code_by_key"]
    return found


def every_name() -> list[str]:
    """The names of all changes."""
    return sorted(results())


def report(names: list[str]) -> int:
    """Prints how many changes were noticed, by module, and each that was not; 1 if there is one."""
    codes = results()
    table: dict[str, Counter[str]] = {}
    for name in names:
        code = codes.get(name)
        became = "noticed" if code in KILLED else "survived" if code in (SURVIVED, UNTESTED) else "timed out"
        table.setdefault(name.partition(".x")[0], Counter())[became] += 1
    print(f"\n{'':40}{'changes':>9}{'noticed':>9}{'timed out':>11}{'survived':>10}")
    for module, row in [*sorted(table.items()), ("all", sum(table.values(), Counter()))]:
        print(f"{module:40}{row.total():9}{row['noticed']:9}{row['timed out']:11}{row['survived']:10}")
    survivors = [name for name in names if codes.get(name) in (SURVIVED, UNTESTED)]
    for name in survivors:
        print(f"\n{name}")
        shown = subprocess.run([*MUTMUT, "show", name], capture_output=True, text=True, check=False).stdout
        print(
            "".join(
                f"    {line}\n" for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
            )
        )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
