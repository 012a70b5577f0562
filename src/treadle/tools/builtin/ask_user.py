"""The tool that asks the person: calling it pauses the run, and the answer comes with `agent.resume(results=…)`."""

from treadle.tools.external import external_tool

ask_user = external_tool(
    "ask_user",
    "Asks the user a question and waits for the answer, which may take days. Use it only when you cannot go on without "
    "something that only the user knows or may decide, and that no other tool can find out. Do not use it to confirm "
    "what was said already, to report progress or to give the final answer. Ask one question that can be understood by "
    "itself; ask for everything you need at once.",
    {
        "type": "object",
        "properties": {
            "question": {
                "type": "string",
                "minLength": 1,
                "description": "the question, with what the user must know to answer it",
            },
            "choices": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "default": [],
                "description": "likely answers to choose from; the user may answer something else",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    wait=True,
)
"""Pauses the run for an answer: it is then `pending` with kind "result", its question and choices as arguments, and
`agent.resume(run, results={call_id: answer})` goes on, in this process or another."""
