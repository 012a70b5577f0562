"""Misnamed: what other libraries call things that have another name here, for whoever writes what they know."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

ARGUMENTS: Final = {
    "system_prompt": "instructions",
    "system": "instructions",
    "system_message": "instructions",
    "prompt": "instructions",
    "role": "instructions",
    "goal": "instructions",
    "backstory": "instructions",
    "output_type": "output",
    "result_type": "output",
    "response_format": "output",
    "response_model": "output",
    "output_schema": "output",
    "recursion_limit": "limits=Limits(steps=…)",
    "max_tokens": "settings=ModelSettings(max_tokens=…)",
    "model_settings": "settings",
    "functions": "tools",
    "toolsets": "tools",
    "mcp_servers": "tools=[MCPServer.stdio(…)]",
    "handoffs": "tools=[handoff(agent)]",
    "agents": "tools=[agent.as_tool()]",
    "managed_agents": "tools=[agent.as_tool()]",
    "subagents": "tools=[agent.as_tool()]",
    "sub_agents": "tools=[agent.as_tool()]",
    "stop": "stop_when",
    "tool_use_behavior": "stop_when",
    "hooks": "prepare_step, on_tool_call, on_tool_result, on_answer and on_event",
    "middleware": "prepare_step, on_tool_call, on_tool_result and on_answer",
    "guardrails": "prepare_step, approvals, on_tool_result and on_answer",
    "input_guardrails": "prepare_step",
    "output_guardrails": "on_answer",
    "output_validator": "on_answer",
    "final_answer_checks": "on_answer",
    "pre_model_hook": "prepare_step",
    "post_model_hook": "on_answer",
    "history_processors": "context",
    "memory": "skills=[memory_skill(…)]",
    "store": "skills=[memory_skill(…)]",
    "early_stopping_method": "on_limit",
    "interrupt_before": "approvals=[ask_before(…)]",
    "interrupt_on": "approvals=[ask_before(…)]",
    "human_in_the_loop": "approvals=[ask_before(…)]",
    "requires_approval": "approvals=[ask_before(…)]",
    "permissions": "approvals=[ask_before(…), deny(…)]",
    "llm": "model",
    "api_key": "model=model_from_name(…, api_key=…)",
    "base_url": "model=model_from_name(…, base_url=…)",
    "deps": "deps_type=… (the class; the value is given to each run: agent.run(…, deps=…))",
    "dependencies": "deps_type",
    "context_schema": "deps_type",
    "experimental_context": "deps",
    "additional_args": "deps",
    "max_retries": "retries",
    "output_retries": "limits=Limits(consecutive_errors=…)",
    "retry": "retries",
    "checkpointer": "journal",
    "verbose": "on_event=print_trace",
    "debug": "on_event=print_trace",
    "callbacks": "on_event",
    "step_callbacks": "on_event",
    "on_step_finish": "on_event",
    "event_stream_handler": "on_event",
    "tracing": "telemetry=Telemetry()",
    "instrument": "telemetry=Telemetry()",
    "session": "conversation=Conversation()",
    "thread_id": "conversation=Conversation(name=…)",
    "session_id": "conversation=Conversation(name=…)",
    "conversation_id": "conversation=Conversation(name=…)",
} | dict.fromkeys(("messages", "message_history", "history"), "conversation=Conversation(messages)")
"""Arguments of an agent, and what they are here."""

OF_STEPS: Final = {word: meant for word, meant in ARGUMENTS.items() if meant in ("instructions", "model", "tools")} | {
    **dict.fromkeys(("active_tools", "allowed_tools", "tool_names"), "tools"),
    **dict.fromkeys(("history", "message_history"), "messages"),
}
"""Likewise of the settings of one step."""

OF_TOOLS: Final = dict.fromkeys(("tool_name", "tool_name_override"), "name") | dict.fromkeys(
    ("tool_description", "tool_description_override"), "description"
)
"""Likewise of an agent that is made a tool."""

OF_RUNS: Final = (
    ARGUMENTS
    | dict.fromkeys(("prompt", "query", "question"), "input")
    | dict.fromkeys(("files", "images", "attachments"), "input=[Text(…), Image(…), File(…)]")
    | dict.fromkeys(("context", "dependencies"), "deps")
    | {"stream": "agent.stream(…)", "approve": "agent.resume(…, approve=…)", "run_id": "agent.submit(…, run_id=…)"}
)
"""Likewise of a run."""

OF_RESUMED: Final = (
    OF_RUNS
    | dict.fromkeys(("input", "prompt", "query", "question"), "message")
    | dict.fromkeys(("answer", "answers", "response", "result"), "results={call: …}")
    | dict.fromkeys(("approved", "approvals", "accept"), "approve")
    | dict.fromkeys(("denied", "reject", "rejected"), "deny")
    | {"decisions": "approve=…, deny=… and results=…", "reason": "deny={call: …}"}
)
"""Likewise of a run that goes on."""

OF_RESULTS: Final = (
    dict.fromkeys(("final_output", "data", "result"), "text, or output where the agent was given output=")
    | dict.fromkeys(("content", "answer", "response", "value", "output_text"), "text")
    | dict.fromkeys(("all_messages", "new_messages", "history", "to_input_list"), "messages")
    | dict.fromkeys(("interruptions", "interrupts", "waiting"), "pending")
    | dict.fromkeys(("status", "reason", "stop_reason", "finish_reason"), "stop.reason")
    | dict.fromkeys(("success", "ok", "done", "is_done"), "finished")
    | dict.fromkeys(("to_json", "model_dump", "dict", "json"), "to_dict()")
    | dict.fromkeys(("raise_for_status", "unwrap"), "require()")
    | dict.fromkeys(("total_cost", "cost_usd"), "cost")
    | {"new_items": "steps", "tool_calls": "tool_calls_made", "id": "run_id", "duration": "elapsed"}
)
"""Attributes of a result."""

OF_STREAMS: Final = (
    dict.fromkeys(("stream_text", "text_deltas"), "text_stream()")
    | dict.fromkeys(("events", "stream_events"), "async for event in run")
    | dict.fromkeys(("text", "output", "final_output", "get_output", "final_result"), "result, after the run")
    | dict.fromkeys(("stop", "abort"), "cancel()")
)
"""Attributes of a run that is streamed."""

OF_PENDING: Final = (
    dict.fromkeys(("name", "tool_name"), "tool")
    | dict.fromkeys(("args", "input"), "arguments")
    | dict.fromkeys(("id", "tool_call_id"), "key, or call_id")
    | {"approve": "agent.resume(…, approve=[pending])", "deny": "agent.resume(…, deny=[pending])"}
)
"""Attributes of a call that waits."""

OF_CONVERSATIONS: Final = dict.fromkeys(("add", "append", "add_message"), "add_user(…) or add_assistant(…)") | {
    "clear": "a new Conversation()",
    "to_dict": "save(path)",
    "history": "messages",
    "add_system": "Agent(…, instructions=…): a conversation has no system message",
}
"""Attributes of a conversation."""

OF_AGENTS: Final = (
    dict.fromkeys(("tool", "tool_plain"), "@treadle.tool, and Agent(…, tools=[…])")
    | dict.fromkeys(("system_prompt", "instructions"), "Agent(…, instructions=…), a text or a function")
    | {"output_validator": "Agent(…, on_answer=…)", "as_handoff": "treadle.handoff(agent)", "invoke": "run_sync(…)"}
    | {"with_structured_output": "Agent(…, output=…)", "bind_tools": "Agent(…, tools=[…])", "get_state": "result(…)"}
    | dict.fromkeys(("ainvoke", "arun", "run_async", "ask", "chat", "kickoff", "__call__"), "run(…)")
    | dict.fromkeys(("run_stream", "run_streamed", "stream_events", "astream", "iter"), "stream(…)")
    | dict.fromkeys(("override", "clone", "copy"), "with_model(…) and with_journal(…)")
    | dict.fromkeys(("approve", "deny", "continue_run"), "resume(…, approve=…, deny=…)")
    | {"resume_sync": "asyncio.run(agent.resume(…))", "list": "journal.list()", "runs": "journal.list()"}
)
"""Attributes of an agent."""

PUBLIC: Final = (
    {"Runner": "Agent(…).run(…)", "function_tool": "tool", "ModelRetry": "ToolError", "Depends": "Injected"}
    | dict.fromkeys(("UsageLimits", "RunConfig"), "Limits")
    | dict.fromkeys(("create_agent", "create_react_agent", "AgentExecutor", "ToolCallingAgent"), "Agent")
    | dict.fromkeys(("generateText", "streamText"), "Agent")
    | {"RunContextWrapper": "Injected", "MaxTurnsExceeded": "RunStopped", "StructuredTool": "Tool"}
    | {"stepCountIs": "step_count", "hasToolCall": "has_tool_call"}
    | dict.fromkeys(("Session", "SQLiteSession", "Thread"), "Conversation")
    | dict.fromkeys(("MemorySaver", "InMemorySaver"), "MemoryJournal")
    | {"SqliteSaver": "SqliteJournal", "SQLiteJournal": "SqliteJournal", "PostgresSaver": "PostgresJournal"}
    | {"interrupt": "ask_before and AskUser", "TestModel": "treadle.testing.ScriptedModel"}
    | {"FunctionModel": "treadle.testing.ScriptedModel"}
    | {name: f"treadle.testing.{name}" for name in ("ScriptedModel", "ReplayModel", "forbid_real_models")}
    | {name: f"treadle.models.{name}" for name in ("FallbackModel", "ModelError", "model_from_name")}
    | {name: f"treadle.journal.{name}" for name in ("JournalConflict", "JournalError", "RunHeld", "UnknownRun")}
    | {f"{who}Message": f"treadle.kernel.messages.{who}Message" for who in ("System", "User", "Assistant", "Tool")}
    | {"MCPServer": "treadle.mcp.MCPServer", "Telemetry": "treadle.telemetry.Telemetry"}
)
"""Public names, and where those are that `treadle` itself does not have."""


def as_spelled_here(name: str) -> str:
    """A name as it is spelled in Python, such as `max_steps` for `maxSteps`."""
    return re.sub("(?<=[a-z])[A-Z]", r"_\g<0>", name).lower()


class Misnamed:
    """What says of an attribute that it does not have what that is here, if others call it so."""

    __slots__ = ()
    _other_names: ClassVar[Mapping[str, str]] = {}

    # Type checkers know what there is; to them any name would be there.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            try:
                # A property of that name may be what had no attribute; asked once more, it says which.
                return super().__getattribute__(name)
            except AttributeError as error:
                # A class of one's own may be of another too that knows it.
                if (beside := getattr(super(), "__getattr__", None)) is not None:
                    return beside(name)
                if name not in self._other_names or name in dir(type(self)):
                    raise
                meant = self._other_names[name]
                raise AttributeError(f"{error}; did you mean {meant}?", name=name, obj=self) from None
