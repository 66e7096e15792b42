"""Oddities of how messages are written, framed and carried."""

import json

from base import Peer, odd


@odd("latin1")
class Latin1(Peer):
    """Text in another encoding."""

    def write_call(self, response, request):
        return json.dumps(response, ensure_ascii=False).encode("latin-1")
