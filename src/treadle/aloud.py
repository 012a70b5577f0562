"""Aloud: loggers whose warnings are told on standard error where nobody has set logging up.

The logger `treadle` says nothing on a terminal that its program did not ask for. What a person has to know in any case,
such as that others can read a journal, or why a run failed, is said by a logger below it that is made here.
"""

import logging


class _Unheard(logging.Handler):
    """Has Python's last resort, which writes to standard error, say what no handler of the application's hears."""

    def emit(self, record: logging.LogRecord) -> None:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any([type(one) not in (_Unheard, logging.NullHandler) for one in logger.handlers]):
                return
            logger = logger.parent if logger.propagate else None
        if logging.lastResort is not None and record.levelno >= logging.lastResort.level:
            logging.lastResort.handle(record)


def aloud(name: str) -> logging.Logger:
    """The logger of that name, whose warnings are heard."""
    logger = logging.getLogger(name)
    if not any([type(one) is _Unheard for one in logger.handlers]):
        logger.addHandler(_Unheard())
    return logger
