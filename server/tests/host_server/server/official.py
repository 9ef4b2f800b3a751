"""Talks to a server through the official client, and prints each answer as a line of JSON."""

import asyncio
import json
import sys

import mcp
from mcp.client.stdio import stdio_client


def say(what, answer):
    print(json.dumps({"what": what, "answer": answer.model_dump(mode="json", by_alias=True)}), flush=True)


async def use(session):
    say("tools", await session.list_tools())
    for command in ("mortmain-session", "mortmain-note from a command", "exit 3"):
        say(command, await session.call_tool("shell", {"command": command}))
    say("notes", await session.call_tool("notes", {"add": "from the client"}))
    say("claims", await session.call_tool("list_claims", {}))
    say("slow", await session.call_tool("shell", {"command": "echo $$; sleep 600", "timeout_ms": 500}))


async def main(server, root):
    parameters = mcp.StdioServerParameters(command=server, args=["--root", root])
    async with stdio_client(parameters) as (read, write):
        async with mcp.ClientSession(read, write) as session:
            say("initialize", await session.initialize())
            await use(session)
    # The later client has no handshake, where the server agrees.
    if hasattr(mcp, "Client"):
        async with mcp.Client(stdio_client(parameters)) as client:
            say("again", await client.call_tool("shell", {"command": "echo again"}))


asyncio.run(main(*sys.argv[1:]))
