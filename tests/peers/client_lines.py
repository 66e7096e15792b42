"""What the Python clients of both generations have in common: they are driven by lines of JSON on stdin and stdout.

    {"id": 1, "method": "call", "params": {...}}    a request, answered by {"id": 1, "result": ...}
                                                    or by {"id": 1, "error": {"code", "message"}}
    {"progress": 1, "params": {...}}                progress of that call
    {"ask": 1, "method": "...", "params": {...}}    a question of the server, to be answered by {"ask": 1, "result": ...}

The first line that is printed is {"revision": ...}. It ends with its input.
"""

import itertools
import json
import sys

import anyio


def plain(model):
    """As it stands on the wire, so far as the SDK keeps it."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(model, "model_dump") else model


def tell(**line):
    print(json.dumps(line), flush=True)


class Questions:
    """Questions of the server, put to whoever drives this."""

    def __init__(self):
        self._ids = itertools.count(1)
        self._waiting = {}

    async def ask(self, method, params):
        number = next(self._ids)
        answered = self._waiting[number] = anyio.Event()
        tell(ask=number, method=method, params=plain(params) if params is not None else {})
        await answered.wait()
        return self._waiting.pop(number)

    def answer(self, line):
        answered, self._waiting[line["ask"]] = self._waiting[line["ask"]], line["result"]
        answered.set()

    def callbacks(self, types):
        """As keyword arguments of either client."""
        async def elicit(context, params):
            return types.ElicitResult(**await self.ask("elicitation/create", params))

        async def sample(context, params):
            return types.CreateMessageResult(**await self.ask("sampling/createMessage", params))

        async def roots(context):
            return types.ListRootsResult(**await self.ask("roots/list", None))

        return {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}


def methods(client, uri=str):
    """What both clients can do in the same words: functions of the params and a callback for progress."""
    return {
        "tools": lambda params, _: client.list_tools(),
        "call": lambda params, progress: client.call_tool(params["name"], params["arguments"], progress_callback=progress),
        "prompt": lambda params, _: client.get_prompt(params["name"], params["arguments"]),
        "resources": lambda params, _: client.list_resources(),
        "templates": lambda params, _: client.list_resource_templates(),
        "read": lambda params, _: client.read_resource(uri(params["uri"])),
    }


async def drive(methods, questions):
    """Does what the lines say, until they end."""

    async def run(line):
        async def progress(progress, total=None, message=None):
            tell(progress=line["id"], params={"progress": progress, "total": total, "message": message})

        try:
            tell(id=line["id"], result=plain(await methods[line["method"]](line.get("params", {}), progress)))
        except Exception as error:  # whatever it is, it is the answer
            code = getattr(getattr(error, "error", None), "code", None)
            tell(id=line["id"], error={"code": code, "message": f"{type(error).__name__}: {error}"})

    async with anyio.create_task_group() as tasks:
        async for text in anyio.wrap_file(sys.stdin):
            line = json.loads(text)
            if "ask" in line:
                questions.answer(line)
            else:
                tasks.start_soon(run, line)
        tasks.cancel_scope.cancel()
