"""requests or aiohttp over one session: URL or `sleep=MS`, one after the other. usage: LIBRARY LOG ITEM..."""
import asyncio, sys, time

library, log, *items = sys.argv[1:]


def pause(item, sleep):
    start = time.time_ns() // 1000
    sleep(int(item[6:]) / 1000)
    with open(log, "a") as f:
        f.write(f"sleep {start} {time.time_ns() // 1000}\n")


def with_requests():
    import requests, urllib3

    urllib3.disable_warnings()
    session = requests.Session()
    session.verify = False
    session.trust_env = False
    for item in items:
        if item.startswith("sleep="):
            pause(item, time.sleep)
        else:
            r = session.post(item[5:], data=b"y" * 700) if item.startswith("post:") else session.get(item)
            print(r.status_code, len(r.content))


async def with_aiohttp():
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        for item in items:
            if item.startswith("sleep="):
                pause(item, time.sleep)
                continue
            async with session.get(item) as r:
                print(r.status, len(await r.read()))


with_requests() if library == "requests" else asyncio.run(with_aiohttp())
