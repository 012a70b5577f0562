"""Agents over HTTP: `treadle.serve.app({"support": agent}, journal=…)`. Needs the extra `serve`."""

try:
    from treadle.serve.access import Bounds
    from treadle.serve.app import Served, app
    from treadle.serve.user import User
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "starlette":
        raise
    raise ModuleNotFoundError(
        "treadle.serve needs starlette, which is not installed: pip install 'treadle[serve]'", name=error.name
    ) from error

__all__ = ["Bounds", "Served", "User", "app"]
