"""The files of this machine that a job names, as a data set: the same paths, parts and manifest as `stagecoach submit` makes
(services/cli/data/), so that each finds what the other has brought."""
from __future__ import annotations

import dataclasses
import hashlib
import os
import stat
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple

from ._job_file import DATA_PATHS, IN_CLUSTER, change_paths, is_misspelt
from ._proto import data_sets_pb2, model_pb2
from .errors import FailedPrecondition, InvalidJob

STORED = "store:/data/"
_OWN_PART_BYTES = 1 << 20
_MOST_PACK_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class LocalFile:
    path: str  # in the set
    here: str
    stamp: Tuple[int, int, int]  # bytes, time of the last change, inode

    @property
    def bytes(self) -> int:
        return self.stamp[0]


@dataclasses.dataclass
class Part:
    files: List[LocalFile]  # behind each other
    bytes: int = 0
    sha256: str = ""


@dataclasses.dataclass
class DataSet:
    parts: List[Part]
    manifest: bytes
    sha256: str  # of the manifest


def data_is_clients(spec: model_pb2.JobSpec) -> bool:
    return not spec.data.dataset and not spec.data.on_stages


def weights_are_clients(spec: model_pb2.JobSpec) -> bool:
    initialize = spec.initialize
    path = getattr(initialize, "from")
    return bool(path) and not initialize.dataset and not initialize.on_stages and not path.startswith(IN_CLUSTER)


def files_of_job(spec: model_pb2.JobSpec) -> Tuple[List[LocalFile], Dict[str, str]]:
    """The files, by their paths in the set, and the places there of the job's paths."""
    named = list(_named(spec))
    all_paths = {path for _, path, _ in named}
    folders: List[str] = []
    for _, path, _ in named:
        folder = os.path.dirname(_topmost(path, all_paths))
        if folder not in folders:
            folders.append(folder)
    files: Dict[str, LocalFile] = {}
    places: Dict[str, str] = {}
    for field, path, takes in named:
        if not os.path.basename(path):
            raise InvalidJob(f"{field}: {path}: is all of this machine; name a folder in it")
        top = _topmost(path, all_paths)
        place = path[len(top) - len(os.path.basename(top)):]
        if len(folders) > 1:
            place = f"{folders.index(os.path.dirname(top))}/{place}"
        if path in places:
            continue
        places[path] = place
        for file in _walk(field, path, place, takes, []):
            if files.setdefault(file.path, file).here != file.here:
                raise InvalidJob(f"{field}: {file.here}: has the name of {files[file.path].here}; rename one")
    return [files[path] for path in sorted(files, key=str.encode)], places


def put_places(spec: model_pb2.JobSpec, places: Dict[str, str], set_id: str) -> None:
    """Puts the places in the set where the job's paths are."""
    def change(path: str) -> str:
        return f"{STORED}{set_id}/{places[path]}" if path in places else path
    change_paths(spec, change if data_is_clients(spec) else None, change if weights_are_clients(spec) else None)


Takes = Callable[[str], bool]


def _named(spec: model_pb2.JobSpec) -> Iterator[Tuple[str, str, Optional[Takes]]]:
    """Field, path and choice of files, of all that the stages read: files, then folders, then weights."""
    kind = spec.data.WhichOneof("kind")
    names = DATA_PATHS.get(kind or "", ()) if data_is_clients(spec) else ()
    for name in names:
        if spec.HasField("write") and name != "tokenizer":
            continue
        value = getattr(getattr(spec.data, kind or ""), name)
        one = isinstance(value, str)
        for i, path in enumerate([value] if one else value):
            if not path or path.startswith(IN_CLUSTER):
                continue
            field = f"data.{kind}.{name}" + ("" if one else f"[{i}]")
            _check_spelling(field, path)
            yield field, path, None
            beside = _beside(kind or "", name, path)
            if beside:
                yield field, beside, None
    if not weights_are_clients(spec):
        return
    path = getattr(spec.initialize, "from")
    _check_spelling("initialize.from", path)
    yield "initialize.from", path, lambda name: name.endswith((".safetensors", ".json"))
    if path.endswith(".json"):  # an index: its shards lie beside it
        folder = os.path.dirname(path)
        for name in sorted(os.listdir(folder), key=os.fsencode) if os.path.isdir(folder) else ():
            if name.endswith(".safetensors") and not name.startswith("."):
                yield "initialize.from", f"{folder}/{name}", None


def _check_spelling(field: str, path: str) -> None:
    if is_misspelt(path):
        raise InvalidJob(f'{field}: "{path[:300]}"; a path in a bucket begins with s3://, in small letters')


def _beside(kind: str, name: str, path: str) -> str:
    if name == "tokenizer":
        config = os.path.join(os.path.dirname(path), "tokenizer_config.json")
        return config if os.path.exists(config) else ""
    if kind == "token_file" and path.endswith(".idx"):
        return path[:-len(".idx")] + ".bin"
    return ""


