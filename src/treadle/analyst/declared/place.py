"""Place: where the data of sources are: files below certain folders, and frames that the application holds.

Touches the file system only in `Place.files` and `Place.source_at`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source

_SIGNS = "*?["


class Place:
    """Where the data of sources are.

    Args:
        folder: what relative paths start from, and a folder that files may live in.
        roots: further folders that files may live in.
        frames: the data of sources of kind "frame", by the source's name.
    """

    def __init__(
        self,
        folder: str | Path = ".",
        roots: Iterable[str | Path] = (),
        frames: Mapping[str, object] | None = None,
    ) -> None:
        self.folder = Path(folder).resolve()
        self.roots = (self.folder, *((self.folder / root).resolve() for root in roots))
        self.frames = dict(frames or {})

    def files(self, source: Source) -> list[Path]:
        """Returns the files of a source, links resolved, in the order of their names.

        Raises:
            AnalystError: there is no such file, or one lies outside the folders of the catalogue.
        """
        if not source.path:
            return []
        pattern = Path(source.path)
        if any(sign in source.path for sign in _SIGNS) and not (self.folder / pattern).exists():
            anchor = Path(pattern.anchor) if pattern.is_absolute() else self.folder
            found = sorted(anchor.glob(str(pattern.relative_to(pattern.anchor))))
        else:
            found = [self.folder / pattern]
        files = [path.resolve() for path in found]
        for file in files:
            if not any(file.is_relative_to(root) for root in self.roots):
                raise AnalystError(
                    f"source {source.name!r}: {source.path} lies outside the folders that sources may live in; "
                    f"add its folder to 'roots' if that is meant",
                    argument="source",
                    given=source.name,
                    available=[str(root) for root in self.roots],
                )
            if not file.is_file():
                raise AnalystError(
                    f"source {source.name!r}: {file} {no_file(file)}", argument="source", given=source.name
                )
        if not files:
            raise AnalystError(f"source {source.name!r}: no file matches {source.path}", argument="source")
        if len(files) > 1 and source.kind in ("duckdb", "sqlite", "xlsx"):
            raise AnalystError(f"source {source.name!r}: {source.path} matches {len(files)} files, and takes one")
        return files

    def source_at(self, path: Path, sources: Iterable[Source]) -> str:
        """Returns the name of the source that a file is of, or would be of once it is there; empty if it is of none.

        Args:
            path: the file, links resolved.
            sources: which sources.
        """
        return next((source.name for source in sources if source.path and self._has(source.path, path)), "")

    def _has(self, written: str, path: Path) -> bool:
        pattern = self.folder / written
        if not any(sign in written for sign in _SIGNS) or pattern.exists():
            return pattern.resolve() == path
        parts = Path(os.path.normpath(pattern)).parts
        plain = next(at for at, part in enumerate(parts) if any(sign in part for sign in _SIGNS))
        folder = Path(*parts[:plain]).resolve()
        if path.is_relative_to(folder) and _fits(path.relative_to(folder).parts, parts[plain:]):
            return True
        return any(found.resolve() == path for found in folder.glob(str(Path(*parts[plain:]))))


def no_file(file: Path) -> str:
    """What is said of a path at which there is no file with data, such as a pipe, which cannot be read twice."""
    if file.is_dir():
        return "is a folder, not a file"
    return "is no regular file" if file.exists() else "does not exist"


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path fit those of a pattern, of which `**` stands for any number of folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[at:], pattern[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatch(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
