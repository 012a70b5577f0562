"""Reads what a docstring says of a function and of each parameter: Google, NumPy and Sphinx styles.

Text in, text out; knows nothing of tools. The rest of the docstring (examples, notes) stays in the description, as a
model can use it; what is said of parameters, results and exceptions is taken out.
"""

import re
from inspect import cleandoc

_PARAMETERS = {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
_LEFT_OUT = {"returns", "return", "raises", "yields", "yield", "attributes", "see also"}
_GOOGLE_HEAD = re.compile(r"^([A-Z][A-Za-z ]+):\s*$")
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_SPHINX_PARAMETER = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_SPHINX_FIELD = re.compile(r"^:\w+[^:]*:")


def parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description, and the parameters' descriptions by name. Both are empty if there is nothing."""
    if not text:
        return "", {}
    kept: list[str] = []
    found: dict[str, str] = {}
    lines = cleandoc(text).splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        head = _GOOGLE_HEAD.match(line)
        title = head.group(1).lower() if head else ""
        if title in _PARAMETERS or title in _LEFT_OUT:
            block, at = _block(lines, at + 1)
            if title in _PARAMETERS:
                found |= _google(block)
        elif line.strip().lower() in _PARAMETERS | _LEFT_OUT and _underlined(lines, at):
            block, at = _numpy_block(lines, at + 2)
            if line.strip().lower() in _PARAMETERS:
                found |= _numpy(block)
        elif _SPHINX_FIELD.match(line):
            more, at = _block(lines, at + 1)
            parameter = _SPHINX_PARAMETER.match(line)
            if parameter:
                found[parameter.group(1)] = _joined([parameter.group(2), *more])
        else:
            kept.append(line)
            at += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), {name: said for name, said in found.items() if said}


def _block(lines: list[str], start: int) -> tuple[list[str], int]:
    """The indented lines from `start`, and where they end."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        end += 1
    return lines[start:end], end


def _underlined(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[at + 1]) is not None


def _numpy_block(lines: list[str], start: int) -> tuple[list[str], int]:
    """The lines of a NumPy section, which end where the next underlined title begins."""
    end = start
    while end < len(lines) and not _underlined(lines, end):
        end += 1
    return lines[start:end], end


def _google(block: list[str]) -> dict[str, str]:
    return _entries(block, min((_indent(line) for line in block if line.strip()), default=0), _GOOGLE_ENTRY)


def _numpy(block: list[str]) -> dict[str, str]:
    return _entries(block, 0, _NUMPY_ENTRY)


def _entries(block: list[str], indent: int, pattern: re.Pattern[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in block:
        entry = pattern.match(line.strip()) if line.strip() and _indent(line) == indent else None
        if entry is None:
            current.append(line)
            continue
        current = [entry.group(2)] if pattern is _GOOGLE_ENTRY else []
        for name in re.split(r"\s*,\s*", entry.group(1)):
            found[name] = current
    return {name: _joined(said) for name, said in found.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
