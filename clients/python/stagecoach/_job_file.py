"""A job as the message JobSpec: from a dict, a text or a file, as `stagecoach submit` reads it.

Beyond protobuf's fields it takes what docs/job_files.md says: enum values by their short name (`schedule: gpipe`), `stages:
auto`, `partition: uniform`, `schedule: {file: PATH}`, and one number for a list of numbers (`kernel: 3`). Numbers may be texts, as 64-bit integers
are in protobuf's JSON. Relative paths of data and weights become absolute: those of a file start at its folder, others at
the current one. Beside `dataset` and `on_stages` they stay as they are.
"""
from __future__ import annotations

import difflib
import importlib.util
import json
import math
import numbers
import os
import pathlib
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ._fields import enum_name, enum_names, is_repeated
from ._proto import model_pb2
from .errors import InvalidJob

JobSource = Union[Mapping[str, Any], str, "os.PathLike[str]"]

# The fields with paths, by kind of data; those of plan/data/*.cc.
DATA_PATHS: Dict[str, Tuple[str, ...]] = {
    "text": ("path", "tokenizer", "test"),
    "idx": ("images", "labels", "test_images", "test_labels", "weights", "test_weights"),
    "cifar": ("folder",),
    "image_folder": ("train", "test"),
    "webdataset": ("train", "test"),
    "mask_folder": ("train", "masks", "test", "test_masks"),
    "parallel_text": ("tokenizer", "sources", "targets", "test_sources", "test_targets"),
    "json_lines": ("files", "tokenizer", "test"),
    "token_file": ("files", "test"),
}

_INTEGER = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PARTITION = "stagecoach.v1.Partition"
_STAGES = "stagecoach.v1.Pipeline.stages"
_SCHEDULE = "stagecoach.v1.Pipeline.schedule"
_OWN_SCHEDULE = "stagecoach.v1.Pipeline.own_schedule"
_FILE_TOO = "is given, and schedule: {file: PATH} too; keep one of the two"
IN_CLUSTER = ("store:/data/", "s3://")  # in a data set that the cluster keeps, or in a bucket
_RANGES = {FieldDescriptor.CPPTYPE_INT64: (-1 << 63, (1 << 63) - 1), FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1)}


def is_misspelt(path: str) -> bool:
    """Whether it was meant to be in a bucket."""
    return path[:5].lower() == "s3://" and not path.startswith("s3://")


def read_job(source: JobSource) -> model_pb2.JobSpec:
    """A str with a line end or a { in front is a text, any other one the path of a file. Raises InvalidJob."""
    place, folder = "", pathlib.Path.cwd()
    if isinstance(source, Mapping):
        value: Any = source
        positions: Dict[str, str] = {}
    else:
        text = os.fspath(source)
        if isinstance(source, os.PathLike) or not ("\n" in text or text.lstrip().startswith("{")):
            place, folder = text, pathlib.Path(text).absolute().parent
            text = _read_file(text)
        value, positions = _parse(text, place)
    spec = model_pb2.JobSpec()
    _Reader(place, positions, folder).read(value, "", spec)
    _make_paths_absolute(spec, folder)
    return spec


