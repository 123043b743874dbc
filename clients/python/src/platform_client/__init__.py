"""The Python client of Platform: `Client` and `AsyncClient`."""

from ._async._auth import AsyncAuth
from ._async._changes import AsyncChanges
from ._async._channels import AsyncBroadcast, AsyncPresence, AsyncRoom
from ._async._client import AsyncClient
from ._async._storage import AsyncBucket
from ._async._tables import AsyncDatabase, AsyncQuery, AsyncSearch, AsyncTable
from ._errors import FieldProblem, PlatformError
from ._filters import add, all_of, any_of, delete_field, field, increment, none, not_, remove, some
from ._sync._auth import Auth
from ._sync._changes import Changes
from ._sync._channels import Broadcast, Presence, Room
from ._sync._client import Client
from ._sync._storage import Bucket
from ._sync._tables import Database, Query, Search, Table
from ._types import (
    BatchResult,
    BroadcastEvent,
    Change,
    FileEntry,
    FilePage,
    Page,
    PresenceEntry,
    RoomEvent,
    User,
    WriteCounts,
)

__version__ = "0.2.0"

__all__ = [
    "AsyncAuth",
    "AsyncBroadcast",
    "AsyncBucket",
    "AsyncChanges",
    "AsyncClient",
    "AsyncDatabase",
    "AsyncPresence",
    "AsyncQuery",
    "AsyncRoom",
    "AsyncSearch",
    "AsyncTable",
    "Auth",
    "BatchResult",
    "Broadcast",
    "BroadcastEvent",
    "Bucket",
    "Change",
    "Changes",
    "Client",
    "Database",
    "FieldProblem",
    "FileEntry",
    "FilePage",
    "Page",
    "PlatformError",
    "Presence",
    "PresenceEntry",
    "Query",
    "Room",
    "RoomEvent",
    "Search",
    "Table",
    "User",
    "WriteCounts",
    "add",
    "all_of",
    "any_of",
    "delete_field",
    "field",
    "increment",
    "none",
    "not_",
    "remove",
    "some",
]
