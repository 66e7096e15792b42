"""A plain server of either era, of which every oddity is a subclass that does one thing in its own way.

What is said is decided here and by `offers.py`, how it is written and carried by `peer.py` and `wire.py`.
"""

import json
import threading

LATEST_LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ERAS = ["legacy", "modern"]

ODDITIES = {}


def odd(name):
    """Makes a class known under a name; `peer.py NAME` plays it."""

    def known(kind):
        assert name not in ODDITIES, name
        kind.oddity = name
        ODDITIES[name] = kind
        return kind

    return known


class Error(Exception):
    """An answer that is an error."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.error = {"code": code, "message": message, **more}


class Peer:
    """A server with the tools `echo`, which answers with its arguments as text, and `line`, which answers with the
    request as it was read."""

    oddity = "plain"
    revision = LATEST_LEGACY
    capabilities = {"tools": {}}

    def __init__(self, era):
        self.era = era
        self.modern = era == "modern"
        # Every message that was read, in order.
        self.seen = []
        self.sessions = set()
        self.lock = threading.RLock()

    # What is offered; `on_METHOD` gives the result of a request, or raises an Error.

    def tools(self):
        return [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "line")]

    def on_initialize(self, params, request):
        if self.modern:
            raise Error(-32601, "unknown method initialize")
        info = {"name": self.oddity, "version": "1"}
        return {"protocolVersion": self.revision, "capabilities": self.capabilities, "serverInfo": info}

    def on_server_discover(self, params, request):
        if not self.modern:
            raise Error(-32601, "unknown method server/discover")
        return {"supportedVersions": [MODERN], "capabilities": self.capabilities, **self.hints()}

    def on_ping(self, params, request):
        return {}

    def on_tools_list(self, params, request):
        return {"tools": self.tools(), **self.hints()}

    def on_tools_call(self, params, request):
        said = request if params["name"] == "line" else params.get("arguments")
        return {"content": [{"type": "text", "text": json.dumps(said, ensure_ascii=False)}]}

    def hints(self):
        return {"ttlMs": 0, "cacheScope": "private"} if self.modern else {}

    # Messages, as objects.

    def receive(self, message):
        """Takes a message; gives the response to it, or None."""
        with self.lock:
            self.seen.append(message)
        if "method" not in message or "id" not in message:
            return None
        return self.respond(message)

    def respond(self, request):
        """The response to a request."""
        handler = getattr(self, "on_" + request["method"].replace("/", "_").lower(), None)
        response = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            if handler is None:
                raise Error(-32601, "unknown method " + request["method"])
            result = handler(request.get("params") or {}, request)
            response["result"] = {"resultType": "complete", **result} if self.modern else result
        except Error as error:
            response["error"] = error.error
        return response

    # Messages, as bytes.

    def write(self, response, request):
        """The text of a response. Oddities of its form are in the answers to calls alone, unless they say otherwise,
        so that one finds out what the server is."""
        if request.get("method") == "tools/call":
            return self.write_call(response, request)
        return self.plain(response)

    def write_call(self, response, request):
        return self.plain(response)

    def plain(self, message):
        return json.dumps(message, ensure_ascii=False).encode()

    # Over standard streams.

    def over_stdio(self, request, write):
        """Writes what a message is answered with; `write` takes bytes."""
        response = self.receive(request)
        if response is not None:
            write(self.write(response, request) + b"\n")

    # Over HTTP: `exchange` has the path below the server's own, the headers, and ways to answer. See peer.py.

    opened = 0

    def open_session(self):
        """The id of a new session; None for a server that keeps none."""
        with self.lock:
            self.opened += 1
            session = "%s-%d" % (self.oddity, self.opened)
            self.sessions.add(session)
            return session

    def over_http(self, exchange, request):
        """Answers a POST."""
        headers = {}
        if not self.modern:
            if request.get("method") == "initialize":
                session = self.open_session()
                if session:
                    headers["Mcp-Session-Id"] = session
            elif self.opened and exchange.headers.get("Mcp-Session-Id") not in self.sessions:
                return self.refuse_session(exchange, request)
        response = self.receive(request)
        if response is None:
            return exchange.answer(202, b"", None)
        return self.answer_http(exchange, request, response, headers)

    def answer_http(self, exchange, request, response, headers):
        if exchange.below == "events":
            exchange.begin(headers=headers)
            return exchange.write(self.event(self.write(response, request)))
        exchange.answer(200, self.write(response, request), "application/json", headers)

    def event(self, text):
        """An event that carries this text, its lines as lines of data."""
        return b"".join(b"data: " + line + b"\n" for line in text.rstrip(b"\n").split(b"\n")) + b"\n"

    def refuse_session(self, exchange, request):
        exchange.answer(404, b"", None)

    def get(self, exchange):
        """Answers a GET at the server's own path."""
        exchange.answer(405, b"", None)

    def delete(self, exchange):
        exchange.answer(200, b"", None)
