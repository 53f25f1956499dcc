"""Brings a job's files to the cluster, as far as it lacks them. What an upload that was cut has brought stays there."""
from __future__ import annotations

import time
from typing import Callable, Iterator, List, Optional, Tuple

from google.protobuf.message import Message

from . import errors
from ._connection import Connection
from ._data_set import DataSet, files_of_job, make_data_set, put_places, read_part
from ._direct import DirectStore
from ._proto import data_sets_pb2, model_pb2, store_pb2

_PREPARED_PARTS = 4096
_MESSAGE_BYTES = 512 << 10
_CALL_BYTES = 4 << 20
_CALL_SECONDS = 120.0
_GIVE_UP_SECONDS = 60.0
_RETRY_SECONDS = 0.5
_MOST_TURNS = 20
_MOST_DIRECT_TURNS = 3  # each sends a body of up to 64 MiB for nothing

Pieces = Callable[[int], Iterator[bytes]]


def upload_data_of(connection: Connection, spec: model_pb2.JobSpec) -> None:
    """Uploads what the job names of this machine, and puts its places in the cluster into the spec."""
    files, places = files_of_job(spec)
    if files:
        put_places(spec, places, upload(connection, make_data_set(files)))


def upload(connection: Connection, data: DataSet) -> str:
    """The id of the set."""
    sources: List[Tuple[str, int, Pieces]] = [
        (part.sha256, part.bytes, lambda offset, part=part: read_part(part, offset, _MESSAGE_BYTES)) for part in data.parts]
    sources.append((data.sha256, len(data.manifest), lambda offset: _cut(data.manifest[offset:])))
    direct = DirectStore(connection)
    for first in range(0, len(sources), _PREPARED_PARTS):
        some = sources[first:first + _PREPARED_PARTS]
        request = data_sets_pb2.PrepareUploadRequest(
            parts=[data_sets_pb2.DataPart(sha256=digest, bytes=size) for digest, size, _ in some])
        answer = connection.call("DataService/PrepareUpload", request, data_sets_pb2.PrepareUploadResponse, _CALL_SECONDS)
        for index in answer.missing:
            digest, size, pieces = some[index]
            _Object(connection, direct, answer.folder, digest, answer.grant, size).bring(pieces)
    put = data_sets_pb2.PutDataSetRequest(manifest_sha256=data.sha256)
    return connection.call("DataService/PutDataSet", put, data_sets_pb2.PutDataSetResponse, _CALL_SECONDS).data_set.id


def _cut(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _MESSAGE_BYTES):
        yield data[at:at + _MESSAGE_BYTES]


class _Object:
    """A part on its way into the store."""

    def __init__(self, connection: Connection, direct: DirectStore, folder: str, digest: str, grant: str, size: int) -> None:
        self._connection = connection
        self._direct = direct
        self._digest = digest
        self._name = f"{folder}/{digest}"
        self._grant = grant
        self._size = size
        self._sent = 0
        self._moved = 0.0  # when the last bytes went

    def bring(self, pieces: Pieces) -> None:
        """Grants end, and with the coordinator's process too: then it asks for another, once for each byte that came."""
        renewed_at: Optional[int] = None
        while True:
            try:
                return self._bring(pieces)
            except errors.PermissionDenied:
                if self._sent == renewed_at:
                    raise
                renewed_at = self._sent
                request = data_sets_pb2.PrepareUploadRequest(
                    parts=[data_sets_pb2.DataPart(sha256=self._digest, bytes=self._size)])
                self._grant = self._connection.call("DataService/PrepareUpload", request,
                                                    data_sets_pb2.PrepareUploadResponse, _CALL_SECONDS).grant

    def _bring(self, pieces: Pieces) -> None:
        self._moved = time.monotonic()
        most, from_start, turns = -1, False, 0
        refused: Optional[errors.StagecoachError] = None  # why the coordinator took the last bytes away
        while True:
            is_relayed = False
            try:
                found = self._find()
                if found.complete:
                    return
                if refused is not None and (turns > _MOST_TURNS or (from_start and found == store_pb2.FindObjectResponse())):
                    raise errors.FailedPrecondition(f"a file was changed while it was uploaded; try again ({refused.message})",
                                                    code="FAILED_PRECONDITION")
                refused = None
                committed = found.committed_size
                if committed > most:
                    self._moved, most = time.monotonic(), committed
                from_start = from_start or committed == 0
                if self._direct.bring(self._name, self._grant, self._size, found, pieces(0), self._count):
                    return
                is_relayed = True
                return self._write(pieces, committed)
            except (errors.InvalidArgument, errors.DataLoss) as error:
                # Bytes that another upload brought may have been those of a changed file: they are gone now. A bucket says
                # so too if another client replaced or completed parts, and it compares no digest: that was done before.
                turns, most = turns + 1, -1
                if is_relayed:
                    refused = error
                elif turns > _MOST_DIRECT_TURNS or isinstance(error, errors.InvalidArgument):
                    raise
            except errors.StagecoachError as error:
                passing = error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "CANCELLED")
                if not passing or time.monotonic() - self._moved > _GIVE_UP_SECONDS:
                    raise
                self._connection.pause(_RETRY_SECONDS)

    def _count(self, sent: int) -> None:
        self._sent += sent
        self._moved = time.monotonic()

    def _find(self) -> store_pb2.FindObjectResponse:
        request = store_pb2.FindObjectRequest(name=self._name, grant=self._grant)
        try:
            found = self._connection.call("StoreService/FindObject", request, store_pb2.FindObjectResponse, _CALL_SECONDS)
            found.ClearField("checksum")
            return found
        except errors.NotFound:
            return store_pb2.FindObjectResponse()

    def _write(self, pieces: Pieces, at: int) -> None:
        """Some calls, each of some messages: all bytes from a place on."""
        messages: List[Message] = []
        waiting = 0
        source: Iterator[bytes] = pieces(at) if at < self._size else iter((b"",))
        for data in source:
            message = store_pb2.WriteObjectRequest(write_offset=at, finish_write=at + len(data) == self._size)
            if not messages:
                message.name, message.grant = self._name, self._grant
            message.data = data  # its checksum is that of the part: its name
            at += len(data)
            messages.append(message)
            waiting += len(data)
            if waiting >= _CALL_BYTES or at == self._size:
                self._connection.send("StoreService/WriteObject", messages, store_pb2.WriteObjectResponse, _CALL_SECONDS)
                self._count(waiting)
                messages, waiting = [], 0
