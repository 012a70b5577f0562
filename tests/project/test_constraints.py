"""A fresh machine gets what was tested: constraints.txt has a version for all that pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def asked_for() -> list[Requirement]:
    tables = [
        PROJECT["build-system"]["requires"],
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]
    requirements = [Requirement(line) for table in tables for line in table if isinstance(line, str)]
    return [requirement for requirement in requirements if requirement.name != "treadle"]


def locked() -> dict[str, str]:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return {canonicalize_name(name): version for name, version in re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", text)}


@pytest.mark.parametrize("requirement", asked_for(), ids=str)
def test_the_lock_satisfies(requirement: Requirement) -> None:
    version = locked().get(canonicalize_name(requirement.name))
    assert version, f"{requirement.name} is not in constraints.txt: run `make lock`"
    assert requirement.specifier.contains(version, prereleases=True), f"constraints.txt has {version}: run `make lock`"


def test_the_lock_names_no_place() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert not re.search(r"://|^\s*-", text, re.MULTILINE), "constraints.txt must not say where packages come from"
