"""Filters, and the operators of updates."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Sequence, Tuple, Union

Operator = Literal[
    "==",
    "!=",
    ">",
    ">=",
    "<",
    "<=",
    "contains",
    "icontains",
    "startsWith",
    "istartsWith",
    "in",
    "not in",
    "within",
    "inBox",
    "has",
    "hasAny",
    "hasAll",
]
#: `("year", ">=", 1999)`
Condition = Union[Tuple[str, Operator, Any], Sequence[Any]]
#: What `any_of` and the others make.
Group = Mapping[str, Any]
#: A list of conditions and groups, all of which must match, or one group.
Filter = Union[Group, Sequence[Union[Condition, Group]]]


def any_of(*filters: Filter) -> Group:
    """Matches where one of the filters does: `any_of([("genre", "==", "Comedy")], [("rating", ">", 8)])`."""
    return {"or": list(filters)}


def all_of(*filters: Filter) -> Group:
    """Matches where all of the filters do."""
    return {"and": list(filters)}


def not_(filter: Filter) -> Group:
    """Matches exactly the records that the filter does not match, those with nulls too."""
    return {"not": filter}


def some(table: str, where: Filter) -> Group:
    """Matches where a record of another table does: `some("reviews", [("filmId", "==", field("id"))])`."""
    return {"some": {"table": table, "where": where}}


def none(table: str, where: Filter) -> Group:
    """Matches where no record of another table does."""
    return {"none": {"table": table, "where": where}}


def field(name: str) -> Mapping[str, str]:
    """Stands for a field of the record, in the conditions of `some` and `none`."""
    return {"field": name}


def increment(value: float = 1) -> Mapping[str, Any]:
    """Adds to a number, atomically."""
    return {"$op": "increment", "value": value}


def delete_field() -> Mapping[str, Any]:
    """Clears a field."""
    return {"$op": "deleteField"}


def add(id: str) -> Mapping[str, Any]:
    """Adds an id to several references."""
    return {"$op": "add", "value": id}


def remove(id: str) -> Mapping[str, Any]:
    """Takes an id out of several references."""
    return {"$op": "remove", "value": id}
