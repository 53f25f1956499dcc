"""A job's weights from the coordinator's store: fetched in ranges that go on after a broken connection, read as arrays."""
from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Tuple, Union

from . import errors
from ._connection import Connection
from ._proto import job_pb2, store_pb2

if TYPE_CHECKING:
    import numpy

Files = Union["job_pb2.ExportWeightsResponse", "job_pb2.GetRecordFilesResponse"]

# A stream that lives longer is opened anew where it was. The server takes no longer deadline than ten minutes.
_STREAM_SECONDS = 300.0
_GIVE_UP_SECONDS = 60.0
_WEIGHTS_FILE = "model.safetensors"
# safetensors' names; NumPy has no bfloat16, which is read as float32.
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
           "BOOL": "?"}


def fetch_export(connection: Connection, exported: job_pb2.ExportWeightsResponse, folder: str) -> None:
    """The files of an export into a new folder, whole or not at all, with the weights compared with their digest."""
    if not exported.files:
        raise errors.StagecoachError(f"it is older and serves no files; copy {exported.folder} from its machine",
                                     address=connection.address, code="UNIMPLEMENTED")
    fetch_files(connection, exported, folder, lambda inner: check_weights(inner, exported.weights_digest))


def fetch_files(connection: Connection, exported: Files, folder: str, check: Callable[[str], None]) -> None:
    """The files into a new folder, whole or not at all; `check` may refuse them."""
    if os.path.exists(folder):
        raise errors.ConfigurationError(f"{folder}: is there already; name a new folder")
    parent = os.path.dirname(os.path.abspath(folder))
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".stagecoach-", dir=parent) as unfinished:
        inner = os.path.join(unfinished, "export")
        os.mkdir(inner)
        for file in exported.files:
            if os.path.basename(file.name) != file.name or file.name in ("", ".", ".."):
                raise errors.DataLoss(f"it names a file {file.name!r}", address=connection.address)
            with open(os.path.join(inner, file.name), "wb") as target:
                for part in _parts(connection, exported, file):
                    target.write(part)
        check(inner)
        os.rename(inner, folder)


def _parts(connection: Connection, exported: Files, file: job_pb2.ExportedFile) -> Iterator[bytes]:
    """The file's bytes, part by part, over broken connections."""
    offset, moved = 0, time.monotonic()
    while offset < file.bytes:
        request = store_pb2.ReadObjectRequest(name=f"{exported.store_folder}/{file.name}", grant=exported.grant, offset=offset,
                                              bytes=file.bytes - offset)
        try:
            for answer in connection.stream("StoreService/ReadObject", request, store_pb2.ReadObjectResponse, _STREAM_SECONDS):
                offset, moved = offset + len(answer.data), time.monotonic()
                yield answer.data
            if offset < file.bytes:
                raise errors.DataLoss(f"{file.name} ended at byte {offset} of {file.bytes}", address=connection.address)
        except (errors.Unavailable, errors.DeadlineExceeded):
            if time.monotonic() - moved > _GIVE_UP_SECONDS:
                raise
            connection.pause(1.0)


def check_weights(folder: str, digest: str) -> None:
    """Compares a fetched export with the weights' digest (docs/formats.md, "Weights digest")."""
    path = os.path.join(folder, _WEIGHTS_FILE)
    hashed = hashlib.sha256()
    for name, entry, data in _tensors(path):
        hashed.update(b"".join(text.encode() + b"\0" for text in (name, entry["dtype"], str(entry["shape"]))) + data)
    if f"sha256:{hashed.hexdigest()}" != digest:
        raise errors.DataLoss(f"{path}: its digest is sha256:{hashed.hexdigest()}, and not {digest}")


def read_weights(folder: str) -> Dict[str, "numpy.ndarray"]:
    """The tensors of a fetched export by name."""
    try:
        import numpy
    except ImportError:
        raise errors.ConfigurationError("weights are NumPy arrays: pip install numpy") from None
    return {name: _array(numpy, entry["dtype"], data).reshape(entry["shape"])
            for name, entry, data in _tensors(os.path.join(folder, _WEIGHTS_FILE))}


def _tensors(path: str) -> Iterator[Tuple[str, Dict[str, Any], bytes]]:
    """Name, entry of the header, and bytes of each tensor of a safetensors file, in the byte order of names."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        entries: Dict[str, Any] = json.loads(file.read(size))
        entries.pop("__metadata__", None)
        for name in sorted(entries, key=str.encode):
            begin, end = entries[name]["data_offsets"]
            file.seek(8 + size + begin)
            yield name, entries[name], file.read(end - begin)


def _array(numpy: Any, dtype: str, data: bytes) -> "numpy.ndarray":
    if dtype == "BF16":
        return (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return numpy.frombuffer(data, _DTYPES[dtype]).copy()
