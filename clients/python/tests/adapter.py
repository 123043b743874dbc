"""The client under the conformance suite: one operation for each line of its input. `--sync` tries `Client`."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Set

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parent.parent / "src"))

from platform_client import AsyncClient, Client, PlatformError  # noqa: E402

IS_SYNC = "--sync" in sys.argv
Args = Mapping[str, Any]


@dataclass
class Watch:
    """Ids of a watched query, None while they are not known."""

    ids: Any = None
    changes: Any = None
    work: List[Any] = field(default_factory=list)

    def take(self, change: Any) -> None:
        if change.type == "removed":
            self.ids.discard(change.record["id"])
        else:
            self.ids.add(change.record["id"])


@dataclass
class Open:
    client: Any
    watches: Dict[str, Watch] = field(default_factory=dict)
    #: Channels and rooms by name, entered.
    links: Dict[str, Any] = field(default_factory=dict)
    heard: Dict[str, List[Any]] = field(default_factory=dict)


opened: Dict[str, Open] = {}
tasks: Set[Any] = set()


async def run(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Calls a method of either client."""
    if IS_SYNC:
        return await asyncio.to_thread(call, *args, **named)
    return await call(*args, **named)


async def listed(query: Any) -> List[Any]:
    """Returns the records of all pages."""
    if IS_SYNC:
        return await asyncio.to_thread(list, query)
    return [record async for record in query]


def table_of(open_: Open, args: Args) -> Any:
    return open_.client.db(args.get("namespace", "shared"), args.get("instance")).table(args["table"])


def query_of(open_: Open, args: Args) -> Any:
    query, given = table_of(open_, args), args.get("query", {})
    if given.get("where"):
        query = query.where(given["where"])
    for condition in given.get("orWhere", []):
        query = query.or_where(*condition)
    for name, direction in given.get("sort", []):
        query = query.sort(name, direction)
    if "limit" in given:
        query = query.limit(given["limit"])
    return query.fields(*given.get("fields", [])).expand(*given.get("expand", []))


async def list_page(open_: Open, args: Args) -> Any:
    page = await run(query_of(open_, args).list, after=args.get("after"))
    return {"items": page.items, "total": page.total, "hasMore": page.has_more, "cursor": page.cursor}


async def search(open_: Open, args: Args) -> Any:
    return (await run(query_of(open_, args).search(args["text"]).list)).items


async def user(open_: Open, _: Args) -> Any:
    return open_.client.auth.user


async def download(open_: Open, args: Args) -> Any:
    return (await run(open_.client.storage(args["bucket"]).download, args["key"])).decode()


async def watch(open_: Open, args: Args) -> None:
    query, watched = query_of(open_, args), Watch()
    watched.changes = query.changes()
    open_.watches[args["name"]] = watched
    if IS_SYNC:

        def follow_in_thread() -> None:
            with watched.changes as changes:
                watched.ids = {record["id"] for record in query}
                for change in changes:
                    watched.take(change)

        threading.Thread(target=follow_in_thread, daemon=True).start()
        return

    async def follow() -> None:
        async with watched.changes as changes:
            watched.ids = {record["id"] async for record in query}
            async for change in changes:
                watched.take(change)

    watched.work.append(asyncio.create_task(follow()))


async def watched_ids(open_: Open, args: Args) -> Any:
    ids = open_.watches[args["name"]].ids
    return None if ids is None else sorted(ids)


async def unwatch(open_: Open, args: Args) -> None:
    changes = open_.watches[args["name"]].changes
    await run(changes.close if IS_SYNC else changes.aclose)


async def entered(open_: Open, name: str, link: Any) -> Any:
    """Enters the `with` block of a channel or a room once."""
    if name not in open_.links:
        await run(link.__enter__ if IS_SYNC else link.__aenter__)
        open_.links[name] = link
    return open_.links[name]


async def gather(link: Any, take: Callable[[Any], Any]) -> None:
    """Takes all events of a channel or a room, beside the operations."""
    if IS_SYNC:
        threading.Thread(target=lambda: [*map(take, link)], daemon=True).start()
        return

    async def follow() -> None:
        async for event in link:
            take(event)

    tasks.add(asyncio.create_task(follow()))


async def presence(open_: Open, args: Args) -> Any:
    return await entered(open_, "presence " + args["channel"], open_.client.presence(args["channel"]))


async def follow_presence(open_: Open, args: Args) -> None:
    await presence(open_, args)


async def present(open_: Open, args: Args) -> Any:
    return [{"userId": entry.user_id, "state": entry.state} for entry in (await presence(open_, args)).users]


async def track(open_: Open, args: Args) -> None:
    await run((await presence(open_, args)).track, args["state"])


