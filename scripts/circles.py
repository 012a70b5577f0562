"""Finds files that import each other in a circle, imports inside functions and those for types only included.

    python scripts/circles.py [folder of a package, by default src/treadle]

Such files cannot be read one at a time, nor moved. Prints each circle and exits with 1 if there is one.
"""

import ast
import sys
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "treadle"

Imports = dict[str, set[str]]
"""The modules of a package, and which of them each imports."""


def imports_of(package: Path) -> Imports:
    """Which modules of the package in that folder import which."""
    files = {_name(package, file): file for file in package.rglob("*.py")}
    return {name: set(_imported(name, file, files.keys())) - {name} for name, file in files.items()}


def circles(imports: Imports) -> list[list[str]]:
    """The circles, each from a module to itself; without the last import of each there would be none."""
    left = {name: set(others) for name, others in imports.items()}
    found: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # It names them the other way round: each is imported by the next.
            circle: list[str] = error.args[1][::-1]
            found.append(circle)
            left[circle[-2]].discard(circle[-1])
        else:
            return sorted(found, key=len)


def _imported(name: str, file: Path, known: Collection[str]) -> Iterator[str]:
    """The modules of the package that the file imports, wherever in it."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                module = f"{source}.{alias.name}"
                if module in known:
                    yield module
                elif source in known:
                    yield source


def _name(package: Path, file: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main(folder: str = "") -> int:
    """Prints the circles of the package in `folder`; 1 if there is one."""
    found = circles(imports_of(Path(folder).resolve() if folder else PACKAGE))
    for circle in found:
        print("imports in a circle: " + " -> ".join(circle))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
