"""Queries as values: what a list asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import PlatformError
from ._filters import Filter
from ._wire import json_of

#: Conditions of a subscription; more of them become one filter in a group.
CONDITIONS_MAX = 5
MISSING: Any = object()


@dataclass(frozen=True)
class QueryState:
    """Description of a query. It never changes: each method of a query makes another one."""

    where: Tuple[Any, ...] = ()
    or_where: Tuple[Any, ...] = ()
    sort: Tuple[str, ...] = ()
    near: Optional[str] = None
    limit: Optional[int] = None
    fields: Tuple[str, ...] = ()
    expand: Tuple[str, ...] = ()

    def adding(self, **more: Tuple[Any, ...]) -> QueryState:
        """Returns a query with further conditions, sorts or paths."""
        return replace(self, **{name: getattr(self, name) + added for name, added in more.items()})

    def conditions(self) -> Dict[str, Optional[str]]:
        """Returns the parameters of its conditions."""
        return {"filter": _text(self.where), "orFilter": _text(self.or_where)}

    def params(self) -> Dict[str, Any]:
        """Returns the parameters of its lists."""
        return {
            **self.conditions(),
            "sort": ",".join(self.sort) or None,
            "near": self.near,
            "limit": self.limit,
            "fields": ",".join(self.fields) or None,
            "expand": ",".join(self.expand) or None,
        }

    def subscription(self) -> Dict[str, Any]:
        """Returns the filters of its subscription."""
        given = {"filters": list(self.where), "orFilters": list(self.or_where)}
        filters = given["filters"]
        if len(filters) > CONDITIONS_MAX:
            given["filters"] = [{"and": [filters]}]
        return {name: conditions for name, conditions in given.items() if conditions}

    def require_conditions_only(self) -> None:
        """Refuses a write of a query whose other parts would not count."""
        if self.sort or self.near or self.limit is not None or self.fields or self.expand:
            raise PlatformError(400, "A query that writes has conditions only: no sort, limit, fields or expand")


def _text(conditions: Tuple[Any, ...]) -> Optional[str]:
    return json_of(conditions).decode() if conditions else None


def filter_of(field: Union[str, Filter], operator: Any, value: Any) -> Tuple[Any, ...]:
    """Returns the elements of `where(field, operator, value)` and of `where(filter)`."""
    if isinstance(field, str):
        if operator is MISSING or value is MISSING:
            raise TypeError("where takes a field, an operator and a value, or a filter")
        return ([field, operator, value],)
    return (field,) if isinstance(field, Mapping) else tuple(field)


def names_of(names: Union[None, str, Sequence[str]]) -> Optional[str]:
    """Returns comma-separated names, None for none."""
    if names is None or isinstance(names, str):
        return names or None
    return ",".join(names) or None


def sort_of(terms: Union[None, str, Sequence[Union[str, Tuple[str, str]]]]) -> Optional[str]:
    """Returns the parameter of `sort=["count()", ("year", "desc")]`."""
    if terms is None or isinstance(terms, str):
        return terms or None
    return ",".join(term if isinstance(term, str) else f"{term[0]}:{term[1]}" for term in terms) or None


def if_of(condition: Optional[Filter]) -> Optional[str]:
    """Returns the parameter of a condition of a write."""
    if condition is None:
        return None
    return json_of(condition).decode()


def rows_of(records: Sequence[Mapping[str, Any]]) -> Any:
    """Returns a DataFrame of records; `createdAt` and `updatedAt` are times. Errors: `ImportError` without pandas."""
    try:
        import pandas
    except ImportError as problem:
        raise ImportError("to_dataframe needs pandas: pip install 'platform-client[pandas]'") from problem
    rows: List[Dict[str, Any]] = [dict(record) for record in records]
    frame = pandas.DataFrame(rows)
    for name in ("createdAt", "updatedAt"):
        if name in frame:
            frame[name] = pandas.to_datetime(frame[name], utc=True)
    return frame
