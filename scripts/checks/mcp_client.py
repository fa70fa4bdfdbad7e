"""An official MCP client against `/mcp`. `checks/clients.py` starts it, in an environment with the packages of mcp_client.txt.

`tools` runs every tool and checks that each run is paid exactly once; `cancel` cancels calls that wait for a worker.
"""

import asyncio
import base64
import json
import os
import sys
import uuid
from contextlib import asynccontextmanager

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

FACTS = json.loads(os.environ["RETOUCH_CLIENT_FACTS"])
# The protocol of 2026, which has no sessions, and the one before.
MODES = ("auto", "legacy")


@asynccontextmanager
async def connected(mode, key=FACTS["key"]):
    async with httpx2.AsyncClient(headers={"X-Api-Key": key}, timeout=60) as http:
        transport = streamable_http_client(f"{FACTS['address']}/mcp", http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
            yield client


async def run(client, tool, **arguments):
    """Runs a tool, and waits on if the server asks for it. Returns the whole answer."""
    while True:
        answer = await client.call_tool(tool, arguments)
        assert not answer.is_error, answer
        if answer.structured_content["state"] == "done":
            return answer


async def credits(client):
    account = (await client.call_tool("account")).structured_content
    return account["available_credits"], account["held_credits"]


async def tools(mode):
    inline = {"base64": base64.b64encode(bytes.fromhex(FACTS["picture"])).decode()}
    # Another one for each mode: equal calls would share a run.
    key = str(uuid.uuid4())
    async with connected(mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == {"remove_background", "upscale", "magic_fix", "account"}, listed
        assert "5 credits" in listed["remove_background"].description
        before, held = await credits(client)
        assert held == 0

        cutout = await run(client, "remove_background", image=inline, idempotency_key=key)
        found = cutout.structured_content["result"]
        assert (found["width"], found["height"], found["credits"]) == (64, 48, 5), found
        text, seen = cutout.content
        assert seen.mime_type == "image/png" and found["id"] in text.text
        async with httpx2.AsyncClient() as http:
            file = (await http.get(found["url"])).raise_for_status().content
        assert file[:4] == b"\x89PNG" and file == base64.b64decode(seen.data)
        repeat = await run(client, "remove_background", image=inline, idempotency_key=key)
        assert repeat.structured_content == cutout.structured_content

        large = await run(client, "upscale", image={"id": found["id"]}, factor=2, idempotency_key=key)
        found = large.structured_content["result"]
        assert (found["width"], found["height"], found["credits"]) == (128, 96, 3), found

        reports = []

        async def report(progress, total, message):
            reports.append((progress, total, message))

        area = {"box": {"x": 40, "y": 30, "width": 12, "height": 8}}
        fix = {"image": {"url": found["url"]}, "prompt": "remove it", "area": area, "idempotency_key": key}
        fixed = await client.call_tool("magic_fix", fix, progress_callback=report)
        while fixed.structured_content["state"] == "running":
            fixed = await client.call_tool("magic_fix", fix, progress_callback=report)
        assert fixed.structured_content["result"]["credits"] == 8
        assert reports and all(total == 1 and message for _, total, message in reports), reports

        # Equal clicks are one run, even if the worker would select something else the second time.
        for area in ({"points": [{"x": 32, "y": 24}]}, {"subject": True}):
            clicks = {"image": inline, "prompt": "remove it", "area": area, "idempotency_key": key}
            first = await run(client, "magic_fix", **clicks)
            assert first.structured_content["result"]["credits"] == 8
            assert (await run(client, "magic_fix", **clicks)).structured_content == first.structured_content

        refused = await client.call_tool("remove_background", {"image": {"url": "https://example.com/a.png"}})
        assert refused.is_error and "(code: bad_request)" in refused.content[0].text, refused
        assert await credits(client) == (before - 5 - 3 - 3 * 8, 0)


async def cancel(mode):
    inline = {"base64": base64.b64encode(bytes.fromhex(FACTS["picture"])).decode()}
    async with connected(mode) as client, connected("auto") as other:
        before = sum(await credits(other))
        arguments = {"image": inline, "idempotency_key": str(uuid.uuid4())}
        call = asyncio.create_task(client.call_tool("remove_background", arguments))
        await until(lambda available, held: held == 5, other)
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled(), call
        await until(lambda available, held: (available, held) == (before, 0), other)


async def until(holds, client):
    for _ in range(100):
        if holds(*await credits(client)):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(await credits(client))


async def refused_without_a_key():
    try:
        async with connected("auto", "rt_wrong") as client:
            await client.list_tools()
    except BaseException as error:
        assert not isinstance(error, (KeyboardInterrupt, SystemExit)), error
        return
    raise AssertionError("A wrong key was accepted.")


async def main():
    if sys.argv[1] == "tools":
        await refused_without_a_key()
    for mode in MODES:
        await {"tools": tools, "cancel": cancel}[sys.argv[1]](mode)


asyncio.run(main())
