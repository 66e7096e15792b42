"""The client of the Python SDK 1.x, which speaks the revisions with a handshake: `client_legacy.py URL`, driven by lines."""

import sys

import anyio
from client_lines import Questions, drive, methods, tell
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client


async def main(url):
    questions = Questions()
    async with (
        streamable_http_client(url) as (read, write, _),
        ClientSession(
            read,
            write,
            client_info=types.Implementation(name="dateline-test", version="1.0.0"),
            **questions.callbacks(types),
        ) as client,
    ):
        initialized = await client.initialize()
        tell(revision=initialized.protocolVersion, server=initialized.serverInfo.name)
        await drive(methods(client, types.AnyUrl), questions)


anyio.run(main, sys.argv[1])