def _read_file(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidJob(f"{path}: is not a job file: it is not UTF-8 text") from None
    except OSError as error:
        raise InvalidJob(f"{path}: {error.strerror}") from None


def _parse(text: str, place: str) -> Tuple[Any, Dict[str, str]]:
    """The text as dicts, lists and texts, and the places of its fields where they are known."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_unique, parse_int=str, parse_float=str, parse_constant=str), {}
        except json.JSONDecodeError as error:
            # YAML in braces is no JSON; PyYAML reads both.
            problem = f"{place or 'job'}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}"
        except InvalidJob as error:
            raise InvalidJob(f"{place}: {error.message}" if place else error.message) from None
        if importlib.util.find_spec("yaml") is None:
            raise InvalidJob(f"{problem}; if it is YAML: pip install pyyaml")
    from . import _yaml_tree
    return _yaml_tree.parse(text, place or "job")


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    fields: Dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise InvalidJob(f"{name}: given twice; keep one")
        fields[name] = value
    return fields


class _Reader:
    """Walks the message's descriptor, so that a field added to the API is read without a change here."""

    def __init__(self, place: str, positions: Dict[str, str], folder: pathlib.Path) -> None:
        self._place = place
        self._positions = positions
        self._folder = folder

    def _error(self, path: str, problem: str) -> InvalidJob:
        where = self._positions.get(path) or self._place
        return InvalidJob(": ".join(part for part in (where, path, problem) if part))

    def _wants(self, value: Any, path: str, wanted: str) -> InvalidJob:
        if value is None:
            return self._error(path, f"no value given; wants {wanted}, or leave it out")
        shown = ("a list" if isinstance(value, (list, tuple)) else "a group of fields" if isinstance(value, Mapping)
                 else f'"{str(value)[:60]}"')
        return self._error(path, f"{shown}; wants {wanted}")

    def read(self, value: Any, path: str, message: Message) -> None:
        """Fills the message from a group of fields."""
        known = [field.name for field in message.DESCRIPTOR.fields]
        if not isinstance(value, Mapping):
            wanted = "{}" if not known else f"a group of fields ({', '.join(known)})"
            if message.DESCRIPTOR.full_name == _PARTITION:
                wanted = "auto, uniform or {cuts: [3, 6]}"
            raise self._wants(value, path or "the job", wanted)
        for name, given in value.items():
            here = f"{path}.{name}" if path else str(name)
            field = message.DESCRIPTOR.fields_by_name.get(name)
            if field is None:
                near = difflib.get_close_matches(str(name), known, n=1)
                raise self._error(here, "unknown field" + (f'; did you mean "{near[0]}"?' if near else ""))
            choice = field.containing_oneof
            if choice is not None and len(choice.fields) > 1 and message.WhichOneof(choice.name) is not None:
                raise self._error(here, f"{message.WhichOneof(choice.name)} is given already; keep one of the two")
            if is_repeated(field):
                self._read_list(given, here, field, message)
            elif field.message_type is not None:
                part = getattr(message, field.name)
                part.SetInParent()
                if part.DESCRIPTOR.full_name == _PARTITION and isinstance(given, str):
                    given = {"rule": given}
                self.read(given, here, part)
            elif field.full_name == _SCHEDULE and isinstance(given, Mapping):
                self._schedule_file(given, here, message)
            elif field.full_name == _OWN_SCHEDULE and message.own_schedule:
                raise self._error(here, _FILE_TOO)
            else:
                setattr(message, field.name, self._scalar(given, here, field))

    def _schedule_file(self, value: Mapping[str, Any], path: str, pipeline: Message) -> None:
        """`schedule: {file: wave.txt}`: the file's text as own_schedule."""
        file = value.get("file")
        if set(value) != {"file"} or not isinstance(file, (str, os.PathLike)):
            raise self._wants(value, path, "a schedule's name or {file: PATH}")
        if pipeline.own_schedule:
            raise self._error("pipeline.own_schedule", _FILE_TOO)
        try:
            pipeline.own_schedule = (self._folder / file).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise self._error(f"{path}.file", f"{os.fspath(file)} is not UTF-8 text") from None
        except OSError as error:
            raise self._error(f"{path}.file", f"{os.fspath(file)}: {error.strerror}") from None
        pipeline.schedule = model_pb2.SCHEDULE_KIND_OWN

    def _read_list(self, value: Any, path: str, field: Any, message: Message) -> None:
        into = getattr(message, field.name)
        is_number = field.cpp_type in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_DOUBLE)
        may_be_one = is_number and message.DESCRIPTOR.full_name != _PARTITION
        if may_be_one and isinstance(value, (str, numbers.Real)):
            value = [value]
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise self._wants(value, path, "a list, [...], or one number" if may_be_one else "a list, [...]")
        for i, item in enumerate(value):
            here = f"{path}[{i}]"
            if field.message_type is not None:
                self.read(item, here, into.add())
            else:
                into.append(self._scalar(item, here, field))

    def _scalar(self, value: Any, path: str, field: Any) -> Any:
        if field.enum_type is not None:
            return self._enum(value, path, field)
        if field.cpp_type in _RANGES:
            return self._integer(value, path, field)
        if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
            is_text = isinstance(value, str) and _REAL.fullmatch(value)
            if is_text or (isinstance(value, numbers.Real) and not isinstance(value, bool)):
                real = float(value)
                if math.isfinite(real):
                    return real
            raise self._wants(value, path, "a finite number")
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            if isinstance(value, bool) or value in ("true", "false"):
                return value is True or value == "true"
            raise self._wants(value, path, "true or false, in lower case (yes, no, on and off are texts)")
        if isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        raise self._wants(value, path, "a text")

    def _integer(self, value: Any, path: str, field: Any) -> int:
        may_be_auto = field.full_name == _STAGES
        if may_be_auto and value == "auto":
            return 0
        least, most = _RANGES[field.cpp_type]
        is_text = isinstance(value, str) and _INTEGER.fullmatch(value)
        if is_text or (isinstance(value, numbers.Integral) and not isinstance(value, bool)):
            number = int(value)
            if least <= number <= most:
                return number
        wanted = "a whole number" if least < 0 else "a whole number from 0 to 2^64 - 1"
        raise self._wants(value, path, wanted + (" or auto" if may_be_auto else ""))

    def _enum(self, value: Any, path: str, field: Any) -> int:
        names = enum_names(field.enum_type)
        if not isinstance(value, str):
            raise self._wants(value, path, f"one of {', '.join(names)}")
        for one in field.enum_type.values:
            # The long name is what protobuf's own JSON has, so that printed specs can be read back.
            if value == one.name or (one.number != 0 and value == enum_name(one)):
                return int(one.number)
        near = difflib.get_close_matches(value, names, n=1)
        raise self._error(path, f'"{value[:60]}" is not one of {", ".join(names)}'
                          + (f'; did you mean "{near[0]}"?' if near else ""))


