"""The client of the Python SDK 2.x, held to the revision without sessions: `client_modern.py URL`, driven by lines."""

import sys

import anyio
from client_lines import Questions, drive, methods, tell
from mcp import Client, types

REVISION = "2026-07-28"


async def main(url):
    questions = Questions()
    client = Client(
        url,
        mode=REVISION,
        client_info=types.Implementation(name="dateline-test", version="1.0.0"),
        **questions.callbacks(types),
    )
    async with client:
        # With a mode that is a revision it asks nothing, and believes itself; so the server is asked here.
        discovered = await client.session.send_discover(REVISION)
        tell(revision=client.protocol_version, discovered=discovered)
        await drive(methods(client), questions)


anyio.run(main, sys.argv[1])
