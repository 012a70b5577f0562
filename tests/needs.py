"""What tests need that is not everywhere: without it they are skipped, or fail where a switch says they must run."""

import os
from importlib.util import find_spec

import pytest


def need(package: str, switch: str) -> None:
    """For the head of a module that cannot be imported without `package`."""
    if find_spec(package) is None:
        missing(f"{package} is not installed", switch)


def missing(what: str, switch: str) -> None:
    """Skips the test, or the module, for want of something."""
    if os.environ.get(switch) == "1":
        pytest.fail(f"{switch}=1, but {what}", pytrace=False)
    pytest.skip(what, allow_module_level=True)
