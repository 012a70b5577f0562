"""MCP, both ways: servers whose tools an agent uses, and an agent or tools as a server for others.

Needs the extra `mcp` (`pip install 'treadle[mcp]'`); the official package is imported when a server is used, not
before. What servers say and give back is untrusted throughout. Neighbours: `client.py` is a server as an agent sees it,
`calling.py` a call of it and `link.py` the connection; `serve.py` is the other way.
"""

from treadle.mcp.asking import Question
from treadle.mcp.client import About, MCPServer
from treadle.mcp.files import servers_in
from treadle.mcp.serve import app_of, serve_stdio, server_of
from treadle.tools.server import ServerFailed

__all__ = ["About", "MCPServer", "Question", "ServerFailed", "app_of", "serve_stdio", "server_of", "servers_in"]
