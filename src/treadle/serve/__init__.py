"""Agents over HTTP: `treadle.serve.app({"support": agent}, journal=…)`. Needs the extra `serve`."""

from treadle.serve.access import Bounds
from treadle.serve.app import Served, app
from treadle.serve.user import User

__all__ = ["Bounds", "Served", "User", "app"]
