"""An MCP server without the official package, so that it starts at once, whose calls go as a plan says.

    python -S real_server.py FOLDER

It speaks 2025-11-25 over standard input and output; `Served` is what it does, for other transports too. In the folder
are `plan` (what its calls do, one after the other, a word a line; then all goes well), `starts` (its process ids) and
`done` (a line for each call that was carried out: tool, n, key).
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

VERSION = "2025-11-25"
TOOLS = ("look", "put", "write")
FORM = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
LATER = 0.6
"""Seconds after which a late answer comes: the client has given the call up by then."""


class Served:
    """What outlives its processes is in the folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self._lock = threading.Lock()
        self.version, self.lost = 0, set()

    def listed(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        words = {"write": f"Does something of use, as of version {self.version}."}
        return [
            {"name": name, "description": words.get(name, "Does something of use."), "inputSchema": schema}
            for name in TOOLS
            if name not in self.lost
        ]

    def happens(self):
        """What the next call does."""
        with self._lock:
            counted = self.folder / "counted"
            at = len(counted.read_text()) if counted.exists() else 0
            with counted.open("a") as file:
                file.write(".")
            plan = (self.folder / "plan").read_text().split()
        return plan[at] if at < len(plan) else "well"

    def carries_out(self, params):
        """Does it, and notes that."""
        key = (params.get("_meta") or {}).get("io.treadle/idempotency-key", "")
        with self._lock, (self.folder / "done").open("a") as file:
            file.write(f"{params['name']} {params['arguments']['n']} {key}\n")
        return {"content": [{"type": "text", "text": f"{params['name']} {params['arguments']['n']}"}]}

    def changes(self, what):
        if what == "change":
            self.version += 1
        elif what == "loses":
            self.lost ^= {"put"}


class Program:
    """The server as a program."""

    def __init__(self, served):
        self._served, self._lock, self._asked = served, threading.Lock(), {}

    def send(self, **message):
        with self._lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def takes(self, message):
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            about = {"name": "real", "version": "1"}
            able = {"tools": {"listChanged": True}}
            self.send(id=number, result={"protocolVersion": VERSION, "capabilities": able, "serverInfo": about})
        elif method == "tools/list":
            self.send(id=number, result={"tools": self._served.listed()})
        elif method == "tools/call":
            self.calls(number, params, self._served.happens())
        elif method is None and number in self._asked:
            call, given = self._asked.pop(number)
            if message.get("result", {}).get("action") == "accept":
                self.send(id=call, result=self._served.carries_out(given))
            else:
                self.send(id=call, result={"content": [{"type": "text", "text": "nobody said yes"}], "isError": True})
        elif number is not None and method is not None:
            self.send(id=number, error={"code": -32601, "message": "no"})

    def calls(self, number, params, what):
        if what == "dies_before":
            os._exit(3)
        if what == "asks":
            self._asked[f"q{number}"] = (number, params)
            asked = {"mode": "form", "message": f"Do {params['arguments']['n']}?", "requestedSchema": FORM}
            self.send(id=f"q{number}", method="elicitation/create", params=asked)
            return
        result = self._served.carries_out(params)
        if what == "dies":
            os._exit(3)
        if what == "never":
            return
        if what in ("late", "slow"):
            threading.Timer(
                LATER if what == "late" else 0.05, self.send, kwargs={"id": number, "result": result}
            ).start()
            return
        if what in ("change", "loses"):
            self._served.changes(what)
            self.send(method="notifications/tools/list_changed")
        if what == "junk":
            with self._lock:
                sys.stdout.write("\x1b[2J no message\n{}\n[]\n" + '{"jsonrpc": "2.0", "id": 999999, "result": {}}\n')
        self.send(id=number, result=result)
        if what == "twice":
            other = {"content": [{"type": "text", "text": "something else"}]}
            self.send(id=number, result=other)


def main():
    served = Served(sys.argv[1])
    with (served.folder / "starts").open("a") as file:
        file.write(f"{os.getpid()}\n")
    program = Program(served)
    for line in sys.stdin:
        program.takes(json.loads(line))
    time.sleep(0)
    os._exit(0)


if __name__ == "__main__":
    main()
