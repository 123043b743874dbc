"""Shapes of what calls take and return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Generic, List, Literal, Mapping, Optional, TypedDict, TypeVar, Union

#: Record as the server has it: a dictionary, or a `TypedDict` of the generated types.
R = TypeVar("R", bound=Mapping[str, Any])
AnyRecord = Dict[str, Any]
Params = Mapping[str, Union[str, int, float, bool, None]]


class User(TypedDict):
    """Signed-in user."""

    id: str
    email: Optional[str]
    displayName: Optional[str]
    avatarUrl: Optional[str]
    role: str
    emailVerified: bool
    isAnonymous: bool
    createdAt: str
    metadata: Dict[str, Any]
    customClaims: Dict[str, Any]


@dataclass(frozen=True)
class Page(Generic[R]):
    """Page of a list. `total` is None if nothing was counted, `cursor` on the last page and for searches."""

    items: List[R]
    total: Optional[int]
    has_more: bool
    cursor: Optional[str]


@dataclass(frozen=True)
class Change(Generic[R]):
    """Change of a record, as seen through the conditions of the query.

    `removed` has a `record` with at least its `id`. `resync` has none: more changes were missed than can be told, so read the
    list again; only queries of more than 10,000 records have it.
    """

    type: Literal["added", "modified", "removed", "resync"]
    record: R


class BatchResult(TypedDict):
    """Records of a batch, in the order of its operations."""

    inserted: List[AnyRecord]
    updated: List[AnyRecord]
    deleted: List[AnyRecord]


class WriteCounts(TypedDict):
    """Number of records that a query write found, and of those that it changed."""

    processed: int
    succeeded: int


class FileEntry(TypedDict):
    """Stored file. `uploaded` is its time."""

    key: str
    size: int
    uploaded: str


@dataclass(frozen=True)
class FilePage:
    """Page of files, in byte order of the keys. It may be short before the last page, where a rule hides files."""

    items: List[FileEntry]
    has_more: bool
    cursor: Optional[str]


@dataclass(frozen=True)
class PresenceEntry:
    """Connection that is shown on a presence channel; a user may have several."""

    user_id: str
    connection_id: str
    state: Dict[str, Any]


@dataclass(frozen=True)
class BroadcastEvent:
    """Message of a broadcast channel."""

    event: str
    data: Any


@dataclass(frozen=True)
class RoomEvent:
    """Thing that happened in a room: `state` after a change of it, `message` with the `name` and `data` that the room has sent."""

    type: Literal["state", "message"]
    name: Optional[str]
    data: Any
