"""What calls answer, as plain values. pandas.DataFrame takes lists of each."""
from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._fields import to_dict
from ._proto import fleet_pb2, job_pb2, telemetry_pb2

__all__ = ["Checkpoint", "Event", "Export", "LogLine", "Plan", "PlannedStage", "Result", "Stage", "metric_rows",
           "timeline_rows"]


@dataclass(frozen=True)
class Event:
    """A record of a job's history. `step` counts finished steps, `unix_seconds` is when.

    `kind` is state, step, evaluation, checkpoint, recovery, written or finished. While stages load it may be loading, which
    is in no history. `values` are the kind's fields in docs/formats.md, "A job's records"; event["loss"] is one of them.

    >>> event = list(job.follow())[-1]
    >>> event.kind, event["state"]
    ('finished', 'SUCCEEDED')
    """

    number: int
    kind: str
    step: int
    unix_seconds: float
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @classmethod
    def of(cls, record: job_pb2.WatchJobResponse, kind: Optional[str] = None) -> Event:
        field = record.WhichOneof("kind") or ""
        values = to_dict(getattr(record, field)) if field else {}
        for measure in values.pop("measures", ()):
            values[measure["name"]] = measure["value"]
        name = kind or {"step_done": "step"}.get(field, field)
        return cls(record.number, name, record.step, record.unix_seconds, values)


@dataclass(frozen=True)
class Result:
    """How a job ended. `state` is SUCCEEDED, FAILED or CANCELLED.

    >>> result = job.wait()
    >>> result.state, result.step
    ('SUCCEEDED', 6)
    """

    job: str
    state: str
    step: int
    loss: float
    weights_digest: str
    message: str


@dataclass(frozen=True)
class Checkpoint:
    """A committed checkpoint; `folder` is on the coordinator. `error` is empty, or what `verify` found.

    >>> newest = job.checkpoints()[0]
    >>> newest.step, newest.stages, newest.error
    (6, 2, '')
    """

    step: int
    folder: str
    bytes: int
    stages: int
    loss: float
    error: str

    @classmethod
    def of(cls, info: job_pb2.CheckpointInfo) -> Checkpoint:
        return cls(info.step, info.folder, info.bytes, info.stages, info.loss, info.error)


@dataclass(frozen=True)
class Export:
    """Weights in a folder, with model.safetensors: of this machine if they were fetched, else of the coordinator.

    `damaged` are newer checkpoints that were set aside.

    >>> export = job.export()
    >>> export.step, export.weights_digest[:7], export.damaged
    (6, 'sha256:', [])
    """

    folder: str
    weights_digest: str
    step: int
    damaged: List[str]


@dataclass(frozen=True)
class Stage:
    """A stage server. `state` is ready, busy, draining or lost; `job` is what it works for.

    >>> [(stage.name, stage.device) for stage in client.stages()]
    [('stage-0', 'cpu'), ('stage-1', 'cpu')]
    """

    name: str
    address: str
    device: str
    version: str
    state: str
    job: str
    waiting_for: str
    memory_limit_bytes: int
    last_heartbeat_unix_seconds: float

    @classmethod
    def of(cls, info: fleet_pb2.StageInfo) -> Stage:
        return cls(info.stage.name, info.stage.address, info.stage.device, info.stage.version, info.state, info.job_id,
                   info.waiting_for, info.stage.memory_limit_bytes, info.last_heartbeat_unix_seconds)


@dataclass(frozen=True)
class LogLine:
    """A line of a server's log. `source` is coordinator, or a stage's name; `job` is empty in a line of no job.

    >>> line = next(job.logs())
    >>> line.level in ("debug", "info", "warning", "error"), line.message != ""
    (True, True)
    """

    unix_seconds: float
    level: str
    source: str
    job: str
    step: Optional[int]
    message: str

    def __str__(self) -> str:
        when = datetime.datetime.fromtimestamp(self.unix_seconds).strftime("%H:%M:%S")
        return f"{when} {self.level} {self.source}: {self.message}"

    @classmethod
    def of(cls, line: telemetry_pb2.LogLine) -> LogLine:
        step = line.step if line.HasField("step") else None
        return cls(line.unix_seconds, line.level, line.source, line.job_id, step, line.message)


@dataclass(frozen=True)
class PlannedStage:
    """The layers of one stage's cells, and the forecast of its times and bytes. [first_layer, last_layer) are those of the first."""

    first_layer: int
    last_layer: int
    parameters: int
    forward_seconds: float
    backward_seconds: float
    memory_bytes: int
    process_bytes: int
    cells: List[Tuple[int, int]]


@dataclass(frozen=True)
class Plan:
    """How a job would run: partition, forecast, and layers as rows. `print(plan.timeline)` draws a step.

    >>> plan = client.plan("job.yaml")
    >>> [stage.cells for stage in plan.stages], plan.bubble_ideal
    ([[(0, 4)], [(4, 7)]], 0.2)
    """

    stages: List[PlannedStage]
    layers: List[Dict[str, Any]]
    step_seconds: float
    bubble: float
    bubble_ideal: float
    schedule: str
    timeline: str
    precision: str

    @classmethod
    def of(cls, plan: job_pb2.PlanJobResponse) -> Plan:
        stages = [PlannedStage(one.first_layer, one.last_layer, one.parameters, one.forward_seconds, one.backward_seconds,
                               sum(to_dict(one.memory).values()), one.process_bytes,
                               [(cell.first, cell.last) for cell in one.cells] or [(one.first_layer, one.last_layer)])
                  for one in plan.stages]
        values = to_dict(plan)
        return cls(stages, values["layers"], plan.step_seconds, plan.bubble, plan.bubble_ideal, plan.schedule, plan.timeline,
                   values["precision"])


def metric_rows(events: List[Event]) -> List[Dict[str, Any]]:
    """One row a step, in order. A step that ran again after a recovery has the same loss, and one row.

    An evaluation adds `evaluation_loss` and `evaluation_...` to the row of its step.
    """
    rows: Dict[int, Dict[str, Any]] = {}
    for event in events:
        if event.kind == "step":
            rows.setdefault(event.step, {"step": event.step}).update(unix_seconds=event.unix_seconds, **event.values)
        elif event.kind == "evaluation":
            row = rows.setdefault(event.step, {"step": event.step})
            row.update({f"evaluation_{name}": value for name, value in event.values.items()})
    return [rows[step] for step in sorted(rows)]


_TRACKS = {telemetry_pb2.TRACE_TRACK_SEND: "send", telemetry_pb2.TRACE_TRACK_RECEIVE: "receive"}


def timeline_rows(traces: List[telemetry_pb2.StageTrace]) -> List[Dict[str, Any]]:
    """One row a span, by its begin. `start` and `end` are seconds of the coordinator's clock since the first span."""
    spans = [(span.begin_unix_nanos - trace.clock_offset_nanos, span.end_unix_nanos - trace.clock_offset_nanos, trace, span)
             for trace in traces for span in trace.spans]
    spans.sort(key=lambda one: (one[0], one[2].stage))
    return [{"stage": trace.stage, "name": trace.name, "step": span.step, "attempt": span.attempt,
             "track": _TRACKS.get(span.track, "compute"), "what": span.name,
             "micro_batch": span.micro_batch if span.micro_batch >= 0 else None,
             "cell": span.cell if span.HasField("cell") else None,
             "start": (begin - spans[0][0]) / 1e9, "end": (end - spans[0][0]) / 1e9, "bytes": span.bytes, "peer": span.peer}
            for begin, end, trace, span in spans]
