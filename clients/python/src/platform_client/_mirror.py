"""Memory of what a subscription has shown, so that changes that were missed are found by comparing lists."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional

from ._types import Change
from ._wire import json_of

#: Records that are compared after changes were missed.
KNOWN_MAX = 10_000
AnyChange = Change[Dict[str, Any]]


class Mirror:
    """Ids of the records of a query, each with a hash. `seq` is the number of the last change, for the next subscription."""

    def __init__(self) -> None:
        self.seq: Optional[int] = None
        self._known: Optional[Dict[str, int]] = None
        self._is_too_large = False
        self._may_repeat = False

    @property
    def is_loaded(self) -> bool:
        """Whether it has been compared with a list."""
        return self._known is not None or self._is_too_large

    def load(self, records: Optional[Iterable[Mapping[str, Any]]]) -> List[AnyChange]:
        """Takes the list as it is now, None if it is too long, and returns what has changed since the one before."""
        was_loaded, known = self.is_loaded, self._known
        self._may_repeat = was_loaded
        if records is None:
            self._known, self._is_too_large = None, True
            return [Change("resync", {})] if was_loaded else []
        listed = {str(record["id"]): dict(record) for record in records}
        self._known = {id: _hash(record) for id, record in listed.items()}
        self._is_too_large = False
        if not was_loaded:
            return []
        if known is None:
            return [Change("resync", {})]
        gone = [Change("removed", {"id": id}) for id in known if id not in listed]
        new = [
            Change("modified" if id in known else "added", record)
            for id, record in listed.items()
            if known.get(id) != self._known[id]
        ]
        return gone + new

    def take(self, type: Any, id: str, record: Optional[Mapping[str, Any]]) -> List[AnyChange]:
        """Takes a change of the server, and returns it; nothing where the list has shown it already."""
        if record is None:
            was_known = self._known is None or self._known.pop(id, None) is not None
            return [Change("removed", {"id": id})] if was_known or not self._may_repeat else []
        if self._known is None:
            return [Change(type, dict(record))]
        before, now = self._known.get(id), _hash(record)
        self._known[id] = now
        if len(self._known) > KNOWN_MAX:
            self._known, self._is_too_large = None, True
        if not self._may_repeat:
            return [Change(type, dict(record))]
        if before == now:
            return []
        return [Change("added" if before is None else "modified", dict(record))]


def _hash(record: Mapping[str, Any]) -> int:
    return hash(json_of(dict(sorted(record.items()))))
