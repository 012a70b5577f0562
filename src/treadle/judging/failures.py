"""Failures: did a call fail, though its tool reported no error?

Many tools report a failure as ordinary text, and many texts begin like one: a log, a ticket, a page about errors. So
such a text is taken for a failure only where the run itself bears it out: the model has put what it wants in other
words, as one does after a failure, and that failed as well; or it has made the same call again and got the same.
"""

import re
from functools import lru_cache
from typing import Any, Final

import msgspec

LOOK: Final = 300
"""Characters of a result that are looked at: enough for brackets, labels and the first words."""

WORDS: Final = 4
"""Words that two texts must share at least for one to be the other put differently."""

_WRITTEN: Final = 2000  # characters of the arguments whose words are looked at

# The first words of the result, after brackets and a few labels ("result:", "bash: line 1:"). Words further on do not
# count: a document may well speak of errors. Nor does a field that says that there is none ("error": null).
_READS_AS_ERROR: Final = re.compile(
    r"""
    [\s\[\](){}"'*\#<>!-]*
    (?:[\w./-]{1,40}["']?:\s*(?:line\s\d+:\s*)?["']?){0,3}
    (?: (?:errors?|failures?|exception|(?-i:[\w.]*[a-z](?:Error|Exception)))\b
        (?!["']?\s*[:=]\s*(?:null|none|false|0\b|""|''|\[\]|\{\}))
      | (?:traceback|fatal|failed|invalid|unknown|unrecogni[sz]ed|unsupported|malformed|illegal)\b
      | (?:unauthorized|forbidden)\b
      | (?:cannot|can't|could\ not|couldn't|unable\ to|no\ such|bad\ request|permission\ denied|access\ denied)\b
      | (?:\w+\ )?not\ (?:found|allowed|permitted|supported)\b
      | (?:timed\ out|timeout)\b
      | usage:
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)

_NO_SUCH_TOOL: Final = re.compile(
    r"""
      "available_tools"
    | \b(?:unknown|no\ such|non-?existent|unrecogni[sz]ed)\ tool\b
    | \bthere\ is\ no\ tool\b
    | \btool\ \S{1,80}\ (?:was\ |is\ )?(?:not\ (?:found|available|defined)|does\ not\ exist|unknown)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def reads_as_error(result: str) -> bool:
    """Whether a result begins as an error does, whatever its tool says."""
    return _READS_AS_ERROR.match(result, 0, LOOK) is not None


def names_no_tool(result: str) -> bool:
    """Whether an error says that there is no such tool."""
    return _NO_SUCH_TOOL.search(result, 0, _WRITTEN) is not None


def may_put_differently(arguments: str) -> bool:
    """Whether arguments may hold words enough to be put differently: seen from afar, and so quick to ask first."""
    return arguments.count(" ") + arguments.count("\\") >= WORDS - 1 or not arguments.startswith("{")


def put_differently(arguments: str, others: str) -> bool:
    """Whether two texts of arguments say much the same in other words, as two versions of a query or of a script do.

    What is no running text (a name, a path, a number) counts as one word at most, so that neither working through a
    list nor paging through a file looks like it.
    """
    one, other = _words(arguments[:_WRITTEN]), _words(others[:_WRITTEN])
    shared = len(one & other)
    return one != other and shared >= WORDS and 2 * shared >= max(len(one), len(other))


@lru_cache(256)
def _words(arguments: str) -> frozenset[str]:
    """The words that the values of the arguments are written in; the names of the arguments are the tool's."""
    try:
        values = msgspec.json.decode(arguments or "{}")
    except (ValueError, RecursionError):
        values = arguments
    return frozenset(word for text in _texts(values) for word in text.split() if any(map(str.isalpha, word)))


def _texts(values: Any) -> list[str]:
    if isinstance(values, dict):
        values = list(values.values())
    if not isinstance(values, list):
        return [values] if isinstance(values, str) else []
    return [text for value in values for text in _texts(value)]
