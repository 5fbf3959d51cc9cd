"""OpenAI's own client for a service in this process."""

import asyncio

import httpx2
import openai

from make import records

SIMULATOR = records.manifest().digest
MODEL = f"agentworld-{SIMULATOR[7:19]}"
LS = [{"role": "user", "content": "ls"}]


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def call(service, run, use, key="none"):
    """Calls a function with the client of a run, without retries; without a run, at the root."""

    async def request():
        http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(service.transport.app, raise_app_exceptions=False)
        )
        settings = {"api_key": key, "max_retries": 0, "http_client": http}
        base = f"http://simulator{f'/runs/{run}' if run else ''}/v1"
        async with openai.AsyncOpenAI(base_url=base, **settings) as client:
            return await use(client)

    return asyncio.run(request())


def chat(service, run, messages, key="none", **fields):
    """A completion."""
    fields = {"model": MODEL, "messages": messages, **fields}
    return call(service, run, lambda client: client.chat.completions.create(**fields), key)


def streamed(service, run, messages, **fields):
    async def read(client):
        stream = await client.chat.completions.create(
            model=MODEL, messages=messages, stream=True, **fields
        )
        return [chunk async for chunk in stream]

    return call(service, run, read)


def said(answer):
    return answer.choices[0].message.content


def named(episode, **metadata):
    return {"metadata": {"episode": episode, **metadata}}
