"""Place: where the data of sources are: files below certain folders, and frames that the application holds.

Touches the file system only in `Place.files`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source


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
        if any(sign in source.path for sign in "*?[") and not (self.folder / pattern).exists():
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
                what = "is a folder, not a file" if file.is_dir() else "does not exist"
                raise AnalystError(f"source {source.name!r}: {file} {what}", argument="source", given=source.name)
        if not files:
            raise AnalystError(f"source {source.name!r}: no file matches {source.path}", argument="source")
        if len(files) > 1 and source.kind in ("duckdb", "sqlite", "xlsx"):
            raise AnalystError(f"source {source.name!r}: {source.path} matches {len(files)} files, and takes one")
        return files
