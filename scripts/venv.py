"""Sets up the project's virtual environment, .venv, with what was tested, and does nothing when it is up to date.

    python3 scripts/venv.py            treadle with all its extras
    python3 scripts/venv.py test lint  and the dependency groups `test` and `lint` of pyproject.toml

Versions come from constraints.txt. What is installed is remembered in .venv/treadle.json; a change of the
packages named in pyproject.toml or constraints.txt installs again, a moved checkout or another Python builds .venv
anew. Two of these at the same time wait for each other. It needs the standard library and a package index, nothing
else, and keeps pip's own settings.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "treadle.json"
LOG = ROOT / ".venv.log"
CONSTRAINTS = ROOT / "constraints.txt"


def main(groups: list[str]) -> None:
    """Brings .venv up to date with treadle, its extras and the dependency groups named."""
    if sys.version_info < (3, 11):
        sys.exit(f"treadle needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}")
    if is_current(read_stamp(), groups):
        return
    with only_one():
        stamp = read_stamp()
        if is_current(stamp, groups):
            return
        LOG.write_text("", encoding="utf-8")
        if not is_usable(stamp):
            create()
            stamp = {"home": home(), "installed": {}}
            write_stamp(stamp)
        now = inputs()
        missing = [group for group in ("build", *groups) if stamp["installed"].get(group) != now]
        if "build" in missing:
            say("installing treadle and its libraries …")
            install("--group", "build")
            install("--no-build-isolation", "--editable", f"{ROOT}[all]")
            stamp["installed"]["build"] = now
            write_stamp(stamp)
        if others := [group for group in missing if group != "build"]:
            say(f"installing what {' and '.join(f'`{one}`' for one in others)} {'need' if others[1:] else 'needs'} …")
            install(*(argument for group in others for argument in ("--group", group)))
        compile_all()
        stamp["installed"] |= dict.fromkeys(missing, now)
        write_stamp(stamp)


def inputs() -> str:
    """A digest of what says what is to be installed: the lock, and the tables of pyproject.toml that name packages."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = [project["build-system"], project["project"], project["dependency-groups"]]
    return hashlib.sha256(json.dumps(named).encode() + CONSTRAINTS.read_bytes()).hexdigest()


def home() -> str:
    """Where .venv is and the Python that it was made from: scripts inside .venv hold its path, so it cannot move."""
    return f"{VENV}, Python {sys.version.split()[0]} of {sys.base_prefix}"


def read_stamp() -> dict:
    """What .venv holds: where it was made, and for each group the inputs that it was installed from."""
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"home": "", "installed": {}}


def write_stamp(stamp: dict) -> None:
    """Remembers what .venv holds."""
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")


def is_current(stamp: dict, groups: list[str]) -> bool:
    """Whether nothing is left to do."""
    now = inputs()
    installed = all(stamp["installed"].get(group) == now for group in ("build", *groups))
    return installed and stamp["home"] == home() and PYTHON.exists()


def is_usable(stamp: dict) -> bool:
    """Whether .venv can be brought up to date where it is, rather than built anew."""
    probe = [str(PYTHON), "-c", "import pip"]
    return stamp["home"] == home() and PYTHON.exists() and subprocess.run(probe, capture_output=True).returncode == 0


def create() -> None:
    """Makes an empty .venv, with pip, in place of whatever was there."""
    say("setting up .venv (once) …")
    if VENV.is_symlink():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(VENV)
    # The Python beneath: this one may be the very .venv that was just removed.
    run([sys._base_executable, "-m", "venv", str(VENV)], "python -m venv")
    install("--upgrade", "pip")


def install(*arguments: str) -> None:
    """Installs into .venv with pip, at the versions of constraints.txt."""
    options = ["--no-compile", "--constraint", str(CONSTRAINTS)]
    run([str(PYTHON), "-m", "pip", "install", *options, *arguments], "pip install")


def compile_all() -> None:
    """Compiles what was installed, on all cores, where pip would take one; not what libraries bring to test themselves.

    What does not compile, as it is for another Python, is left to whoever imports it.
    """
    libraries = subprocess.check_output([str(PYTHON), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    options = ["-q", "-q", "-j", "0", "-x", r"site-packages.*[/\\]tests?[/\\]"]
    folders = [os.fsdecode(libraries).strip(), str(ROOT / "src")]
    subprocess.run([str(PYTHON), "-m", "compileall", *options, *folders], stdin=subprocess.DEVNULL, capture_output=True)


def run(command: list[str], name: str) -> None:
    """Runs a command with its output in the log, and shows the log's end if it fails."""
    with LOG.open("a", encoding="utf-8") as log:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode:
        end = "\n".join(LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])
        sys.exit(f"{end}\n\n{name} failed, so .venv is not ready; all of its output is in {LOG}")


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Holds a lock that the system lets go of however this process ends."""
    with (ROOT / ".venv.lock").open("w") as lock:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(line: str) -> None:
    """Tells the person who waits what is being done."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
