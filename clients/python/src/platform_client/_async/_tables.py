"""Tables of a namespace: queries, records and transactions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import (
    Any,
    AsyncIterator,
    Dict,
    Generic,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
    cast,
    overload,
)

from .._errors import PlatformError
from .._filters import Filter, Operator
from .._query import MISSING, QueryState, filter_of, if_of, names_of, rows_of, sort_of
from .._types import AnyRecord, BatchResult, Page, R, WriteCounts
from .._wire import form_of, path_of, records_path
from ._changes import AsyncChanges
from ._transport import AsyncTransport

Names = Union[str, Sequence[str]]
Terms = Union[str, Sequence[Union[str, Tuple[str, str]]]]
#: Name, content and content type of a file.
FileContent = Tuple[str, bytes, str]


class AsyncQuery(Generic[R]):
    """Records of a table that match conditions. It never changes: each method makes another query."""

    def __init__(self, database: AsyncDatabase, table: str, state: QueryState) -> None:
        self._database = database
        self._transport = database._transport
        self._name = table
        self._state = state
        self._path = database._path("tables", table)

    @overload
    def where(self, field: Filter) -> AsyncQuery[R]: ...

    @overload
    def where(self, field: str, operator: Operator, value: Any) -> AsyncQuery[R]: ...

    def where(self, field: Union[str, Filter], operator: Any = MISSING, value: Any = MISSING) -> AsyncQuery[R]:
        """Keeps what matches a condition, or a filter such as `any_of(…)`. All of them must match."""
        return self._with(self._state.adding(where=filter_of(field, operator, value)))

    def or_where(self, field: str, operator: Operator, value: Any) -> AsyncQuery[R]:
        """Adds an alternative: one of these must match, besides all of `where`."""
        return self._with(self._state.adding(or_where=filter_of(field, operator, value)))

    def sort(self, field: str, direction: Literal["asc", "desc"] = "asc") -> AsyncQuery[R]:
        """Sorts by a field; a second one orders what is equal by the first."""
        return self._with(self._state.adding(sort=(f"{field}:{direction}",)))

    def near(self, field: str, lat: float, lng: float) -> AsyncQuery[R]:
        """Sorts by the distance from a point, nearest first; items have their `distance` in metres."""
        return self._with(replace(self._state, near=f"{field}:{lat}:{lng}"))

    def limit(self, count: int) -> AsyncQuery[R]:
        """Limits the records of a page: 100 by default, 1,000 at most."""
        return self._with(replace(self._state, limit=count))

    def fields(self, *names: str) -> AsyncQuery[R]:
        """Selects fields; the id always belongs to them."""
        return self._with(replace(self._state, fields=names))

    def expand(self, *paths: str) -> AsyncQuery[R]:
        """Adds related records as `record["expand"][path]`."""
        return self._with(self._state.adding(expand=paths))

    def _with(self, state: QueryState) -> AsyncQuery[R]:
        return AsyncQuery(self._database, self._name, state)

    async def list(
        self,
        *,
        after: Optional[str] = None,
        before: Optional[str] = None,
        offset: Optional[int] = None,
        total: Optional[bool] = None,
    ) -> Page[R]:
        """Returns one page; `after` is the cursor of the one before. `total=False` counts nothing."""
        more = {"after": after, "before": before, "offset": offset, "total": total}
        answer = await self._transport.request("GET", self._path, params={**self._state.params(), **more})
        return Page(answer["items"], answer["total"], bool(answer["hasMore"]), answer["cursor"])

    async def pages(self) -> AsyncIterator[Page[R]]:
        """Goes through all pages, one request each."""
        place: Dict[str, Any] = {}
        seen = 0
        while True:
            page = await self.list(**place, total=None if not place else False)
            yield page
            seen += len(page.items)
            if not page.has_more:
                return
            place = {"after": page.cursor} if page.cursor is not None else {"offset": seen}

    async def __aiter__(self) -> AsyncIterator[R]:
        """Goes through the records of all pages."""
        async for page in self.pages():
            for record in page.items:
                yield record

    async def first(self) -> Optional[R]:
        """Returns the first record, or None."""
        page = await self.limit(1).list(total=False)
        return page.items[0] if page.items else None

    async def page(self, number: int, *, per_page: int = 100) -> Page[R]:
        """Returns a page by its number, from 1."""
        return await self.limit(per_page).list(offset=(number - 1) * per_page)

    async def count(self) -> int:
        """Returns the number of records."""
        answer = await self._transport.request("GET", f"{self._path}/count", params=self._state.conditions())
        return int(answer["total"])

    async def aggregate(
        self,
        *,
        select: Names = "count()",
        group_by: Optional[Names] = None,
        sort: Optional[Terms] = None,
        limit: Optional[int] = None,
        timezone: Optional[str] = None,
    ) -> List[AnyRecord]:
        """Returns counts, sums and so on by group: `aggregate(select=["count()", "max(year)"], group_by=["genre"])`."""
        params = {
            **self._state.conditions(),
            "select": names_of(select),
            "groupBy": names_of(group_by),
            "sort": sort_of(sort),
            "limit": limit,
            "timezone": timezone,
        }
        groups: List[AnyRecord] = (await self._transport.request("GET", f"{self._path}/aggregate", params=params))[
            "groups"
        ]
        return groups

    def search(
        self, text: str, *, highlight_pre: Optional[str] = None, highlight_post: Optional[str] = None
    ) -> AsyncSearch[R]:
        """Searches the texts of the table: `await films.search("blade run").list()`."""
        return AsyncSearch(self, {"q": text, "highlightPre": highlight_pre, "highlightPost": highlight_post})

    async def update_all(self, changes: Mapping[str, Any]) -> WriteCounts:
        """Updates the first 500 records that match. Errors: 400 without a condition."""
        return await self._write_all({"action": "update", "data": dict(changes)})

    async def delete_all(self) -> WriteCounts:
        """Deletes the first 500 records that match. Errors: 400 without a condition."""
        return await self._write_all({"action": "delete"})

    async def _write_all(self, body: Dict[str, Any]) -> WriteCounts:
        self._state.require_conditions_only()
        given = {"filter": list(self._state.where), "orFilter": list(self._state.or_where)}
        body.update({name: conditions for name, conditions in given.items() if conditions})
        path = f"{self._path}/batch-by-filter"
        return cast(WriteCounts, await self._transport.request("POST", path, json=body, idempotent=True))

    def changes(self) -> AsyncChanges[R]:
        """Follows the changes of these records, through lost connections and restarts of the server.

        Iterate over it, in a `with` block where the subscription has to be in place before something else happens.
        """
        return AsyncChanges(self._transport, self._listed, self._one, self._database._channel(self._name), self._state)

    async def _listed(self, maximum: int) -> Optional[List[Mapping[str, Any]]]:
        """Returns all records of its conditions, None for more than the maximum."""
        query = self._with(QueryState(where=self._state.where, or_where=self._state.or_where, limit=1000))
        found: List[Mapping[str, Any]] = []
        async for page in query.pages():
            found.extend(page.items)
            if len(found) > maximum:
                return None
        return found

    async def _one(self, id: str) -> Optional[Mapping[str, Any]]:
        """Returns a record, None where there is none."""
        try:
            return cast(Mapping[str, Any], await self._transport.request("GET", self._path + path_of(id)))
        except PlatformError as error:
            if error.status != 404:
                raise
            return None

    async def to_dataframe(self) -> Any:
        """Returns a pandas DataFrame of the records of all pages."""
        return rows_of([record async for record in self])


class AsyncSearch(Generic[R]):
    """Search of a query; each record has `highlights`, the matching texts with marks by field."""

    def __init__(self, query: AsyncQuery[R], params: Mapping[str, Optional[str]]) -> None:
        self._query = query
        self._params = params

    async def list(self, *, offset: Optional[int] = None) -> Page[R]:
        """Returns a page, the best match first."""
        query = self._query
        params = {**query._state.params(), **self._params, "offset": offset}
        answer = await query._transport.request("GET", f"{query._path}/search", params=params)
        items = answer["items"]
        total = answer["total"]
        has_more = total is not None and (offset or 0) + len(items) < total
        return Page(items, total, bool(answer["hasMore"] or has_more), None)


class AsyncTable(AsyncQuery[R]):
    """Table: the query of all its records, and their writes."""

    async def get(self, id: str, *, fields: Optional[Names] = None, expand: Optional[Names] = None) -> R:
        """Returns a record. Errors: 404 where there is none, or the caller may not read it."""
        # A search without a text is refused, and "search" is no id either.
        if id == "search":
            raise PlatformError(404, f"There is no record {id!r}")
        params = {"fields": names_of(fields), "expand": names_of(expand)}
        record = await self._transport.request("GET", self._at(id), params=params)
        # "count" and "aggregate" are endpoints of the table.
        if not isinstance(record, dict) or record.get("id") != id:
            raise PlatformError(404, f"There is no record {id!r}")
        return cast(R, record)

    async def insert(self, record: Mapping[str, Any], *, files: Optional[Mapping[str, FileContent]] = None) -> R:
        """Inserts a record. `files` has those of its fields of type `file`."""
        return await self._write("POST", self._path, record, {}, files)

    async def update(
        self,
        id: str,
        changes: Mapping[str, Any],
        *,
        if_: Optional[Filter] = None,
        files: Optional[Mapping[str, FileContent]] = None,
    ) -> R:
        """Changes fields of a record; `increment` and `delete_field` are atomic. Errors: 412 where `if_` does not hold."""
        return await self._write("PATCH", self._at(id), changes, {"if": if_of(if_)}, files)

    async def upsert(self, record: Mapping[str, Any], *, conflict_target: str = "id") -> R:
        """Updates the record with the same id, or the same value of a unique field; inserts it if there is none."""
        target = None if conflict_target == "id" else conflict_target
        return await self._write("POST", self._path, record, {"upsert": True, "conflictTarget": target}, None)

    async def delete(self, id: str, *, if_: Optional[Filter] = None) -> None:
        """Deletes a record. Errors: 404; 412 where `if_` does not hold."""
        await self._transport.request("DELETE", self._at(id), params={"if": if_of(if_)})

    async def batch(
        self,
        *,
        inserts: Sequence[Mapping[str, Any]] = (),
        updates: Sequence[Mapping[str, Any]] = (),
        deletes: Sequence[str] = (),
        upsert: bool = False,
    ) -> BatchResult:
        """Does up to 500 writes, all or none. An update is `{"id": …, "data": {…}}`."""
        given = {"inserts": inserts, "updates": updates, "deletes": deletes}
        body = {name: [*operations] for name, operations in given.items() if operations}
        params = {"upsert": upsert or None}
        path = f"{self._path}/batch"
        return cast(BatchResult, await self._transport.request("POST", path, params=params, json=body, idempotent=True))

    def _at(self, id: str) -> str:
        return self._path + path_of(id)

    async def _write(
        self,
        method: str,
        path: str,
        record: Mapping[str, Any],
        params: Mapping[str, Any],
        files: Optional[Mapping[str, FileContent]],
    ) -> R:
        if not files:
            answer = await self._transport.request(method, path, params=params, json=record, idempotent=True)
            return cast(R, answer)
        parts: List[Tuple[str, Optional[str], str, bytes]] = [
            ("record", None, "application/json", json.dumps(dict(record)).encode())
        ]
        parts += [(field, name, content_type, content) for field, (name, content, content_type) in files.items()]
        content_type, body = form_of(parts)
        answer = await self._transport.request(
            method, path, params=params, body=body, content_type=content_type, idempotent=True
        )
        return cast(R, answer)


class AsyncDatabase:
    """Tables of a namespace, or of one instance of it."""

    def __init__(self, transport: AsyncTransport, namespace: str, instance: Optional[str]) -> None:
        self._transport = transport
        self._place = [namespace] if instance is None else [namespace, instance]
        self._instance = instance

    def _path(self, *more: str) -> str:
        return records_path(self._place[0], self._instance, *more)

    def _channel(self, table: str) -> str:
        return ":".join(["realtime", *self._place, table])

    @overload
    def table(self, name: str) -> AsyncTable[AnyRecord]: ...

    @overload
    def table(self, name: str, record: Type[R]) -> AsyncTable[R]: ...

    def table(self, name: str, record: Any = None) -> Any:
        """Returns a table; with a generated `TypedDict`, its records have that type."""
        return AsyncTable(self, name, QueryState())

    async def transaction(self, operations: Sequence[Mapping[str, Any]]) -> List[AnyRecord]:
        """Does up to 500 operations over all tables, in order, all or none: `{"table", "action", "id", "data", "if"}`."""
        body = {"operations": [dict(operation) for operation in operations]}
        answer = await self._transport.request("POST", self._path("transaction"), json=body, idempotent=True)
        results: List[AnyRecord] = answer["results"]
        return results
