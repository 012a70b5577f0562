"""Folder: one folder with a SKILL.md: what it says of itself, and what is wrong with it.

The rules are those of https://agentskills.io/specification, in the reading of its reference library (`skills-ref`).
"""

import os
import unicodedata
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from treadle.tools.agent_skills.active import has_other_characters
from treadle.tools.agent_skills.files import read_text
from treadle.tools.agent_skills.frontmatter import Unreadable, parted
from treadle.tools.errors import BadTool, ToolError

LARGEST = 100_000
"""Bytes of a SKILL.md: all of it is shown to a model at once, some 25,000 tokens."""

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LONGEST_COMPATIBILITY = 500

FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""The fields that the format knows."""

MOST_LOOKED_AT = 200
"""Folders of a folder that are looked at, the first by name: one that came from somebody else may have any number."""

FILES = ("SKILL.md", "skill.md")
"""What the file may be called, the first before the second."""


class SkillFolder(Struct, frozen=True):
    """A folder with a SKILL.md.

    Attributes:
        name: what the skill is called.
        description: what it does and when to use it.
        path: the folder.
        body: the instructions, as they were when the folder was read.
        allowed_tools: the tools that may be used with it; None if it does not say, empty if it says none.
        compatibility: what it needs to run; empty if it does not say.
        license: its licence, or the file that has it; empty if it does not say.
    """

    name: str
    description: str
    path: Path
    body: str
    allowed_tools: tuple[str, ...] | None = None
    compatibility: str = ""
    license: str = ""


class Looked(NamedTuple):
    """What was found: the folder, if it can be used, and all that is wrong with it."""

    folder: SkillFolder | None
    faults: tuple[str, ...]


def looked_at(path: Path) -> Looked:
    """The skill in the folder at `path`, and what is wrong with it.

    A name or a description that is missing, too long or of other characters than the format allows makes it unusable,
    as they stand in every prompt; a field that is not known, or a folder of another name, does not.

    Raises:
        BadTool: PyYAML is not installed.
    """
    if not is_folder(path):
        return Looked(None, (f"{path} is no folder" if _is_there(path) else f"there is no folder {path}",))
    name = next((name for name in FILES if name in _names_in(path)), None)
    if name is None:
        return Looked(
            None, ("its rights keep it from being read" if _is_barred(path) else "there is no SKILL.md in it",)
        )
    try:
        fields, body = parted(read_text(path.resolve(), name, LARGEST))
    except (ToolError, Unreadable) as error:
        return Looked(None, (f"{name}: {error}",))
    except ImportError as error:
        raise BadTool("skills in folders need PyYAML: pip install 'treadle[skills]'") from error
    grave = (*_named_faults(fields), *_description_faults(fields))
    faults = (*grave, *_other_faults(fields, path))
    if grave:
        return Looked(None, faults)
    made = SkillFolder(
        _normal(fields["name"]),
        fields["description"].strip(),
        path.resolve(),
        body,
        _allowed(fields),
        _text(fields.get("compatibility")),
        _text(fields.get("license")),
    )
    return Looked(made, faults)


def is_folder(path: Path) -> bool:
    """Whether there is a folder at `path`, whatever is written there: what is no path is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def folders_in(path: Path) -> list[Path]:
    """The folders with a SKILL.md that `path` means: itself, or those directly in it, in the order of their names."""
    names = _names_in(path)
    if any(name in names for name in FILES):
        return [path]
    below = (path / name for name in sorted(names))
    # Whoever looks at one that is barred is told so, and not that there is none.
    return list(islice((one for one in below if skill_file_in(one) is not None or _is_barred(one)), MOST_LOOKED_AT))


def skill_file_in(path: Path) -> Path | None:
    """The SKILL.md in the folder at `path`; None where there is none that can be looked for."""
    for name in FILES:
        try:
            if (path / name).is_file():
                return path / name
        except (OSError, ValueError):
            return None
    return None


def _is_barred(path: Path) -> bool:
    """Whether it is a folder in which this user may not look."""
    return is_folder(path) and not os.access(path, os.R_OK | os.X_OK)


def _names_in(path: Path) -> list[str]:
    try:
        return [entry.name for entry in path.iterdir()]
    except (OSError, ValueError):
        return []


def _normal(name: str) -> str:
    return unicodedata.normalize("NFKC", name.strip())


def _named_faults(fields: dict[str, Any]) -> list[str]:
    given = fields.get("name")
    if given is None:
        return ["name is missing"]
    return name_faults(given) if isinstance(given, str) else ["name is not a text with something in it"]


def name_faults(given: str) -> list[str]:
    """What is wrong with the name of a skill."""
    if not given.strip():
        return ["name is not a text with something in it"]
    name, faults = _normal(given), list[str]()
    if len(name) > LONGEST_NAME:
        faults.append(f"name has {len(name)} characters, and at most {LONGEST_NAME} are allowed")
    if name != name.lower():
        faults.append(f"name {name!r:.80} has capital letters, and only small ones are allowed")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        faults.append(f"name {name!r:.80} begins or ends with a hyphen, or has two in a row")
    if has_other_characters(name):
        faults.append(f"name {name!r:.80} has more in it than letters, digits and hyphens")
    return faults


def _description_faults(fields: dict[str, Any]) -> list[str]:
    given = fields.get("description")
    if not isinstance(given, str) or not given.strip():
        return ["description is missing" if given is None else "description is not a text with something in it"]
    if len(given) > LONGEST_DESCRIPTION:
        return [f"description has {len(given)} characters, and at most {LONGEST_DESCRIPTION} are allowed"]
    return []


def _other_faults(fields: dict[str, Any], path: Path) -> list[str]:
    faults: list[str] = []
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        faults.append(f"there is no field {', '.join(unknown)[:200]} (there are: {', '.join(FIELDS)})")
    name, own = fields.get("name"), unicodedata.normalize("NFKC", path.resolve().name)
    if isinstance(name, str) and name.strip() and _normal(name) != own:
        faults.append(f"name {_normal(name)!r:.80} is not that of its folder, {own!r:.80}")
    compatibility = fields.get("compatibility", "")
    if not isinstance(compatibility, str):
        faults.append("compatibility is not a text")
    elif len(compatibility) > LONGEST_COMPATIBILITY:
        faults.append(
            f"compatibility has {len(compatibility)} characters, and at most {LONGEST_COMPATIBILITY} are allowed"
        )
    return faults


def _allowed(fields: dict[str, Any]) -> tuple[str, ...] | None:
    """The names in `allowed-tools`, which is a text with blanks (or, as many write it, commas) between, or a list."""
    given = fields.get("allowed-tools")
    if given is None:
        return None
    if isinstance(given, str):
        return tuple(given.replace(",", " ").split())
    return tuple([one.strip() for one in given if isinstance(one, str)]) if isinstance(given, list) else ()


def _text(given: Any) -> str:
    return given.strip() if isinstance(given, str) else ""
