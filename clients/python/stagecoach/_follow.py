"""Reads a job's records and logs over broken streams: none is missed, and none is seen twice."""
from __future__ import annotations

import math
import time
from typing import Callable, Dict, Iterator, Optional, Set, Tuple

from . import errors
from ._connection import STREAM_SECONDS, Connection
from ._proto import job_pb2
from .results import Event, LogLine

PATIENCE_SECONDS = 60.0  # of one outage
_HISTORY_SECONDS = 60.0  # of a running job
_FIRST_BACKOFF_SECONDS = 0.1  # doubles up to the longest
_LONGEST_BACKOFF_SECONDS = 1.0
_ENDED = (job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED, job_pb2.JOB_STATE_CANCELLED)


def has_ended(job: job_pb2.Job) -> bool:
    return job.state in _ENDED


def get_job(connection: Connection, job_id: str) -> job_pb2.Job:
    return connection.call("JobService/GetJob", job_pb2.GetJobRequest(id=job_id), job_pb2.GetJobResponse).job


def finished_event(job: job_pb2.Job) -> Event:
    """The last record of a job that ended, made from its state."""
    finished = job_pb2.FinishedRecord(state=job.state, message=job.message, loss=job.loss, weights_digest=job.weights_digest)
    return Event.of(job_pb2.WatchJobResponse(step=job.step, unix_seconds=job.finished_unix_seconds, finished=finished))


def follow(connection: Connection, job_id: str, after: int, on_outage: Callable[[str], None],
           patience: float = PATIENCE_SECONDS) -> Iterator[Event]:
    """The records with a number above `after`, as they come; the last one is `finished`.

    Raises Unavailable if no coordinator answers for `patience` seconds, and at once what no waiting helps against.
    """
    backoff = _FIRST_BACKOFF_SECONDS
    outage_began: Optional[float] = None
    while True:
        broken: Optional[errors.StagecoachError] = None
        request = job_pb2.WatchJobRequest(id=job_id, after=after)
        try:
            for record in connection.stream("JobService/WatchJob", request, job_pb2.WatchJobResponse):
                outage_began, backoff = None, _FIRST_BACKOFF_SECONDS
                if record.number <= after:
                    if record.HasField("state"):
                        yield Event.of(record, "loading")
                    continue
                after = record.number
                yield Event.of(record)
                if record.HasField("finished"):
                    return
        except errors.StagecoachError as error:
            if not errors.is_passing(error):
                raise
            broken = error
        # A stream that ends says little: its own deadline, a quiet job, a coordinator that is gone. One short call tells.
        try:
            job = get_job(connection, job_id)
            outage_began = None
            # Only after a stream that ended in order: a broken one may have left records to be read.
            if broken is None and has_ended(job):
                yield finished_event(job)
                return
        except errors.StagecoachError as error:
            if not errors.is_passing(error):
                raise
            if outage_began is None:
                outage_began = time.monotonic()
                on_outage((broken or error).message)
            if time.monotonic() - outage_began > patience:
                raise errors.Unavailable(f"job {job_id}: no answer for {patience:g} s, given up: {error.message}",
                                         address=connection.address, code="UNAVAILABLE") from None
        connection.pause(backoff)
        backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)


def history(connection: Connection, job_id: str) -> Iterator[Event]:
    """The records up to now, without waiting for more.

    The coordinator tells no number of the newest record. So reading ends when all is read that the job's state shows: its
    step, its recoveries, its last evaluation. If a record of a recovery was lost with a disk, a deadline ends it.
    """
    job = get_job(connection, job_id)
    ended = has_ended(job)
    recoveries, has_step = 0, False
    has_evaluation = not job.HasField("evaluation_loss") or math.isnan(job.evaluation_loss)
    request = job_pb2.WatchJobRequest(id=job_id)
    deadline = STREAM_SECONDS if ended else _HISTORY_SECONDS
    try:
        for record in connection.stream("JobService/WatchJob", request, job_pb2.WatchJobResponse, deadline):
            yield Event.of(record)
            recoveries += record.HasField("recovery")
            has_step = has_step or record.step >= job.step
            has_evaluation = has_evaluation or record.step > job.step or (
                record.HasField("evaluation") and record.evaluation.loss == job.evaluation_loss)
            if not ended and record.step >= job.step and recoveries >= job.recoveries and has_evaluation:
                return
    except errors.DeadlineExceeded:
        if ended or not has_step:
            raise


def read_logs(connection: Connection, request: job_pb2.ReadLogsRequest, on_missing: Callable[[str], None]) -> Iterator[LogLine]:
    """Lines, each once, also if the stream had to be opened anew. `on_missing` gets each server that did not answer, once."""
    missing: Set[str] = set()
    last: Dict[str, Tuple[int, float]] = {}  # number and time, by source
    oldest: Optional[float] = None
    answered: Optional[float] = None
    while True:
        try:
            for answer in connection.stream("JobService/ReadLogs", request, job_pb2.ReadLogsResponse):
                answered = time.monotonic()
                for server in answer.unreachable:
                    if server not in missing:
                        missing.add(server)
                        on_missing(server)
                for line in answer.lines:
                    # With `tail` the first line says from when on lines are wanted; a new stream gives older ones too.
                    oldest = line.unix_seconds if oldest is None else oldest
                    # A server that was restarted counts from 1 again, later.
                    number, seconds = last.get(line.source, (0, 0.0))
                    if line.unix_seconds < oldest or (line.number <= number and line.unix_seconds <= seconds):
                        continue
                    last[line.source] = line.number, line.unix_seconds
                    yield LogLine.of(line)
            return
        except errors.StagecoachError as error:
            patient = answered is not None and time.monotonic() - answered < PATIENCE_SECONDS
            # Ten quiet minutes are no outage.
            if not request.follow or not errors.is_passing(error) or not (patient or isinstance(error, errors.DeadlineExceeded)):
                raise
        request.tail = 0  # what was missed meanwhile is wanted too; known lines are left out
        connection.pause(_LONGEST_BACKOFF_SECONDS)
