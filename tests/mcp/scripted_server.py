"""An MCP server that does what a script says, in the place of what it does by default.

    python scripted_server.py "def called(params): …"

The script may define `listed` and `called`, which are given the parameters, and `said`, which is given each message;
what they return is the answer, and for None there is none.
"""

import json
import os  # noqa: F401
import sys
import time  # noqa: F401


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def said(message):
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        about = {"name": "evil", "version": "\x1b[2J"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": about}
    if method == "tools/list":
        return listed(message.get("params") or {})
    if method == "tools/call":
        return called(message["params"])
    return {} if number is not None and method != "server/discover" else None


def tool(name="t", description="Is of use.", **more):
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def listed(params):
    return {"tools": [tool()]}


def called(params):
    return {"content": [{"type": "text", "text": "ok"}]}


exec(sys.argv[1])

for line in sys.stdin:
    message = json.loads(line)
    result = said(message)
    if result is not None:
        send(id=message["id"], result=result)
    elif message.get("id") is not None:
        send(id=message["id"], error={"code": -32601, "message": "no"})
