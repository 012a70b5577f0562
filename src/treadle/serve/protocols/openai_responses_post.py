"""What a caller of Responses posts, and the ids by which it goes on with what there is.

Items of earlier responses that it posts back are not read, as the server knows them better, but for calls of its own
tools, their results, and answers to approvals.
"""

from collections.abc import Collection
from typing import Any, Final

from treadle.kernel.messages import Json, Text, ToolCall, UserMessage
from treadle.serve.protocols.openai_caller import History, Posted, content_of, external, instructed, offered, refuse
from treadle.serve.protocols.wire import Verdict, bad, decide, flag_at, list_at, object_at, said, text_at

APPROVAL: Final = "mcpr_"
"""What the id of an approval begins with."""

RESPONSE: Final = "resp_"
"""What the id of a response begins with; the run and the number of the event before it follow."""

_HARMLESS: Final[dict[str, Collection[Any]]] = {
    "background": (False,),
    "tool_choice": ("none", "auto"),
    "top_logprobs": (0,),
    "prompt": (),
}
_APPROVAL_RESPONSE: Final = "mcp_approval_response"
_HISTORY: Final = frozenset({"reasoning", "mcp_call", "mcp_list_tools", "mcp_approval_request"})
"""Items of earlier responses that the server knows better."""


def response_id(run_id: str, number: int) -> str:
    """The id of the response that tells run `run_id` from after event `number` on."""
    return f"{RESPONSE}{run_id}_{number}"


def run_of_response(name: str) -> tuple[str, int]:
    """The run, and the number, of a response's id; an empty run if it is none."""
    run_id, _, number = name.removeprefix(RESPONSE).rpartition("_")
    fits = name.startswith(RESPONSE) and run_id and number.isascii() and number.isdigit() and len(number) < 10
    return (run_id, int(number)) if fits else ("", 0)


def posted(body: Any, externals: Collection[str] = ()) -> Posted:
    """What the body of a request asks for; `externals` are the agent's own tools that callers carry out.

    Raises:
        Refused: it cannot be right, or asks for what an agent does not do.
    """
    post = object_at(body, "the request")
    refuse(post, _HARMLESS)
    tools = tuple([_tool(one, f"request.tools[{i}]") for i, one in enumerate(list_at(post, "tools", "request"))])
    before, conversation = text_at(post, "previous_response_id", "request", ""), _conversation(post)
    if before and conversation:
        raise bad("request", "names both previous_response_id and conversation", "Give one of them.")
    history, verdicts = History({*externals, *(tool.name for tool in tools)}), dict[str, Verdict]()
    loose = dict[str, str]()
    given = post.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list_at(post, "input", "request")
    for i, one in enumerate(items):
        item, where = object_at(one, f"request.input[{i}]"), f"request.input[{i}]"
        if before and item.get("type") == "function_call_output":
            decide(loose, text_at(item, "call_id", where), _output(item, where), where)
        else:
            _read(history, item, where, verdicts)
    instructions = text_at(post, "instructions", "request", "")
    if instructions and (history.messages or not (loose or verdicts)):
        # Callers give them with each request: beside a decision alone nothing is said with them.
        history.messages.insert(0, instructed(instructions))
    # Where nothing is named to go on with, what stands before an approval was said before it was asked for.
    decides = not before and items[-1:] != [] and items[-1].get("type") == _APPROVAL_RESPONSE
    return _made(post, history, loose, verdicts, tools, before, conversation, decides)


def _made(
    post: Json,
    history: History,
    loose: dict[str, str],
    verdicts: dict[str, Verdict],
    tools: tuple[Any, ...],
    before: str,
    conversation: str,
    decides: bool,
) -> Posted:
    last = history.messages[-1] if history.messages else None
    message = last if isinstance(last, UserMessage) and not decides else None
    results = loose or history.results
    if message is None and not results and not verdicts:
        raise bad("request.input", "must end with what the user says, with results of your tools, or with an approval")
    wanted = object_at(object_at(post.get("text") or {}, "request.text").get("format") or {}, "request.text.format")
    return Posted(
        text_at(post, "model", "request"),
        tuple(history.messages if message is None else history.messages[:-1]),
        message,
        offered(post, tools, goes_on=message is None and bool(history.results)),
        results,
        verdicts,
        stream=flag_at(post, "stream", "request", False),
        before=before,
        conversation=conversation,
        typed=wanted.get("type", "text") != "text",
    )


def _conversation(post: Json) -> str:
    given = post.get("conversation")
    if isinstance(given, dict):
        return text_at(given, "id", "request.conversation")
    return text_at(post, "conversation", "request", "")


def _tool(one: Any, where: str) -> Any:
    declared = object_at(one, where)
    if declared.get("type") != "function":
        raise bad(
            f"{where}.type", f"must be function, and is {declared.get('type')!r:.50}", "The agent's own run inside."
        )
    return external(declared.get("name"), declared.get("description"), declared.get("parameters"), where)


def _output(item: Json, where: str) -> str:
    parts = content_of(item, where, "output")
    return "\n".join([part.text for part in parts if isinstance(part, Text)])


def _read(history: History, item: Json, where: str, verdicts: dict[str, Verdict]) -> None:
    match item.get("type", "message"):
        case "message":
            _read_message(history, item, where)
        case "function_call":
            name, arguments = text_at(item, "name", where), text_at(item, "arguments", where, "")
            history.answered((), [ToolCall(text_at(item, "call_id", where), name, arguments)], where)
        case "function_call_output":
            history.came(text_at(item, "call_id", where), _output(item, where), where)
        case str(kind) if kind == _APPROVAL_RESPONSE:
            approve, reason = flag_at(item, "approve", where), text_at(item, "reason", where, "")
            name = text_at(item, "approval_request_id", where).removeprefix(APPROVAL)
            decide(verdicts, name, Verdict(approve, reason), where)
        case str(kind) if kind in _HISTORY:
            return
        case other:
            raise bad(f"{where}.type", f"is {other!r:.50}, which an agent does not take")


def _read_message(history: History, item: Json, where: str) -> None:
    parts = content_of(item, where)
    match item.get("role"):
        case "system" | "developer":
            text = "\n".join([part.text for part in parts if isinstance(part, Text)])
            if text.strip():
                history.said(instructed(text))
        case "user":
            history.said(UserMessage(said(parts, where)))
        case "assistant":
            history.answered(parts, (), where)
        case other:
            raise bad(f"{where}.role", f"is {other!r:.50}; it must be system, developer, user or assistant")