def _topmost(path: str, all_paths: Set[str]) -> str:
    """A path of the job that this one lies in, or this one."""
    slash = path.find("/", 1)
    while slash >= 0:
        if path[:slash] in all_paths:
            return path[:slash]
        slash = path.find("/", slash + 1)
    return path


def _walk(field: str, here: str, place: str, takes: Optional[Takes], above: List[Tuple[int, int]],
          root: str = "") -> Iterator[LocalFile]:
    """In folders, links and folders without files are refused as services/cli/data/file_set.h says."""
    try:
        info = os.stat(here)
        names = sorted(os.listdir(here), key=os.fsencode) if stat.S_ISDIR(info.st_mode) else None
    except OSError as error:
        raise InvalidJob(f"{field}: {here}: {error.strerror}; a path of a job is this machine's; for files that the stages have "
                         "give on_stages") from None
    if any(ord(c) < 32 or ord(c) == 127 or 0xDC80 <= ord(c) <= 0xDCFF for c in place):
        raise InvalidJob(f"{field}: {here!r}: has a control character or is not UTF-8; rename the file")
    if names is None:
        if not stat.S_ISREG(info.st_mode):
            raise InvalidJob(f"{field}: {here}: is no regular file or folder")
        yield LocalFile(place, here, _stamp(info))
        return
    if (info.st_dev, info.st_ino) in above:
        raise InvalidJob(f"{field}: {here}: is a link to a folder that it lies in; remove the link")
    root = root or here
    found = False
    for name in names:
        inside = f"{here}/{name}"
        if name.startswith(".") or (takes is not None and not takes(name) and not os.path.isdir(inside)):
            continue
        if takes is None and os.path.islink(inside) and os.path.exists(inside):
            if not os.path.realpath(inside).startswith(os.path.realpath(root) + "/"):
                raise InvalidJob(f"{field}: {inside}: is a link out of the folder; put the file itself there")
            if os.path.isdir(inside):
                raise InvalidJob(f"{field}: {inside}: is a link to a folder; put the folder itself there")
        for file in _walk(field, inside, f"{place}/{name}", takes, [*above, (info.st_dev, info.st_ino)], root):
            found = True
            yield file
    if takes is None and not found:
        raise InvalidJob(f"{field}: {here}: has no file, and a data set is of files; put some in, or remove it")


def _stamp(info: os.stat_result) -> Tuple[int, int, int]:
    return info.st_size, info.st_mtime_ns, info.st_ino


def make_data_set(files: List[LocalFile]) -> DataSet:
    """Reads all files once."""
    parts: List[Part] = []
    places: List[Tuple[int, int]] = []
    pack: Optional[int] = None
    for file in files:
        if file.bytes == 0:
            places.append((0, 0))
            continue
        own = file.bytes >= _OWN_PART_BYTES
        if own or pack is None or parts[pack].bytes + file.bytes > _MOST_PACK_BYTES:
            parts.append(Part([]))
            pack = pack if own else len(parts) - 1
        at = len(parts) - 1 if own else pack
        assert at is not None
        places.append((at, parts[at].bytes))
        parts[at].files.append(file)
        parts[at].bytes += file.bytes
    united: List[Part] = []
    index: List[int] = []
    known: Dict[str, int] = {}
    for part in parts:
        digest = hashlib.sha256()
        for piece in read_part(part, 0):
            digest.update(piece)
        part.sha256 = digest.hexdigest()
        if known.setdefault(part.sha256, len(united)) == len(united):
            united.append(part)
        index.append(known[part.sha256])
    manifest = data_sets_pb2.DataManifest(parts=[data_sets_pb2.DataPart(sha256=part.sha256, bytes=part.bytes) for part in united])
    for file, (at, offset) in zip(files, places):
        entry = manifest.files.add(path=file.path, bytes=file.bytes)
        if file.bytes:
            entry.part, entry.offset = index[at], offset
    data = manifest.SerializeToString()
    return DataSet(united, data, hashlib.sha256(data).hexdigest())


def read_part(part: Part, offset: int, piece_bytes: int = _PIECE_BYTES) -> Iterator[bytes]:
    """The part's bytes from a place on. Raises FailedPrecondition if a file is not the one that was looked at."""
    for file in part.files:
        if offset >= file.bytes:
            offset -= file.bytes
            continue
        try:
            with open(file.here, "rb") as opened:
                opened.seek(offset)
                left = file.bytes - offset
                while left > 0:
                    piece = opened.read(min(left, piece_bytes))
                    if not piece:
                        break
                    left -= len(piece)
                    yield piece
                changed = left > 0 or _stamp(os.fstat(opened.fileno())) != file.stamp
        except OSError as error:
            raise FailedPrecondition(f"{file.here}: {error.strerror}", code="FAILED_PRECONDITION") from None
        if changed:
            raise FailedPrecondition(f"{file.here}: was changed while it was read; try again when nothing writes the file",
                                     code="FAILED_PRECONDITION")
        offset = 0
