"""The client of the releases of the Python SDK from 1.8 to 1.x, over each of their transports, driven by lines:

    client_old.py stdio COMMAND ARGS...
    client_old.py http URL
    client_old.py sse URL

Besides what client_lines.py tells of, it prints {"notification": {"method", "params"}} for each notification that the SDK hands
out, and {"problem": "..."} for whatever the SDK could make nothing of.
"""

import inspect
import itertools
import logging
import sys
from importlib.metadata import version

import anyio
from client_lines import Questions, drive, methods, plain, tell
from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client import streamable_http
from mcp.client.sse import sse_client


def streams(transport, target):
    if transport == "stdio":
        return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    if transport == "sse":
        return sse_client(target[0])
    # Newer releases warn of the older name.
    connect = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client
    return connect(target[0])


class Unasked:
    """What the server says unasked."""

    def __init__(self):
        self.progress = {}

    async def __call__(self, message):
        if isinstance(message, Exception):
            tell(problem=f"{type(message).__name__}: {message}")
        elif isinstance(message, types.ServerNotification):
            notification = plain(message.root)
            tell(notification=notification)
            params = notification.get("params") or {}
            if callback := self.progress.get(params.get("progressToken")):
                await callback(params["progress"], params.get("total"), params.get("message"))


class Calls:
    def __init__(self, client, unasked):
        self._client, self._unasked = client, unasked
        self._tokens = (f"progress {number}" for number in itertools.count(1))
        self._callbacks = "progress_callback" in inspect.signature(client.call_tool).parameters

    async def call(self, params, progress):
        name, arguments = params["name"], params["arguments"]
        if self._callbacks:
            return await self._client.call_tool(name, arguments, progress_callback=progress)
        # 1.8 has no callbacks for progress: "TODO: Support progress callbacks", says its send_request. It lets us send a token,
        # and hands out the notifications.
        token = next(self._tokens)
        self._unasked.progress[token] = progress
        sent = types.CallToolRequestParams(name=name, arguments=arguments, _meta=types.RequestParams.Meta(progressToken=token))
        request = types.ClientRequest(types.CallToolRequest(method="tools/call", params=sent))
        return await self._client.send_request(request, types.CallToolResult)

    async def cancel(self, params, _):
        """Begins a call and cancels it after its first progress. The result is the id of the request, as on the wire."""
        # No release of 1.x tells the server when a call is given up, so it is done here, with what the SDK has for it.
        number = self._client._request_id  # of the next request
        started = anyio.Event()

        async def progress(*_):
            started.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.call, params, progress)
            with anyio.fail_after(10):
                await started.wait()
            about = types.CancelledNotificationParams(requestId=number, reason="no longer wanted")
            notification = types.CancelledNotification(method="notifications/cancelled", params=about)
            await self._client.send_notification(types.ClientNotification(notification))
            tasks.cancel_scope.cancel()
        return {"id": number}


def reference(ref):
    if ref["type"] == "ref/prompt":
        return types.PromptReference(**ref)
    kind = getattr(types, "ResourceTemplateReference", None) or types.ResourceReference  # it got its name with 1.10
    return kind(**ref)


def more(client, unasked):
    calls, uri = Calls(client, unasked), types.AnyUrl
    return {
        "call": calls.call,
        "cancel": calls.cancel,
        "prompts": lambda params, _: client.list_prompts(),
        "complete": lambda params, _: client.complete(reference(params["ref"]), params["argument"]),
        "subscribe": lambda params, _: client.subscribe_resource(uri(params["uri"])),
        "unsubscribe": lambda params, _: client.unsubscribe_resource(uri(params["uri"])),
        "level": lambda params, _: client.set_logging_level(params["level"]),
        "ping": lambda params, _: client.send_ping(),
    }


async def main(transport, *target):
    questions, unasked = Questions(), Unasked()
    # Before 1.10 there is no elicitation.
    known = inspect.signature(ClientSession.__init__).parameters
    callbacks = {name: callback for name, callback in questions.callbacks(types).items() if name in known}
    info = types.Implementation(name="dateline-test", version="1.0.0")
    async with (
        streams(transport, list(target)) as (read, write, *_),
        ClientSession(read, write, client_info=info, message_handler=unasked, **callbacks) as client,
    ):
        initialized = await client.initialize()
        tell(
            release=version("mcp"),
            requested=types.LATEST_PROTOCOL_VERSION,
            revision=initialized.protocolVersion,
            server=plain(initialized.serverInfo),
            capabilities=plain(initialized.capabilities),
            instructions=initialized.instructions,
        )
        await drive(methods(client, types.AnyUrl) | more(client, unasked), questions)
        # While they close, the transports log what still comes (here what other clients cause) as an error, for nobody takes it.
        logging.disable()


try:
    anyio.run(main, *sys.argv[1:])
except Exception as error:
    while hasattr(error, "exceptions"):  # the transports wrap what happened in groups
        error = error.exceptions[0]
    sys.exit(f"{type(error).__name__}: {error}")
