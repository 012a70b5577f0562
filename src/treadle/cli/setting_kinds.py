"""Setting kinds: which settings there are, by which names, and what each may be."""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from treadle.journal.addresses import fault_in, in_postgres

Kind = Literal["model", "journal", "sources", "skills", "count", "steps", "usd", "seconds"]

MOST: Final = 2**63 - 1
"""The largest number that a journal can hold."""

MOST_AMOUNT: Final = 10**15
"""The most dollars of a limit, and more seconds than anybody waits: as a float, `MOST` would be above itself."""

_FINEST = 15
"""Decimal places of an amount at most: with millions of them each sum would take as many digits."""


class BadSetting(ValueError):
    """A setting that there is not, or a value that it cannot have; says what would be right."""


class Setting(NamedTuple):
    """A setting.

    Attributes:
        name: its name in files and on the command line.
        variable: the variable of the environment that goes before the files.
        option: the option that goes before everything.
        kind: what it may be.
        told: what it is, in a few words.
    """

    name: str
    variable: str
    option: str
    kind: Kind
    told: str

    def read(self, value: object, folder: Path | None, *, users: bool) -> Any:
        """The value as commands take it, from one as TOML has it.

        Args:
            value: the value.
            folder: where relative paths begin; None for the current folder.
            users: whether it holds in every folder, so that no code of whatever folder it is may be loaded by it.

        Raises:
            BadSetting: it can have no such value.
        """
        if self.kind in ("model", "journal", "sources"):
            text = _text(self.name, value)
            if self.kind == "model":
                return _model(text, users=users)
            if self.kind == "journal" and (fault := fault_in(text)):
                raise BadSetting(fault)
            return text if self.kind == "journal" and in_postgres(text) else _path(text, folder)
        if self.kind == "skills":
            return _skills(value)
        return _number(self.name, self.kind, value)

    def read_text(self, text: str, folder: Path | None, *, users: bool = False) -> Any:
        """Likewise from a text, as the environment and the command line have it."""
        return self.read(self.of_text(text), folder, users=users)

    def of_text(self, text: str) -> Any:
        """What a text says, as TOML would have it."""
        if self.kind == "skills":
            return [word.strip() for word in text.split(",") if word.strip()]
        if self.kind in ("count", "steps"):
            try:
                return int(text)
            except ValueError as error:
                raise BadSetting(f"{self.name} is a whole number, not {text!r:.60}") from error
        if self.kind in ("usd", "seconds"):
            try:
                return Decimal(text)
            except InvalidOperation as error:
                raise BadSetting(f"{self.name} is a number, not {text!r:.60}") from error
        return text


def _all() -> Mapping[str, Setting]:
    found = (
        Setting("model", "TREADLE_MODEL", "--model", "model", "the model that is asked"),
        Setting("journal", "TREADLE_JOURNAL", "--journal", "journal", "where runs are kept"),
        Setting("sources", "TREADLE_SOURCES", "--sources", "sources", "the data analyst's sources"),
        Setting("skills", "TREADLE_SKILLS", "--skill", "skills", "the skills that a question is asked with"),
        Setting("limits.steps", "TREADLE_MAX_STEPS", "--max-steps", "steps", "model calls at most"),
        Setting("limits.tool_calls", "TREADLE_MAX_TOOL_CALLS", "--max-tool-calls", "count", "tool calls at most"),
        Setting("limits.usd", "TREADLE_MAX_COST", "--max-cost", "usd", "dollars at most"),
        Setting("limits.tokens", "TREADLE_MAX_TOKENS", "--max-tokens", "count", "tokens at most, in and out"),
        Setting("limits.seconds", "TREADLE_TIMEOUT", "--timeout", "seconds", "time at most"),
    )
    return {one.name: one for one in found}


SETTINGS: Final = _all()
"""Every setting, by its name."""


def setting_named(name: str) -> Setting:
    """The setting of that name, as files have it or without "limits.". Raises `BadSetting` with what may be meant."""
    found = SETTINGS.get(name) or SETTINGS.get(f"limits.{name}")
    if found is None:
        from treadle.tools import did_you_mean, nearest

        guess = did_you_mean(nearest(name, SETTINGS))
        raise BadSetting(f"there is no setting {name!r:.60}{guess} (there are: {', '.join(SETTINGS)})")
    return found


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise BadSetting(f"{name} is a text, not {value!r:.60}")
    return value.strip()


def _model(text: str, *, users: bool) -> str:
    """The name of a model; one of code is named by its whole path where it holds in every folder."""
    from treadle.models.named import in_text
    from treadle.models.names import OFFLINE, UnknownModel, is_known, split_name

    try:
        inner = in_text(text)
    except UnknownModel as error:
        raise BadSetting(str(error)) from error
    name = text if inner is None else inner.name
    file, colon, _ = name.rpartition(":")
    of_file = bool(colon) and file.endswith(".py")
    if name == OFFLINE:
        return text
    if is_known(name) and not of_file:
        provider, model = split_name(name)
        if not model:
            raise BadSetting(f"{text!r} names no model; write {provider}:NAME")
        return text
    if of_file and (Path(file).is_absolute() or not users):
        return text
    if users:
        try:
            split_name(name)
        except UnknownModel as error:
            raise BadSetting(
                f"{error}. A model of your own is named by its whole path here, /path/to/file.py:model, as this file "
                "holds in every folder"
            ) from error
    return text


def _path(text: str, folder: Path | None) -> str:
    path = Path(text).expanduser()
    return str(path if folder is None else folder / path)


def _skills(value: object) -> tuple[str, ...]:
    from treadle.cli.skills import skill_names
    from treadle.tools import did_you_mean, nearest

    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadSetting(f'skills is a list of names, such as ["basics", "analyst"], not {value!r:.60}')
    for name in value:
        known = skill_names()
        if name not in known:
            raise BadSetting(
                f"there is no skill {name!r:.60}{did_you_mean(nearest(name, known))} (there are: {', '.join(known)})"
            )
    return tuple(dict.fromkeys(value))


def _number(name: str, kind: Kind, value: object) -> int | float | Decimal:
    """A number of its kind: whole, or exact dollars, or seconds."""
    least, whole = (1 if kind == "steps" else 0), kind in ("count", "steps")
    kinds, top = ((int,), MOST) if whole else ((int, float, Decimal), MOST_AMOUNT)
    if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value) or not least <= value <= top:
        kind_of = "whole number" if whole else "number"
        most = f" to {top}" if isinstance(value, kinds) and isfinite(value) and value > top else ""
        raise BadSetting(f"{name} is a {kind_of} from {least}{most}, not {value!s:.60}")
    if whole:
        return int(value)
    if isinstance(value, Decimal) and int(value.as_tuple().exponent) < -_FINEST:
        raise BadSetting(f"{name} has at most {_FINEST} decimal places, unlike {value!s:.60}")
    convert: Callable[[Any], float | Decimal] = Decimal if kind == "usd" else float
    return convert(str(value))
