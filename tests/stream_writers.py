"""The writers of streams, which stand beside the runs over the wire, for other tests of the same dialects."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def writers() -> ModuleType:
    """The module that has them, loaded once."""
    name = "runs_over_the_wire"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, Path(__file__).parent / "models" / "test_runs_over_the_wire.py"
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
