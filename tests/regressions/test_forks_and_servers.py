"""A fork with other instructions of a run whose tools come from servers: the request is as large as with them."""

from treadle.kernel.events import RunForked, RunStarted, ToolsListed
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import ListedTool, SystemMessage, UserMessage


def test_a_fork_with_other_instructions_reckons_with_what_servers_list() -> None:
    listed = ListedTool("shop__buy", "shop", "buy", "Buys.", "{}")
    begun = [
        RunStarted("r", (SystemMessage("Be kind."), UserMessage("Go.")), 10),
        ToolsListed((listed,), tool_tokens=5_000),
    ]
    assert fold_all(begun).size.tokens == 5_000
    fork = fold_all([*begun, RunForked("f", instructions="Be brief.")])
    assert fork.messages[0] == SystemMessage("Be brief.")
    assert fork.size.tokens == fork.tool_tokens == 5_000
