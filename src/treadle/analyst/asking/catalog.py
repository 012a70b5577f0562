"""The catalogue: sources, and where their data live.

It may be written in Python or loaded from a `sources.yaml` (`treadle.analyst.declared.sources_file` reads that).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from treadle.analyst.declared.errors import declared_at, unknown
from treadle.analyst.declared.hierarchy import Hierarchy
from treadle.analyst.declared.packages import need_packages
from treadle.analyst.declared.place import Place
from treadle.analyst.declared.source import Source
from treadle.kernel.errors import Misuse


def require_catalog(given: object) -> None:
    """Refuses what is no catalogue, such as the path of one.

    Raises:
        Misuse: says how to make one of a file.
    """
    if not isinstance(given, Catalog):
        how = f"Catalog.load({str(given)!r})" if isinstance(given, (str, Path)) else "Catalog.load('sources.yaml')"
        raise Misuse(f"the sources are given as a Catalog, such as {how}; it was given {given!r:.100}")


class Catalog(Place):
    """The sources that may be asked, and the folders that their files may live in.

    Args:
        sources: the sources; their names must differ.
        folder: what relative paths start from, and a folder that files may live in. Default: the current one.
        roots: further folders that files may live in.
        frames: the data of sources of kind "frame", by the source's name.
        hierarchies: groups of the values of dimensions, for subtotals; their names must differ.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        folder: str | Path = ".",
        roots: Iterable[str | Path] = (),
        frames: Mapping[str, object] | None = None,
        hierarchies: Iterable[Hierarchy] = (),
    ) -> None:
        super().__init__(folder, roots, frames)
        self.sources: dict[str, Source] = {}
        for source in sources:
            with declared_at("sources", source.name):
                if any(name.casefold() == source.name.casefold() for name in self.sources):
                    raise ValueError(f"there are two sources called {source.name!r}")
            self.sources[source.name] = source
        for source in self.sources.values():
            self._check_tables(source)
        self.hierarchies: dict[str, Hierarchy] = {}
        for hierarchy in hierarchies:
            with declared_at("hierarchies", hierarchy.name):
                self._check_hierarchy(hierarchy)
            self.hierarchies[hierarchy.name] = hierarchy
        held = {source.name for source in self.sources.values() if source.kind == "frame"}
        if held != set(self.frames):
            odd = sorted(held ^ set(self.frames))
            raise ValueError(f"frames and sources of kind 'frame' must have the same names; these have no like: {odd}")

    def _check_tables(self, source: Source) -> None:
        """Raises ValueError unless the tables that values and amounts are looked up in are sources that have them."""
        for item in source.dimensions:
            if table := item.mapping:
                with declared_at("sources", source.name, "dimensions", item.name, "mapping"):
                    named = [("from", table.old), ("to", table.new)]
                    self._check_table(source, table.source, named, ("share", table.share))
        for measure in source.measures:
            if rates := measure.conversion:
                with declared_at("sources", source.name, "measures", measure.name, "conversion"):
                    named = [("currency", rates.currency), *(("on", name) for name in rates.on)]
                    self._check_table(source, rates.source, named, ("rate", rates.rate))

    def _check_table(
        self, source: Source, name: str, named: Iterable[tuple[str, str]], figure: tuple[str, str]
    ) -> None:
        """Raises ValueError unless there is a table `name` with these dimensions and that figure, each by its field."""
        with declared_at("source"):
            other = self.source(name, "source")
            if any(item.mapping for item in other.dimensions) or any(item.conversion for item in other.measures):
                raise ValueError(
                    f"source {name!r} is a table that {source.name!r} looks up, and must not look up others"
                )
        for field, dimension in named:
            with declared_at(field):
                other.dimension(dimension)
        field, measure = figure
        with declared_at(field):
            if measure and other.measure(measure).aggregation != "sum":
                raise ValueError(f"measure {measure!r} of {name!r} holds shares or rates, and must be a sum")

    def _check_hierarchy(self, hierarchy: Hierarchy) -> None:
        """Raises ValueError unless its name is its own, and what it names is there."""
        told = f"hierarchy {hierarchy.name!r}"
        if any(name.casefold() == hierarchy.name.casefold() for name in self.hierarchies):
            raise ValueError(f"there are two hierarchies called {hierarchy.name!r}")
        with declared_at("of"):
            if not any(source.find_dimension(hierarchy.of) for source in self.sources.values()):
                raise ValueError(f"{told} is of {hierarchy.of!r}, which no source has as a dimension")
        if not hierarchy.source:
            return
        with declared_at("source"):
            table = self.source(hierarchy.source, "source")
        for field in ("group", "member", *(["to"] if hierarchy.to else [])):
            with declared_at(field):
                dimension = table.dimension(getattr(hierarchy, field), "hierarchies")
                if dimension.mapping:
                    raise ValueError(f"{told}: {dimension.name!r} of {table.name!r} must not look up others")

    def hierarchy(self, name: str) -> Hierarchy:
        """Returns the hierarchy called `name`, in any case. Raises AnalystError, with the nearest, if there is none."""
        found = next((h for h in self.hierarchies.values() if h.name.casefold() == name.strip().casefold()), None)
        if found is None:
            raise unknown("hierarchy", "subtotals", name, self.hierarchies)
        return found

    def tables(self, source: Source) -> list[Source]:
        """Returns the sources that the values and amounts of `source` are looked up in."""
        names = [item.mapping.source for item in source.dimensions if item.mapping]
        names += [item.conversion.source for item in source.measures if item.conversion]
        return list({name: self.source(name) for name in names}.values())

    def keeps(self, path: Path) -> str:
        """Returns why a file may not be written, for the sake of the sources; empty if they have nothing against it.

        Those that a question does not read count as well: whoever writes over one loses it, and a new file among those
        that a source reads is a part of it the next time.
        """
        name = self.source_at(path, self.sources.values())
        if not name:
            return ""
        return f"it is a file of one of the sources, {name!r}" if path.exists() else f"source {name!r} would read it"

    def __repr__(self) -> str:
        return f"Catalog({', '.join(self.sources)})"

    @classmethod
    def load(cls, path: str | Path, roots: Iterable[str | Path] = ()) -> "Catalog":
        """Reads a `sources.yaml`.

        Args:
            path: the file.
            roots: folders beside the file's own that data files may live in, besides those that the file declares.

        Raises:
            AnalystError: the file cannot be read or is not valid; names file, line and field.
            Misuse: the package that reads such files is not installed.
        """
        need_packages("yaml")
        from treadle.analyst.declared.sources_file import read_catalog

        return read_catalog(Path(path), tuple(roots), cls)

    @classmethod
    def of(
        cls,
        frames: Mapping[str, object],
        sources: Iterable[Source] = (),
        folder: str | Path = ".",
        roots: Iterable[str | Path] = (),
    ) -> "Catalog":
        """Returns a catalogue of frames in memory: Arrow tables, pandas or Polars frames, or what else has
        `__arrow_c_stream__`.

        Args:
            frames: the data, by the name of the source.
            sources: what is declared of them (kind "frame"), and further sources. The dimensions and measures of a
                frame that is not declared are proposed from its columns.
            folder: see Catalog.
            roots: see Catalog.

        Raises:
            AnalystError: a frame is none, or cannot be held exactly.
        """
        from treadle.analyst.asking.propose import propose_frame

        declared = list(sources)
        known = {source.name for source in declared}
        proposed = [propose_frame(name, frame) for name, frame in frames.items() if name not in known]
        return cls([*declared, *proposed], folder, roots, frames)

    def having(self, source: Source) -> "Catalog":
        """Returns this catalogue with `source` in the place of the one of that name."""
        sources = [source if one.name == source.name else one for one in self.sources.values()]
        return Catalog(sources, self.folder, self.roots, self.frames, self.hierarchies.values())

    def source(self, name: str, argument: str = "source") -> Source:
        """Returns the source called `name`, in any case. Raises AnalystError, with the nearest, if there is none."""
        found = next((s for s in self.sources.values() if s.name.casefold() == name.strip().casefold()), None)
        if found is None:
            raise unknown("source", argument, name, self.sources)
        return found
