"""Exports: the files that a comparison writes, each of them put in place whole or not at all.

    compare(catalog, request, exports=["differences.parquet", "page.html"])

A file is written beside its target under another name and takes the target's place only when all of them are complete
and the sources have not changed meanwhile; until then an older file of that name stays as it was. Neighbours:
`export_rows` (every key, by the engine), `export_page` (the page).
"""

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Generic, Literal, Protocol, Self, TypeVar, get_args

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.reading.scratch import Scratch

ExportFormat = Literal["json", "csv", "html", "parquet", "xlsx"]
EXPORT_FORMATS: tuple[str, ...] = get_args(ExportFormat)


class Export(Struct, frozen=True):
    """A file to write.

    Attributes:
        format: `json` (the whole result with every key), `csv`, `parquet` and `xlsx` (every key), or `html` (a page).
        path: the file.
    """

    format: ExportFormat
    path: Path

    @classmethod
    def of(cls, path: "str | Path | Export") -> "Export":
        """Returns the export that a file's name says by how it ends. Raises AnalystError if that is no format."""
        if isinstance(path, Export):
            return path
        found = Path(path)
        for name in get_args(ExportFormat):
            if found.suffix.lower() == f".{name}":
                return cls(name, found)
        endings = ", ".join(f".{name}" for name in EXPORT_FORMATS)
        raise AnalystError(
            f"{path} cannot be written: its name says no format; it must end in one of {endings}",
            argument="exports",
            given=str(path),
        )


class Written(Protocol):
    """A file to write: where, and how its name must end if it is to replace another."""

    @property
    def format(self) -> str:
        """The ending, without the dot."""

    @property
    def path(self) -> Path:
        """The file."""


W = TypeVar("W", bound=Written)


class Drafts(Generic[W]):
    """The files under way; leaving the `with` block puts all of them in place, or none if it is left by an error.

    Args:
        exports: what to write.
        kept: says why a file, links followed, must not be written; empty if it may.

    Raises:
        AnalystError: a file cannot be written, or should not be.
    """

    def __init__(self, exports: Sequence[W], kept: Callable[[Path], str]) -> None:
        self.exports = list(exports)
        self._targets = [_target(export, kept) for export in self.exports]
        for target in self._targets:
            if self._targets.count(target) > 1:
                raise AnalystError(f"{target} would be written twice; give each export a file of its own")
        self._drafts: list[Path] = []
        self._scratch: Scratch | None = None

    def __enter__(self) -> Self:
        drafts = [one.with_name(f".{one.name[:80]}.{secrets.token_hex(6)}.part") for one in self._targets]
        try:
            self._scratch = Scratch(drafts) if drafts else None
            for draft in drafts:
                draft.touch(0o666, exist_ok=False)
                self._drafts.append(draft)
        except OSError as error:
            self._drop()
            raise _unwritable(self._targets[len(self._drafts)], error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for draft, target in zip(self._drafts, self._targets, strict=True):
                    self._place(draft, target)
        finally:
            self._drop()
        if isinstance(error, OSError) and self._drafts:
            raise _unwritable(self._targets[0].parent, error) from error

    def each(self) -> "list[tuple[W, Path]]":
        """Every export with the file that its content is to be written to for now."""
        return list(zip(self.exports, self._drafts, strict=True))

    def _place(self, draft: Path, target: Path) -> None:
        try:
            with draft.open("rb+") as written:
                os.fsync(written.fileno())
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        except OSError as error:
            raise _unwritable(target, error) from error

    def _drop(self) -> None:
        try:
            for draft in self._drafts:
                draft.unlink(missing_ok=True)
        finally:
            if self._scratch is not None:
                self._scratch.close()


def _target(export: Written, kept: Callable[[Path], str]) -> Path:
    """The file that is meant, links followed. Raises AnalystError if it cannot or should not be written."""
    path = export.path.expanduser()
    target = path.resolve()

    def refused(why: str) -> AnalystError:
        return AnalystError(f"{path} cannot be written: {why}", argument="exports", given=str(path))

    if target.is_dir():
        raise refused("it is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise refused("it is no ordinary file")
    if why := kept(target):
        raise refused(why)
    if not target.parent.is_dir():
        raise refused(f"there is no folder {target.parent}")
    if not target.exists():
        return target
    if target.suffix.lower() != f".{export.format}":
        raise refused(f"it exists, and its name does not end in .{export.format}; delete it first if that is meant")
    if not os.access(target, os.W_OK):
        raise refused("it exists and may not be changed")
    return target


def _unwritable(path: Path, error: OSError) -> AnalystError:
    return AnalystError(f"{path} cannot be written: {error.strerror or error}", argument="exports", given=str(path))
