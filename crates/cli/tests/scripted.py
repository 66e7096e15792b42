"""A scripted MCP server over standard streams, for tests of the gateway: it misbehaves as its flags say, and its tools
show exactly what arrived.

It keeps every line that it read. A tool, prompt or resource that is not special answers with the very line that asked
for it. Nothing here runs in threads, and the server ends with its input.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
# Escapes in it that need not be there show whether it comes back byte for byte.
STATE = r'"st\u00e9\/\u0041"'
NOT_LEGACY = ["subscriptions/listen"]
NOT_MODERN = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
TOOLS = (
    "line seen await_line hold release pid grow raw fail ask again wire_request log progress touch crash farewell"
).split()
RUBBISH = [
    b"a line of plain text",
    b"",
    b'{"half": ',
    b"[]",
    b'{"jsonrpc":"2.0","id":424242,"result":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{"a":1}}',
    b'{"jsonrpc":"1.0","id":424242,"result":{}}',
    b"\x1b[31mred\x1b[0m \xff\xfe not UTF-8",
]


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="scripted", help="whose resources these are")
    parser.add_argument("--era", choices=["legacy", "modern"], default="legacy")
    parser.add_argument("--revision", default=LEGACY[-1], help="what initialize is answered with")
    parser.add_argument("--tools", default=",".join(TOOLS), help="the tools that are listed, by name")
    parser.add_argument("--definition", action="append", default=[], help="JSON text of one more tool")
    parser.add_argument("--discover", help="how a legacy server answers server/discover: silent, text, or an error")
    parser.add_argument("--exit-at-start", action="store_true", help="end with a word on stderr")
    parser.add_argument("--exit-unless-initialize", action="store_true", help="end at any other first message")
    parser.add_argument("--mute", action="store_true", help="never answer anything")
    parser.add_argument("--banner", help="text before the first message")
    parser.add_argument("--bom", action="store_true", help="a byte order mark before everything")
    parser.add_argument("--crlf", action="store_true", help="Windows line ends")
    parser.add_argument("--rubbish", action="store_true", help="rubbish before every message")
    parser.add_argument("--flood", type=int, help="a line of so many bytes before the answer to a call")
    parser.add_argument("--slow", type=float, default=0, help="seconds before anything is read")
    parser.add_argument("--pages", help="cursors of the lists: a page of one entry each, and the last one after them")
    parser.add_argument("--untold", action="store_true", help="do not declare that lists may change")
    parser.add_argument("--unwatched", help="a resource that cannot be subscribed to, although that is declared")
    parser.add_argument("--stubborn", action="store_true", help="outlive the input and SIGTERM")
    parser.add_argument("--leash", type=int, help="a port that this process stays connected to until it is gone")
    parser.add_argument("--grandchild", action="store_true", help="start a process on the same leash")
    return parser.parse_args()


class Server:
    def __init__(self, args):
        self.args = args
        self.modern = args.era == "modern"
        self.out = sys.stdout.buffer
        self.wrote = False
        self.seen = []  # (method, line)
        self.waiting = []  # (call id, method, count)
        self.held = []  # call ids
        self.asked = {}  # id of a question: (call id, position)
        self.answers = {}  # call id: lines, in the order of the questions
        self.extra = []
        self.walked = []  # (list, cursor)
        self.subscribed = set()
        self.listens = {}  # id of a listen: its filter
        heard = os.environ.get("DATELINE_TRAFFIC")
        path = "%s-%d-%d" % (heard, os.getppid(), os.getpid())
        self.heard = open(path, "a", encoding="utf-8") if heard else None

    def note(self, text, said):
        """Writes down what was read or asked, for the referee."""
        if self.heard:
            revision = MODERN if self.modern else self.args.revision
            print(json.dumps({"said": said, "revision": revision, "text": text}), file=self.heard, flush=True)

    # What goes out.

    def write(self, text, end=None):
        args, begin = self.args, b""
        newline = b"\r\n" if args.crlf else b"\n"
        if not self.wrote:
            begin += b"\xef\xbb\xbf" if args.bom else b""
            begin += (args.banner.encode() + newline) if args.banner else b""
        if args.rubbish:
            begin += b"".join(line + newline for line in RUBBISH)
        self.wrote = True
        self.out.write(begin + text.encode() + (newline if end is None else end))
        self.out.flush()

    def send(self, **members):
        if "method" in members and "id" in members:
            self.note(json.dumps(members), True)
        self.write(json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=False))

    def result(self, id, result, **hints):
        if self.modern:
            result = {"resultType": "complete", **hints, **result}
        self.send(id=id, result=result)

    def text(self, id, text):
        self.result(id, {"content": [{"type": "text", "text": text}]})

    def error(self, id, code, message, **more):
        self.send(id=id, error={"code": code, "message": message, **more})

    def changed(self, method, wanted, **params):
        """Tells of a change: a legacy peer at once, a modern one on the listens that want it."""
        if not self.modern:
            self.send(method=method, params=params) if params else self.send(method=method)
        for id, asked in self.listens.items():
            if wanted(asked):
                self.send(method=method, params={"_meta": {META + "subscriptionId": id}, **params})

    # What comes in.

    def serve(self):
        first = True
        for line in sys.stdin.buffer:
            line = line.decode().rstrip("\r\n")
            self.note(line, False)
            message = json.loads(line)
            method = message.get("method")
            if first and self.args.exit_unless_initialize and method != "initialize":
                sys.exit("the first message must be initialize")
            first = False
            self.seen.append((method, line))
            if not self.args.mute:
                self.receive(method, message, line)
                self.serve_waiting()

    def receive(self, method, message, line):
        id, params = message.get("id"), message.get("params") or {}
        if method is None:
            self.response(id, line)
        elif id is None:
            if method == "notifications/cancelled" and params.get("requestId") in self.held:
                self.held.remove(params["requestId"])
            if method == "notifications/cancelled":
                self.listens.pop(params.get("requestId"), None)
        elif self.modern and META + "protocolVersion" not in params.get("_meta", {}):
            self.error(id, -32602, "the request's _meta names no revision")
        elif self.modern and META + "clientCapabilities" not in params.get("_meta", {}):
            self.error(id, -32602, "the request's _meta declares no capabilities")
        else:
            handler = getattr(self, "on_" + method.replace("/", "_").lower(), None)
            if handler is None or method in (NOT_MODERN if self.modern else NOT_LEGACY):
                self.error(id, -32601, "unknown method " + method)
            else:
                handler(id, params, line)

    def serve_waiting(self):
        for waiting in list(self.waiting):
            id, method, count = waiting
            lines = [line for seen, line in self.seen if seen == method]
            if len(lines) >= count:
                self.waiting.remove(waiting)
                self.text(id, "\n".join(lines))

    def response(self, id, line):
        if id in self.asked:
            call, at = self.asked.pop(id)
            self.answers[call][at] = line
            if all(self.answers[call]):
                self.text(call, "\n".join(self.answers.pop(call)))

    # Opening.

    def capabilities(self):
        change = {} if self.args.untold else {"listChanged": True}
        return {
            "tools": change,
            "prompts": change,
            "resources": {"subscribe": True, **change},
            "completions": {},
            "logging": {},
        }

    def on_server_discover(self, id, params, line):
        how = self.args.discover
        if self.modern:
            hints = {"ttlMs": 0, "cacheScope": "private"}
            self.result(id, {"supportedVersions": [MODERN], "capabilities": self.capabilities()}, **hints)
        elif how is None:
            self.error(id, -32601, "unknown method server/discover")
        elif how == "text":
            self.write("I do not know what server/discover is")
        elif how != "silent":
            self.send(id=id, error=json.loads(how))

    def on_initialize(self, id, params, line):
        info = {"name": self.args.name, "version": "1"}
        agreed = {"protocolVersion": self.args.revision, "capabilities": self.capabilities(), "serverInfo": info}
        self.result(id, agreed)

    def on_ping(self, id, params, line):
        self.result(id, {})

    def on_logging_setlevel(self, id, params, line):
        self.result(id, {})

    # Lists.

    def page(self, id, params, name, entries):
        """A list, as JSON texts. With --pages each page but the last holds one entry."""
        cursors = [] if self.args.pages is None else self.args.pages.split(",")
        given = params.get("cursor")
        at = 0 if given is None else 1 + cursors.index(given)
        self.walked.append((name, given))
        if given is not None and self.walked.count((name, given)) > 3:
            sys.exit("the same page is wanted again and again")
        if given is not None and cursors.count(given) > 1:
            at = 1  # A cursor that leads to itself.
        more = at < len(cursors)
        shown = entries[at : at + 1] if more else entries[at:]
        members = ['"%s":[%s]' % (name, ",".join(shown))]
        if more:
            members.append('"nextCursor":' + json.dumps(cursors[at]))
        if self.modern:
            members.append('"resultType":"complete","ttlMs":0,"cacheScope":"private"')
        self.write('{"jsonrpc":"2.0","id":%s,"result":{%s}}' % (json.dumps(id), ",".join(members)))

    def on_tools_list(self, id, params, line):
        names = [name for name in self.args.tools.split(",") if name]
        schema = {"type": "object"}
        tools = [json.dumps({"name": n, "description": "The tool " + n, "inputSchema": schema}) for n in names]
        grown = [json.dumps({"name": n, "inputSchema": schema}) for n in self.extra]
        self.page(id, params, "tools", tools + self.args.definition + grown)

    def on_prompts_list(self, id, params, line):
        self.page(id, params, "prompts", [json.dumps({"name": "line", "arguments": [{"name": "topic"}]})])

    def on_resources_list(self, id, params, line):
        uris = ["scripted://%s/%s" % (self.args.name, name) for name in ("a", "b")]
        self.page(id, params, "resources", [json.dumps({"uri": uri, "name": uri}) for uri in uris])

    def on_resources_templates_list(self, id, params, line):
        template = {"uriTemplate": "scripted://%s/by/{id}" % self.args.name, "name": "by id"}
        self.page(id, params, "resourceTemplates", [json.dumps(template)])

    # Features.

    def on_resources_read(self, id, params, line):
        uri = params["uri"]
        if uri.endswith("/missing"):
            code = -32602 if self.modern else -32002
            self.error(id, code, "there is no such resource here", data={"uri": uri})
        else:
            self.result(id, {"contents": [{"uri": uri, "text": line}]}, ttlMs=0, cacheScope="private")

    def on_prompts_get(self, id, params, line):
        self.result(id, {"messages": [{"role": "user", "content": {"type": "text", "text": line}}]})

    def on_completion_complete(self, id, params, line):
        self.result(id, {"completion": {"values": [line]}})

    def on_resources_subscribe(self, id, params, line):
        if params["uri"] == self.args.unwatched:
            return self.error(id, -32601, "this is not watched")
        self.subscribed.add(params["uri"])
        self.result(id, {})

    def on_resources_unsubscribe(self, id, params, line):
        self.subscribed.discard(params["uri"])
        self.result(id, {})

    def on_subscriptions_listen(self, id, params, line):
        self.listens[id] = params["notifications"]
        told = {"_meta": {META + "subscriptionId": id}, "notifications": params["notifications"]}
        self.send(method="notifications/subscriptions/acknowledged", params=told)

    def on_tools_call(self, id, params, line):
        self.out.write(b"x" * self.args.flood + b"\n" if self.args.flood else b"")
        tool = getattr(self, "tool_" + params["name"], None)
        if tool is None or params["name"] not in TOOLS:
            self.text(id, line)
        else:
            tool(id, params.get("arguments") or {}, params, line)

    # Tools that show what arrived.

    def tool_seen(self, id, arguments, params, line):
        """The lines of a method that were read so far."""
        self.text(id, "\n".join(line for method, line in self.seen if method == arguments["method"]))

    def tool_await_line(self, id, arguments, params, line):
        """The same, once there are as many as were asked for."""
        self.waiting.append((id, arguments["method"], arguments.get("count", 1)))

    def tool_pid(self, id, arguments, params, line):
        self.text(id, str(os.getpid()))

    # Tools that behave.

    def tool_hold(self, id, arguments, params, line):
        """Reports progress once, and answers when it is released."""
        self.held.append(id)
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            self.send(method="notifications/progress", params={"progressToken": token, "progress": 1})

    def tool_release(self, id, arguments, params, line):
        for held in self.held:
            self.text(held, "released")
        self.held = []
        self.text(id, "done")

    def tool_grow(self, id, arguments, params, line):
        self.extra.append(arguments["name"])
        self.changed("notifications/tools/list_changed", lambda asked: asked.get("toolsListChanged"))
        self.text(id, "grown")

    def tool_touch(self, id, arguments, params, line):
        """Tells of a change below a resource that is watched."""
        uri, below = arguments["uri"], arguments.get("below", "")
        if self.modern or uri in self.subscribed:
            watches = lambda asked: uri in asked.get("resourceSubscriptions", [])
            self.changed("notifications/resources/updated", watches, uri=uri + below)
        self.text(id, "touched")

    def tool_progress(self, id, arguments, params, line):
        """Reports progress with these members, JSON texts."""
        token = json.dumps(params["_meta"]["progressToken"])
        for members in arguments["reports"]:
            self.write(
                '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,%s}}' % (token, members)
            )
        self.text(id, "reported")

    def tool_log(self, id, arguments, params, line):
        """Logs with these params, a JSON text."""
        self.write('{"jsonrpc":"2.0","method":"notifications/message","params":%s}' % arguments["params"])
        self.text(id, "logged")

    def tool_ask(self, id, arguments, params, line):
        """Asks questions, all at once, and answers with the lines that answered them."""
        questions = arguments["questions"]
        if self.modern and "requestState" not in params and "inputResponses" not in params:
            asked = {"q%d" % at: question for at, question in enumerate(questions)}
            self.interim(id, '"inputRequests":%s,"requestState":%s' % (json.dumps(asked), STATE))
        elif self.modern:
            self.text(id, line)
        else:
            self.answers[id] = [None] * len(questions)
            for at, question in enumerate(questions):
                own = "ask-%s-%d" % (id, at)
                self.asked[own] = (id, at)
                self.send(id=own, **question)

    def tool_again(self, id, arguments, params, line):
        """Wants to be called so many times again, with a state and no question."""
        done = int(params.get("requestState", "0"))
        if done < arguments["rounds"]:
            self.interim(id, '"requestState":"%d"' % (done + 1))
        else:
            self.text(id, line)

    def interim(self, id, members):
        self.write('{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required",%s}}' % (id, members))

    def tool_wire_request(self, id, arguments, params, line):
        """Sends a request of its own, and does not wait for the response."""
        self.send(id="own", method="ping")
        self.text(id, "sent")

    def tool_raw(self, id, arguments, params, line):
        """Answers with this result, a JSON text."""
        self.write('{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(id), arguments["result"]))

    def tool_fail(self, id, arguments, params, line):
        """Answers with this error, a JSON text."""
        self.write('{"jsonrpc":"2.0","id":%s,"error":%s}' % (json.dumps(id), arguments["error"]))

    def tool_crash(self, id, arguments, params, line):
        print("something went terribly wrong", file=sys.stderr, flush=True)
        os._exit(7)

    def tool_farewell(self, id, arguments, params, line):
        """Answers without a line end, and ends."""
        result = {"resultType": "complete", "content": [{"type": "text", "text": "farewell"}]}
        if not self.modern:
            del result["resultType"]
        self.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), end=b"")
        os._exit(0)


def leash(port, name):
    """Stays connected while the process lives."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"%s %d\n" % (name.encode(), os.getpid()))
    return connection


def main():
    args = options()
    if args.exit_at_start:
        sys.exit("I will not work today")
    if args.name == "grandchild":
        held = leash(args.leash, "grandchild")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        held.recv(1)
        return
    if args.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    held = leash(args.leash, args.name) if args.leash else None
    if args.grandchild:
        command = [sys.executable, __file__, "--name", "grandchild", "--leash", str(args.leash)]
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    time.sleep(args.slow)
    Server(args).serve()
    if args.stubborn:
        held.recv(1)


main()
