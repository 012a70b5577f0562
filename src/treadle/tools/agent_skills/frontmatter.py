"""Frontmatter: what stands between the two lines `---` at the head of a SKILL.md, read as plain YAML.

Plain means block mappings, lists and texts. Anchors, aliases, tags, flow collections and keys that come twice are
refused, as the reference library of the format does: with them a few lines can stand for gigabytes, and two readers can
read two things. Every value is the text that stands there: `1.0` is no number, `no` no boolean.
"""

import re
from typing import Any

DEEPEST = 8
"""How deep values may stand in each other."""

LONGEST = 10_000
"""Characters of a head: ten times what its fields may have, and little enough to be read in no time."""

_FENCE = re.compile(r"^---", re.MULTILINE)


class Unreadable(Exception):
    """The head of a SKILL.md cannot be read; its text says why, for the one who wrote it."""


def parted(text: str) -> tuple[dict[str, Any], str]:
    """The fields of the head of `text`, and what comes after it without the blank around.

    Raises:
        Unreadable: there is no head, it does not end, or it is not plain YAML.
        ImportError: PyYAML is not installed.
    """
    opening = _FENCE.match(text)
    if opening is None:
        mark = "; an invisible mark stands before it: save it as UTF-8 without BOM" if text.startswith("\ufeff") else ""
        raise Unreadable(f"it does not begin with a line --- before its fields{mark}")
    closing = _FENCE.search(text, opening.end())
    if closing is None:
        raise Unreadable("there is no second line --- after its fields")
    head = text[opening.end() : closing.start()]
    if len(head) > LONGEST:
        raise Unreadable(f"its fields have {len(head):,} characters together, and at most {LONGEST:,} are read")
    fields = plain(head)
    if not isinstance(fields, dict):
        raise Unreadable("its fields are not written as name: value")
    return fields, text[closing.end() :].strip()


def plain(text: str) -> Any:
    """The value that `text` is in plain YAML: dicts, lists and texts.

    Raises:
        Unreadable: it is not plain YAML.
        ImportError: PyYAML is not installed.
    """
    import yaml

    try:
        return _Builder().built(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        hint = "; put a value that has a colon in quotes" if "mapping values are not allowed" in str(error) else ""
        raise Unreadable(f"its fields are not YAML{where}: {getattr(error, 'problem', None) or error}{hint}") from error


class _Builder:
    """Puts the value of a document together from the parser's events."""

    def __init__(self) -> None:
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        self._value: Any = None
        self._documents = 0

    def built(self, events: Any) -> Any:
        from yaml import events as kinds

        for event in events:
            line = event.start_mark.line + 1
            self._refuse(event, kinds, line)
            match event:
                case kinds.ScalarEvent():
                    self._put(event.value, line)
                case kinds.MappingStartEvent() | kinds.SequenceStartEvent():
                    if len(self._open) == DEEPEST:
                        raise Unreadable(f"its fields stand more than {DEEPEST} deep in each other, in line {line}")
                    made: dict[str, Any] | list[Any] = {} if isinstance(event, kinds.MappingStartEvent) else []
                    self._put(made, line)
                    self._open.append(made)
                    self._keys.append(None)
                case kinds.MappingEndEvent() | kinds.SequenceEndEvent():
                    self._open.pop()
                    self._keys.pop()
        return self._value

    def _refuse(self, event: Any, kinds: Any, line: int) -> None:
        if isinstance(event, kinds.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise Unreadable(f"it has a second document, in line {line}")
        anchored = isinstance(event, kinds.AliasEvent) or getattr(event, "anchor", None) is not None
        if anchored or getattr(event, "tag", None) is not None:
            raise Unreadable(f"anchors, aliases and tags (& * !) are not taken, in line {line}; quote the text")
        if getattr(event, "flow_style", False):
            raise Unreadable(f"lists and mappings in brackets are not taken, in line {line}; write a line for each")

    def _put(self, value: Any, line: int) -> None:
        if not self._open:
            self._value = value
            return
        into = self._open[-1]
        if isinstance(into, list):
            into.append(value)
            return
        key = self._keys[-1]
        if key is not None:
            into[key] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise Unreadable(f"the name of a field is a text, unlike that in line {line}")
        elif value in into:
            raise Unreadable(f"there are two fields {value!r:.80}, the second in line {line}")
        else:
            self._keys[-1] = value
