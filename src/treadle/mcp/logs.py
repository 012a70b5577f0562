"""Logs: what the packages that speak with a server log of it, without what nobody else is to read."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from treadle.mcp.secrets import Secrets

_LOGGERS: Final = (
    "httpx2", "client", "mcp.client.client", "mcp.client.session", "mcp.client.streamable_http",
    "mcp.client.auth.oauth2", "mcp.shared.dispatcher", "mcp.shared.jsonrpc_dispatcher",
)  # fmt: skip
"""They log addresses, and what a server sent that is no message: a filter holds for one logger, not for those below."""


@contextmanager
def hidden_in_logs(secrets: Secrets) -> Iterator[None]:
    """While it is entered, `secrets` are in no line that these packages log, and tracebacks are left out: they may have
    pieces of them, or of what was said, and a server that sends what is no message would fill a terminal with them.
    """

    def hide(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0] is not None:
            record.msg = f"{record.getMessage()} ({record.exc_info[0].__name__})"
            record.args, record.exc_info, record.exc_text = (), None, None
        told = record.getMessage()
        hidden = secrets.hidden(told)
        if hidden != told:
            record.msg, record.args = hidden, ()
        return True

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for one in loggers:
        one.addFilter(hide)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(hide)
