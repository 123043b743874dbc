# Made by scripts/generate_sync.py of the module of the same name in _async.
"""Files in buckets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Mapping, Optional, Union, cast

from .._errors import PlatformError
from .._types import FileEntry, FilePage
from .._wire import PART_BYTES, PARTS_MAX, PARTS_MIN_BYTES, file_key_path, form_of, path_of
from ._transport import Transport

Content = Union[bytes, bytearray, str, Path, BinaryIO]


class Bucket:
    """Files of one bucket. Errors: `PlatformError`."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._path = "/api/storage" + path_of(name)

    def _at(self, key: str) -> str:
        return f"{self._path}/{file_key_path(key)}"

    def upload(
        self,
        key: str,
        content: Content,
        *,
        content_type: str = "application/octet-stream",
        metadata: Optional[Mapping[str, str]] = None,
    ) -> FileEntry:
        """Stores a file: bytes, a text, a `Path` or an open file. From 8 MiB on it is sent in parts of 4 MiB."""
        if isinstance(content, Path):
            with content.open("rb") as file:
                return self.upload(key, file, content_type=content_type, metadata=metadata)
        source = content.encode() if isinstance(content, str) else content
        if isinstance(source, (bytes, bytearray)):
            head, rest = bytes(source[:PARTS_MIN_BYTES]), source[PARTS_MIN_BYTES:]
            if not rest:
                return self._upload_whole(key, head, content_type, metadata)
            pieces = (bytes(source[at : at + PART_BYTES]) for at in range(0, len(source), PART_BYTES))
            return self._upload_parts(key, pieces, content_type, metadata)
        head = _read(source, PARTS_MIN_BYTES)
        if len(head) < PARTS_MIN_BYTES:
            return self._upload_whole(key, head, content_type, metadata)
        return self._upload_parts(key, _pieces(head, source), content_type, metadata)

    def _upload_whole(
        self, key: str, content: bytes, content_type: str, metadata: Optional[Mapping[str, str]]
    ) -> FileEntry:
        parts = [("key", None, "text/plain", key.encode())]
        if metadata is not None:
            parts.append(("metadata", None, "application/json", json.dumps(dict(metadata)).encode()))
        form_type, body = form_of([*parts, ("file", "file", content_type, content)])
        answer = self._transport.request(
            "POST", f"{self._path}/upload", body=body, content_type=form_type, idempotent=True
        )
        return cast(FileEntry, answer)

    def _upload_parts(
        self, key: str, pieces: Any, content_type: str, metadata: Optional[Mapping[str, str]]
    ) -> FileEntry:
        begin: Dict[str, Any] = {"key": key, "contentType": content_type}
        if metadata is not None:
            begin["metadata"] = dict(metadata)
        upload_id = (self._transport.request("POST", f"{self._path}/multipart/create", json=begin))["uploadId"]
        parts: List[Any] = []
        try:
            for number, piece in enumerate(pieces, 1):
                if number > PARTS_MAX:
                    raise PlatformError(413, f"A file has at most {PARTS_MAX} parts of {PART_BYTES} bytes")
                params = {"uploadId": upload_id, "key": key, "partNumber": number}
                parts.append(
                    self._transport.request(
                        "POST",
                        f"{self._path}/multipart/upload-part",
                        params=params,
                        body=piece,
                        content_type="application/octet-stream",
                        retried=True,
                    )
                )
            done = {"uploadId": upload_id, "key": key, "parts": parts}
            # It may be repeated: the server gives the same answer again.
            answer = self._transport.request("POST", f"{self._path}/multipart/complete", json=done, retried=True)
        except BaseException:
            self._abort(upload_id, key)
            raise
        return cast(FileEntry, answer)

    def _abort(self, upload_id: str, key: str) -> None:
        try:
            abort = {"uploadId": upload_id, "key": key}
            self._transport.request("POST", f"{self._path}/multipart/abort", json=abort)
        except PlatformError:
            # The server removes unfinished uploads after 24 hours.
            pass

    def download(self, key: str, *, thumb: Optional[str] = None) -> bytes:
        """Returns the bytes of a file, or of its thumbnail in a declared size. Errors: 404."""
        response = self._transport.response("GET", self._at(key), params={"thumb": thumb})
        return response.content

    def metadata(self, key: str) -> Dict[str, Any]:
        """Returns key, size, type and metadata of a file. Errors: 404."""
        answer: Dict[str, Any] = self._transport.request("GET", f"{self._at(key)}/metadata")
        return answer

    def list(self, *, prefix: str = "", limit: Optional[int] = None, cursor: Optional[str] = None) -> FilePage:
        """Returns the files that the caller may read; 100 by default, 1,000 at most."""
        params = {"prefix": prefix or None, "limit": limit, "cursor": cursor}
        answer = self._transport.request("GET", self._path, params=params)
        return FilePage(answer["objects"], answer["truncated"], answer["cursor"])

    def signed_url(self, key: str, *, expires_in: int = 3600) -> str:
        """Returns an address with which anyone can read the file, for so many seconds."""
        body = {"key": key, "expiresIn": expires_in}
        answer = self._transport.request("POST", f"{self._path}/signed-url", json=body)
        return str(answer["url"])

    def delete(self, key: str) -> None:
        """Deletes a file. Errors: 404."""
        self._transport.request("DELETE", self._at(key))


def _read(file: BinaryIO, size: int) -> bytes:
    """Reads so many bytes, fewer only at the end: unbuffered files may give less at a time."""
    content = b""
    while len(content) < size:
        more = file.read(size - len(content))
        if not more:
            break
        content += more
    return content


def _pieces(head: bytes, file: BinaryIO) -> Any:
    for at in range(0, len(head), PART_BYTES):
        yield head[at : at + PART_BYTES]
    while True:
        piece = _read(file, PART_BYTES)
        if not piece:
            return
        yield piece