async def untrack(open_: Open, args: Args) -> None:
    await run((await presence(open_, args)).untrack)


async def listen(open_: Open, args: Args) -> None:
    heard: List[Any] = open_.heard.setdefault(args["channel"], [])
    link = await entered(open_, "broadcast " + args["channel"], open_.client.broadcast(args["channel"]))
    await gather(link, lambda said: heard.append(said.data) if said.event == args["event"] else None)


async def say(open_: Open, args: Args) -> None:
    link = await entered(open_, "broadcast " + args["channel"], open_.client.broadcast(args["channel"]))
    await run(link.send, args["event"], args["data"])


async def heard_ones(open_: Open, args: Args) -> Any:
    return open_.heard[args["channel"]]


async def join(open_: Open, args: Args) -> None:
    said: List[Any] = open_.heard.setdefault(args["room"], [])
    room = await entered(open_, "room " + args["room"], open_.client.room("board", args["room"]))
    await gather(room, lambda event: said.append(event.data["text"]) if event.name == "said" else None)


async def act(open_: Open, args: Args) -> Any:
    return await run(open_.links["room " + args["room"]].act, args["type"], args["payload"])


async def room_of(open_: Open, args: Args) -> Any:
    return {"shared": open_.links["room " + args["room"]].shared, "said": open_.heard[args["room"]]}


OPERATIONS: Dict[str, Callable[[Open, Args], Awaitable[Any]]] = {
    "signUp": lambda o, a: run(o.client.auth.sign_up, a["email"], a["password"]),
    "signIn": lambda o, a: run(o.client.auth.sign_in, a["email"], a["password"]),
    "signOut": lambda o, a: run(o.client.auth.sign_out),
    "user": user,
    "get": lambda o, a: run(table_of(o, a).get, a["id"]),
    "insert": lambda o, a: run(table_of(o, a).insert, a["record"]),
    "update": lambda o, a: run(table_of(o, a).update, a["id"], a["changes"], if_=a.get("if")),
    "upsert": lambda o, a: run(table_of(o, a).upsert, a["record"], conflict_target=a["conflictTarget"]),
    "delete": lambda o, a: run(table_of(o, a).delete, a["id"], if_=a.get("if")),
    "list": list_page,
    "all": lambda o, a: listed(query_of(o, a)),
    "count": lambda o, a: run(query_of(o, a).count),
    "aggregate": lambda o, a: run(query_of(o, a).aggregate, select=a["select"], group_by=a.get("groupBy")),
    "search": search,
    "batch": lambda o, a: run(
        table_of(o, a).batch, inserts=a.get("inserts", ()), updates=a.get("updates", ()), deletes=a.get("deletes", ())
    ),
    "transaction": lambda o, a: run(o.client.db(a.get("namespace", "shared")).transaction, a["operations"]),
    "upload": lambda o, a: run(
        o.client.storage(a["bucket"]).upload, a["key"], a["text"], content_type=a["contentType"]
    ),
    "download": download,
    "watch": watch,
    "watched": watched_ids,
    "unwatch": unwatch,
    "follow": follow_presence,
    "present": present,
    "track": track,
    "untrack": untrack,
    "listen": listen,
    "say": say,
    "heard": heard_ones,
    "join": join,
    "act": act,
    "room": room_of,
}


async def perform(name: str, operation: str, args: Args) -> Any:
    if operation == "hello":
        return {"supports": ["files", "live", "presence", "broadcast", "rooms"]}
    if operation == "open":
        make: Any = Client if IS_SYNC else AsyncClient
        opened[name] = Open(make(args["url"], service_key=args.get("serviceKey")))
        return None
    if operation == "close":
        open_ = opened.pop(name)
        for one in open_.watches.values():
            await run(one.changes.close if IS_SYNC else one.changes.aclose)
        for link in open_.links.values():
            await run(link.close if IS_SYNC else link.aclose)
        await run(open_.client.close if IS_SYNC else open_.client.aclose)
        return None
    return await OPERATIONS[operation](opened[name], args)


async def answer(line: str) -> None:
    call = json.loads(line)
    try:
        outcome: Dict[str, Any] = {"result": await perform(call["client"], call["do"], call["with"])}
    except PlatformError as error:
        codes = {name: problem["code"] for name, problem in error.fields.items()}
        outcome = {"error": {"status": error.status, "message": error.message, "fields": codes}}
    except Exception as problem:
        outcome = {"error": {"status": -1, "message": repr(problem)}}
    print(json.dumps({"id": call["id"], **outcome}), flush=True)


async def main() -> None:
    loop = asyncio.get_running_loop()
    while True:
        line = await loop.run_in_executor(None, sys.stdin.readline)
        if not line:
            return
        task = asyncio.create_task(answer(line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


asyncio.run(main())