def _make_paths_absolute(spec: model_pb2.JobSpec, folder: pathlib.Path) -> None:
    """Not those in a data set of the cluster, in a bucket, or on the stages' machines."""
    def beside(path: str) -> str:
        return path if not path or path.startswith(IN_CLUSTER) or is_misspelt(path) else _without_dotdots(folder / path)
    there = [bool(place.dataset or place.on_stages) for place in (spec.data, spec.initialize)]
    change_paths(spec, None if there[0] else beside, None if there[1] else beside)


def change_paths(spec: model_pb2.JobSpec, data: Optional[Callable[[str], str]], weights: Optional[Callable[[str], str]]) -> None:
    """Changes the paths of the data, and of the weights that the job begins with. None leaves them."""
    if weights is not None and spec.HasField("initialize"):
        _change(spec.initialize, "from", weights)
    kind = spec.data.WhichOneof("kind")
    if data is not None and kind is not None:
        for name in DATA_PATHS.get(kind, ()):
            _change(getattr(spec.data, kind), name, data)


def _change(message: Message, name: str, change: Callable[[str], str]) -> None:
    value = getattr(message, name)
    if isinstance(value, str):
        setattr(message, name, change(value))
    else:
        value[:] = [change(one) for one in value]


def _without_dotdots(path: pathlib.Path) -> str:
    """Each ".." is resolved as the system does: behind a link it leaves the folder that the link leads to."""
    walked: Optional[pathlib.Path] = None
    for name in path.parts:
        if walked is None:
            walked = pathlib.Path(name)
        elif name == "..":
            walked = pathlib.Path(os.path.realpath(walked) if walked.exists() else walked).parent
        else:
            walked /= name
    return str(walked)
