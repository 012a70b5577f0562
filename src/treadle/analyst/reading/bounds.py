"""Bounds: what one question may use. Plain data."""

from msgspec import Struct


class Bounds(Struct, frozen=True):
    """What one question may use.

    Attributes:
        memory: the engine's memory limit, in DuckDB's terms; beyond it, it spills to disk.
        threads: how many threads; None for one a core.
        seconds: how long, from opening to the last row.
        spill: how much may be spilled to disk, in DuckDB's terms.
    """

    memory: str = "2GB"
    threads: int | None = None
    seconds: float = 300.0
    spill: str = "20GB"
