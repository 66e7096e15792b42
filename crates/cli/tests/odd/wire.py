"""Oddities of how messages are written, framed and carried."""

import json
import os
import signal
import sys
import time

from base import Error, Peer, odd


# What can be read without guessing.


@odd("latin1")
class Latin1(Peer):
    """Bytes that are no UTF-8."""

    def write_call(self, response, request):
        return self.plain(response).replace(b"}]", b"},{\"type\":\"text\",\"text\":\"caf\xe9\"}]")


@odd("control")
class Control(Peer):
    """Control characters in a string, line breaks among them."""

    def write_call(self, response, request):
        return self.plain(response).replace(b"}]", b"},{\"type\":\"text\",\"text\":\"a\x01\tb\n  c\"}]")


@odd("prefixed")
class Prefixed(Peer):
    """The answer behind other text on its line."""

    def write_call(self, response, request):
        return b"INFO {call} done: " + self.plain(response)


@odd("suffixed")
class Suffixed(Peer):
    """Other text behind the answer on its line."""

    def write_call(self, response, request):
        return self.plain(response) + b" } done"


@odd("pretty")
class Pretty(Peer):
    """A message over several lines."""

    def write(self, response, request):
        return json.dumps(response, indent=2).encode()


@odd("marked")
class Marked(Peer):
    """A byte order mark before each message."""

    def write(self, response, request):
        return b"\xef\xbb\xbf" + self.plain(response)


class Changed(Peer):
    """An answer whose members are not as they should be."""

    def write_call(self, response, request):
        self.change(response)
        return self.plain(response)


@odd("id-text")
class IdText(Changed):
    def change(self, response):
        response["id"] = str(response["id"])


@odd("id-float")
class IdFloat(Changed):
    def change(self, response):
        response["id"] = float(response["id"])


@odd("error-null")
class ErrorNull(Changed):
    def change(self, response):
        response["error"] = response["method"] = None


@odd("no-version")
class NoVersion(Changed):
    def change(self, response):
        del response["jsonrpc"]


@odd("version-number")
class VersionNumber(Changed):
    def change(self, response):
        response["jsonrpc"] = 2.0


# What cannot be read, or says two things.


@odd("nan")
class NaN(Changed):
    def change(self, response):
        response["result"]["structuredContent"] = {"a": float("nan"), "b": float("inf")}


@odd("deep")
class Deep(Peer):
    def write_call(self, response, request):
        nested = b'"isError":' + b"[" * 300 + b"]" * 300 + b","
        return self.plain(response).replace(b'"content"', nested + b'"content"')


@odd("twice")
class Twice(Peer):
    """A member that stands twice."""

    def write_call(self, response, request):
        return self.plain(response)[:-1] + b',"result":{"content":[]}}'


@odd("long")
class Long(Peer):
    """More than the limit of a message; the id comes last."""

    def write_call(self, response, request):
        text = b'{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"%s"}]},"id":%d}'
        return text % (b"x" * 17_000_000, response["id"])


@odd("both")
class Both(Changed):
    def change(self, response):
        response["error"] = {"code": 1, "message": "no"}


@odd("neither")
class Neither(Changed):
    def change(self, response):
        del response["result"]


@odd("result-null")
class ResultNull(Changed):
    def change(self, response):
        response["result"] = None


@odd("version-one")
class VersionOne(Changed):
    def change(self, response):
        response["jsonrpc"] = "1.0"


@odd("cut")
class Cut(Peer):
    """The second half never comes."""

    def write_call(self, response, request):
        return self.plain(response)[:-6]


# Errors in odd forms.


@odd("error-text")
class ErrorText(Changed):
    def change(self, response):
        del response["result"]
        response["error"] = "out of cheese"


@odd("error-no-code")
class ErrorNoCode(Changed):
    def change(self, response):
        del response["result"]
        response["error"] = {"message": "out of cheese", "data": None}


@odd("error-code-text")
class ErrorCodeText(Changed):
    def change(self, response):
        del response["result"]
        response["error"] = {"code": "-32602", "message": "out of cheese"}


@odd("error-no-message")
class ErrorNoMessage(Changed):
    def change(self, response):
        del response["result"]
        response["error"] = {"reason": "out of cheese"}


# How streams and bodies are framed.


class Framed(Peer):
    kind = "text/event-stream"

    def answer_http(self, exchange, request, response, headers):
        exchange.begin(self.kind, headers)
        exchange.write(self.stream(self.plain(response)))


@odd("events-cr")
class EventsCr(Framed):
    """Lines that end with CR, as the standard allows."""

    def stream(self, text):
        return b": hi\r\rid: 1\revent: message\rdata: " + text + b"\r\r"


@odd("events-crlf")
class EventsCrlf(Framed):
    """CRLF, a byte order mark, comments, and a message in several lines of data."""

    kind = "Text/Event-Stream; charset=UTF-8"

    def stream(self, text):
        at = text.index(b",") + 1
        return b"\xef\xbb\xbf:\r\n\r\ndata:" + text[:at] + b"\r\n: more\r\ndata: " + text[at:] + b"\r\n\r\n"


@odd("events-untyped")
class EventsUntyped(Peer):
    """An event stream that does not say that it is one."""

    def answer_http(self, exchange, request, response, headers):
        body = b"event: message\ndata: " + self.plain(response) + b"\n\n"
        exchange.answer(200, body, None, headers)


@odd("json-typed")
class JsonTyped(Peer):
    def answer_http(self, exchange, request, response, headers):
        body = b"\xef\xbb\xbf\r\n" + self.plain(response) + b"\r\n"
        exchange.answer(200, body, "Application/JSON; charset=ISO-8859-1", headers)


