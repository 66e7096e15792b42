"""A server on FastMCP, by `moths.py` over its standard streams and by `moths.py PORT` over Streamable HTTP at /mcp."""

import sys

from fastmcp import Context, FastMCP
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

mcp = FastMCP("moths")
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@mcp.tool
def weigh(left: float, right: float) -> float:
    """What two moths weigh."""
    return left + right


@mcp.tool
async def tally(moths: int, ctx: Context) -> str:
    """Counts moths, and says how far it is."""
    for moth in range(moths):
        await ctx.report_progress(moth + 1, moths)
    return f"{moths} moths"


@mcp.tool
async def adopt(ctx: Context) -> str | InputRequiredResult:
    """Asks whose moth it shall be."""
    if ctx.input_responses is None:
        question = ElicitRequest(params=ElicitRequestFormParams(message="Whose is it?", requested_schema=FORM))
        return InputRequiredResult(input_requests={"owner": question}, request_state="asked")
    return f"{ctx.input_responses['owner'].content['name']}'s"


@mcp.tool
def lose() -> str:
    """Fails."""
    raise ValueError("it flew away")


@mcp.resource("moths://all", mime_type="application/json")
def all_moths() -> dict:
    return {"moths": ["emperor"]}


@mcp.resource("docs://{path*}")
def docs(path: str) -> str:
    return f"What is at {path}"


@mcp.resource("moth://{name}/size{?unit}")
def size(name: str, unit: str = "mm") -> str:
    return f"{name}: 80 {unit}"


@mcp.prompt
def describe(name: str) -> str:
    return f"Describe the {name} moth."


if len(sys.argv) > 1 and sys.argv[1].isdigit():
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
else:
    mcp.run(show_banner=False)
