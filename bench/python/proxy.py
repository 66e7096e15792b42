"""A proxy on FastMCP, as its documentation shows it: python proxy.py PORT (URL | COMMAND ARGUMENTS…)."""

import sys

from fastmcp.server import create_proxy

port, target, *arguments = sys.argv[1:]
if not target.startswith("http"):
    target = {"mcpServers": {"echo": {"command": target, "args": arguments}}}

# It finds out what the server speaks: otherwise it would speak to it as its own client does.
proxy = create_proxy(target, name="proxy", mode="auto")
proxy.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="ERROR")
