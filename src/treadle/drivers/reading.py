"""Reading: an agent whose run has shortened results in its history can read them, wherever they were shortened.

A stub names `read_result`; the run that shortened the result may have been another agent's, or an earlier one of the
same conversation.
"""

import dataclasses
from collections.abc import Collection, Sequence

from treadle.context.stubs import READ_RESULT
from treadle.drivers.configuration import Configuration
from treadle.kernel.messages import Message, ToolMessage
from treadle.tools.read_result import read_result


def reading(config: Configuration, messages: Sequence[Message], offered: Collection[str] = ()) -> Configuration:
    """`config` with the tool `read_result`, if something in `messages` was shortened and it does not have it.

    So it is where the run has had it from its beginning, as the tools that it `offered` tell: what was shortened may
    have been left out since, and a request of the run begins with its tools.
    """
    shortened = READ_RESULT in offered or any(
        [isinstance(message, ToolMessage) and message.whole is not None for message in messages]
    )
    if not shortened or READ_RESULT in config.tools:
        return config
    tools, specs = {**config.tools, READ_RESULT: read_result}, (*config.specs, read_result.spec)
    return dataclasses.replace(config, tools=tools, specs=specs).counted()
