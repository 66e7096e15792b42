"""Plays servers that are slightly wrong, each in one way: `peer.py NAME [--era legacy|modern]` over standard streams,
`peer.py --http` all of them over HTTP on a free port that it names on stderr.

Over HTTP the server NAME of an era is at /NAME/ERA (Streamable HTTP, answers as JSON), /NAME/ERA/events (the same,
answers as event streams) and /NAME/ERA/sse (HTTP+SSE); GET /NAME/ERA/seen
gives what it has read so far, as a JSON array, and POST /NAME/ERA/do/THING has it do something, where it knows that.
"""

import sys

sys.dont_write_bytecode = True

import argparse
import importlib.util
import json
import os
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import base

for name in ("wire", "offers"):
    if importlib.util.find_spec(name):
        importlib.import_module(name)

base.ODDITIES.setdefault("plain", base.Peer)


def over_stdio(peer):
    heard = os.environ.get("DATELINE_TRAFFIC")
    heard = open("%s-%d-%d" % (heard, os.getppid(), os.getpid()), "a", encoding="utf-8") if heard else None
    out = sys.stdout.buffer

    def write(data):
        out.write(data)
        out.flush()

    for line in sys.stdin.buffer:
        text = line.decode().rstrip("\r\n")
        if heard:
            revision = base.MODERN if peer.modern else peer.revision
            print(json.dumps({"said": False, "revision": revision, "text": text}), file=heard, flush=True)
        peer.over_stdio(json.loads(text), write)


class Exchange(BaseHTTPRequestHandler):
    """One request over HTTP, and ways to answer it."""

    protocol_version = "HTTP/1.1"
    peers = {}
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def peer(self):
        """The server that is meant, and the path below its own."""
        name, era, *below = urlsplit(self.path).path.strip("/").split("/")
        with self.lock:
            if (name, era) not in self.peers:
                self.peers[name, era] = base.ODDITIES[name](era)
                self.peers[name, era].streams = []
            return self.peers[name, era], "/".join(below)

    # Ways to answer.

    def answer(self, status, body, kind="application/json", headers=None):
        """A whole answer."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def begin(self, kind="text/event-stream", headers=None):
        """The head of an answer that ends with its connection."""
        self.send_response(200)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True

    def write(self, data):
        self.wfile.write(data)
        self.wfile.flush()

    def hang_up(self):
        """Ends the connection without a word."""
        self.close_connection = True

    # What comes in.

    def do_GET(self):
        peer, below = self.peer()
        if below == "seen":
            return self.answer(200, json.dumps(peer.seen).encode())
        if below == "sse":
            return self.stream(peer)
        peer.get(self)

    def do_DELETE(self):
        peer, _ = self.peer()
        peer.delete(self)

    def do_POST(self):
        peer, below = self.peer()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if below.startswith("do/"):
            getattr(peer, "do_" + below[3:])()
            return self.answer(200, b"")
        self.below = below
        message = json.loads(body)
        if below.startswith("message/"):
            # HTTP+SSE: the answer comes on the stream.
            self.answer(202, b"", None)
            peer.over_stdio(message, peer.streams[int(below[8:])].put)
        else:
            peer.over_http(self, message)

    def stream(self, peer):
        said = queue.Queue()
        with peer.lock:
            peer.streams.append(said)
            at = len(peer.streams) - 1
        self.begin()
        self.write(b"event: endpoint\ndata: %s/message/%d\n\n" % (self.path[: -len("/sse")].encode(), at))
        while True:
            self.write(peer.event(said.get()))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        # Whoever asked is gone.
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="?", default="plain", choices=sorted(base.ODDITIES))
    parser.add_argument("--era", choices=base.ERAS, default="legacy")
    parser.add_argument("--http", action="store_true")
    args = parser.parse_args()
    if not args.http:
        return over_stdio(base.ODDITIES[args.name](args.era))
    server = Server(("127.0.0.1", 0), Exchange)
    print("http://127.0.0.1:%d" % server.server_address[1], file=sys.stderr, flush=True)
    # It ends with whoever started it.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
