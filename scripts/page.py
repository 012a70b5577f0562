"""Builds the page of `web/` into `src/treadle/serve/page`, or tests it and checks that what is there is what a fresh
build gives.

    python3 scripts/page.py build
    python3 scripts/page.py check

Both need Node and npm, and fetch the packages of web/package-lock.json once. Without Node `check` says so and passes:
what users get is the built page, which needs none.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
PAGE = ROOT / "src/treadle/serve/page"
STAMP = WEB / "node_modules/.treadle-lock"

MOST = 150_000
"""Bytes that the page may have in all, packed."""


def main(what: str) -> None:
    """Builds or checks."""
    wanting = unfit()
    if wanting:
        if what == "build":
            sys.exit(wanting)
        print(f"check-web skipped: {wanting}")
        return
    install()
    if what == "build":
        build(PAGE)
        print(f"{PAGE.relative_to(ROOT)}: {size(PAGE):,} bytes packed")
        return
    run("npm", "test", "--silent")
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "page"
        build(fresh)
        differing = differences(fresh, PAGE)
    if differing:
        sys.exit(f"the page is not what web/ builds ({', '.join(differing)}): run `make web`, and commit it")
    if size(PAGE) > MOST:
        sys.exit(f"the page has {size(PAGE):,} bytes packed, more than {MOST:,}")
    print(f"the page is what web/ builds: {size(PAGE):,} bytes packed")


def unfit() -> str:
    """Why nothing can be built here; empty if it can."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return "there is no Node with npm here"
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(map(int, re.findall(r"\d+", told)[:2]))
    if not ((20, 19) <= version < (21, 0) or version >= (22, 12)):
        return f"Node {told.strip()} is too old; it takes 20.19, 22.12 or newer"
    return ""


def install() -> None:
    """Fetches what the lock file says, unless it is there."""
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if not STAMP.exists() or STAMP.read_text(encoding="utf-8") != wanted:
        run("npm", "ci", "--no-audit", "--no-fund")
        STAMP.write_text(wanted, encoding="utf-8")


def build(folder: Path) -> None:
    """Checks the types and builds the page into `folder`."""
    run("npm", "run", "build", "--silent", environment={"PAGE": str(folder)})


def run(*command: str, environment: dict[str, str] | None = None) -> None:
    """Runs a command in web/; what it said is shown if it fails."""
    done = subprocess.run(
        [shutil.which(command[0]) or command[0], *command[1:]], cwd=WEB, env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed in web/:\n{done.stdout}")


def differences(fresh: Path, kept: Path) -> list[str]:
    """Names of files that one has and the other has not, or otherwise."""
    names = {file.relative_to(folder).as_posix() for folder in (fresh, kept) for file in files(folder)}
    return sorted(name for name in names if contents(fresh / name) != contents(kept / name))


def files(folder: Path) -> list[Path]:
    """All files in a folder."""
    return [file for file in sorted(folder.rglob("*")) if file.is_file()]


def contents(file: Path) -> bytes | None:
    """What is in a file; None if there is none."""
    return file.read_bytes() if file.is_file() else None


def size(folder: Path) -> int:
    """Bytes of all files, each packed as it is sent."""
    return sum(len(gzip.compress(file.read_bytes(), mtime=0)) for file in files(folder))


if __name__ == "__main__":
    if sys.argv[1:] not in (["build"], ["check"]):
        sys.exit(__doc__)
    main(sys.argv[1])