@odd("json-untyped")
class JsonUntyped(Peer):
    def answer_http(self, exchange, request, response, headers):
        exchange.answer(200, self.plain(response), None, headers)


@odd("no-id")
class NoId(Peer):
    """The answer to a POST, without the id that it need not have there."""

    def write_call(self, response, request):
        response["id"] = None
        return self.plain(response)


# Sessions that are forgotten: POST do/forget.


class Forgets(Peer):
    def do_forget(self):
        with self.lock:
            self.sessions.clear()


@odd("forgets-404")
class Forgets404(Forgets):
    pass


@odd("forgets-410")
class Forgets410(Forgets):
    def refuse_session(self, exchange, request):
        exchange.answer(410, b"Gone", "text/plain")


@odd("forgets-400")
class Forgets400(Forgets):
    """As the official server-everything does it."""

    def refuse_session(self, exchange, request):
        error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
        exchange.answer(400, json.dumps({"jsonrpc": "2.0", "error": error, "id": None}).encode())


@odd("forgets-error")
class ForgetsError(Forgets):
    """The status says that all is well."""

    def refuse_session(self, exchange, request):
        error = {"code": -32600, "message": "Session not found"}
        body = {"jsonrpc": "2.0", "error": error, "id": request.get("id")}
        exchange.answer(200, json.dumps(body).encode())


@odd("refuses-calls")
class RefusesCalls(Peer):
    """A plain 400 to each call, in a session that is fine."""

    def over_http(self, exchange, request):
        if request.get("method") == "tools/call":
            self.receive(request)
            return exchange.answer(400, b"bad call", "text/plain")
        super().over_http(exchange, request)


# Redirects.


class Moved(Peer):
    status = 307
    to = "there"

    def over_http(self, exchange, request):
        if exchange.below == self.to:
            return super().over_http(exchange, request)
        to = exchange.path.rstrip("/") + "/" + self.to
        exchange.answer(self.status, b"", None, {"Location": to})


@odd("moved-301")
class Moved301(Moved):
    status = 301


@odd("moved-302")
class Moved302(Moved):
    status = 302


@odd("moved-307")
class Moved307(Moved):
    pass


@odd("moved-308")
class Moved308(Moved):
    status = 308


@odd("see-other")
class SeeOther(Moved):
    status = 303


@odd("circle")
class Circle(Moved):
    def over_http(self, exchange, request):
        exchange.answer(307, b"", None, {"Location": exchange.path})


@odd("elsewhere")
class Elsewhere(Moved):
    def over_http(self, exchange, request):
        exchange.answer(307, b"", None, {"Location": "http://localhost:1/mcp?key=secret"})


# Connections.


@odd("silent-probe")
class SilentProbe(Peer):
    """Never answers what it does not know."""

    def over_http(self, exchange, request):
        if request.get("method") == "server/discover":
            time.sleep(3600)
        super().over_http(exchange, request)


@odd("closes")
class Closes(Peer):
    """Ends each connection after an answer without saying so; who sends more on it finds that out then."""

    def over_http(self, exchange, request):
        if getattr(exchange, "served", False):
            return exchange.hang_up()
        exchange.served = True
        super().over_http(exchange, request)


@odd("swallows")
class Swallows(Peer):
    """Takes calls and ends the connection; only the second time it answers."""

    def tools(self):
        read = {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        return super().tools() + [read]

    taken = 0

    def over_http(self, exchange, request):
        if request.get("method") == "tools/call":
            self.taken += 1
            if self.taken % 2:
                self.receive(request)
                return exchange.hang_up()
        super().over_http(exchange, request)


@odd("ignores-delete")
class IgnoresDelete(Peer):
    def delete(self, exchange):
        time.sleep(3600)


@odd("silent-listen")
class SilentListen(Peer):
    """Never answers a listen."""

    capabilities = {"tools": {"listChanged": True}}

    def over_http(self, exchange, request):
        if request.get("method") == "subscriptions/listen":
            time.sleep(3600)
        super().over_http(exchange, request)


@odd("web-page")
class WebPage(Peer):
    """No server of the protocol at all."""

    def over_http(self, exchange, request):
        exchange.answer(200, b"<html>\x1b[31m\xc2\x9bhello", "text/html; charset=utf-8")


# Over standard streams.


@odd("floods")
class Floods(Peer):
    """Asks on and on when it is called, and reads nothing."""

    def over_stdio(self, request, write):
        if request.get("method") == "tools/call":
            at = 0
            while True:
                write(b'{"jsonrpc":"2.0","id":"%s-%d","method":"ping"}\n' % (b"p" * 1000, at))
                at += 1
        super().over_stdio(request, write)


@odd("pings")
class Pings(Peer):
    """Asks some thousand times before it reads on."""

    def over_stdio(self, request, write):
        if request.get("method") == "tools/call":
            write(b"".join(b'{"jsonrpc":"2.0","id":"p%d","method":"ping"}\n' % at for at in range(5000)))
        super().over_stdio(request, write)


@odd("exits")
class Exits(Peer):
    def on_tools_call(self, params, request):
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(3)


@odd("killed")
class Killed(Peer):
    def on_tools_call(self, params, request):
        print("out of cheese", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)


@odd("no-handshake")
class NoHandshake(Peer):
    """Refuses to be opened by an error in an odd form, and goes on running."""

    def respond(self, request):
        print("bad cheese", file=sys.stderr, flush=True)
        return {"jsonrpc": "2.0", "id": None, "error": "out of cheese"}
