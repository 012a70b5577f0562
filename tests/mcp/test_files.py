"""An mcp.json, as other hosts write it: what is read of it, and what is refused."""

import json
from pathlib import Path

import pytest

from treadle import Misuse
from treadle.mcp import servers_in


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "mcp.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_the_forms_of_other_hosts_are_read(written, key):
    path = written(
        {
            key: {
                "files": {"command": "${PROGRAM}", "args": ["-y", "${env:FOLDER:-.}"], "alwaysAllow": ["read"]},
                "shop": {"type": "http", "url": "https://shop.example/mcp", "headers": {"Authorization": "${KEY}"}},
                "My Server!": {"type": "stdio", "command": "x", "treadle": {"trusted": True, "timeout": 5}},
                "12306-mcp": {"command": "x"},
                "off": {"command": "x", "disabled": True},
            },
            "inputs": [],
        }
    )
    servers = servers_in(path, env={"PROGRAM": "npx", "KEY": "Bearer sk-secret"})
    assert [server.name for server in servers] == ["files", "shop", "My_Server", "mcp_12306-mcp"]
    assert "secret" not in repr(servers)
    assert repr(servers[0]) == "MCPServer('files', 'npx')"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "no JSON"),
        ("[]", "has no servers"),
        ({"mcpServers": {"a": 1}}, 'a "command" or a "url"'),
        ({"mcpServers": {"a": {}}}, 'a "command" to start or a "url" to call, and not nothing alone'),
        ({"mcpServers": {"a": {"comand": "x", "args": []}}}, "and not 'comand', 'args' alone"),
        ({"mcpServers": {"a": {"type": "http"}}}, "and not a server of type 'http'"),
        ({"mcpServers": {"a": {"command": 1}}}, "texts"),
        ({"mcpServers": {"a": {"command": "x", "args": [1]}}}, '"args" is a list of texts'),
        ({"mcpServers": {"a": {"command": "x", "env": ["A=b"]}}}, '"env" is an object of texts'),
        ({"mcpServers": {"a": {"command": "${NOT_THERE}"}}}, "has no NOT_THERE"),
        ({"mcpServers": {"a": {"url": "file:///etc/passwd"}}}, "begins with http"),
        ({"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}, "not spoken here"),
        ({"mcpServers": {"a b": {"command": "x"}, "a!b": {"command": "x"}}}, "both called 'a_b'"),
        ({"mcpServers": {"ä": {"command": "x"}}}, "server's name"),
        ({"mcpServers": {"a": {"command": "x", "treadle": {"trust": True}}}}, "not trust"),
        ({"mcpServers": {"a": {"command": "x", "treadle": {"effects": {"t": "rad"}}}}}, "effect='rad'"),
    ],
)
def test_what_cannot_be_is_refused_and_the_place_named(written, content, told):
    with pytest.raises(Misuse) as caught:
        servers_in(written(content), env={})
    assert told in str(caught.value)
    assert "mcp.json" in str(caught.value) or "name" in told


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device that never ends")
def test_a_file_that_never_ends_is_not_read_for_ever():
    with pytest.raises(Misuse, match="/dev/zero cannot be read: it has more than 16,000,000 bytes"):
        servers_in("/dev/zero")
