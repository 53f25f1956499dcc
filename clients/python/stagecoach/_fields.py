"""Protobuf messages as plain Python values, by the names that users write.

Descriptors are Any: their classes differ between protobuf's versions and its two implementations.
"""
from __future__ import annotations

import re
from typing import Any, Dict, List

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_JOB_STATE = "stagecoach.v1.JobState"


def is_repeated(field: Any) -> bool:
    """Whether the field is a list or a map. protobuf 7 has no `label`, and older ones no `is_repeated`."""
    known = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED if known is None else known)


def is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def enum_name(value: Any) -> str:
    """SCHEDULE_KIND_GPIPE -> gpipe, as in job files; states of jobs keep their capitals, as records have them."""
    prefix = re.sub(r"(?<=.)([A-Z])", r"_\1", value.type.name).upper() + "_"
    short = value.name[len(prefix):] if value.name.startswith(prefix) else value.name
    return str(short if value.type.full_name == _JOB_STATE else short.lower())


def enum_names(kind: Any) -> List[str]:
    """The names of a field's values; 0 has none, it is what a field has that was left out."""
    return [enum_name(value) for value in kind.values if value.number != 0]


def to_dict(message: Message, with_defaults: bool = True) -> Dict[str, Any]:
    """Fields by their names in the .proto files. Absent messages and absent `optional` fields are left out.

    Without `with_defaults` so is each field whose value is the default.
    """
    result: Dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if is_map(field):
            value = dict(value)
        elif is_repeated(field):
            value = [_value(field, one, with_defaults) for one in value]
        elif field.has_presence and not message.HasField(field.name):
            continue
        else:
            value = _value(field, value, with_defaults)
        if with_defaults or field.has_presence or value:
            result[field.name] = value
    return result


def _value(field: Any, value: Any, with_defaults: bool) -> Any:
    if field.message_type is not None:
        return to_dict(value, with_defaults)
    if field.enum_type is not None:
        if value == 0 and not with_defaults:
            return None
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else enum_name(known)
    return value
