"""A job on a coordinator."""
from __future__ import annotations

import os
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from . import _follow, errors
from ._connection import READING_SECONDS, Connection
from ._fields import to_dict
from ._proto import job_pb2
from ._weights import fetch_export, fetch_files, read_weights
from ._writing import texts_of
from .progress import Progress
from .results import Checkpoint, Event, Export, LogLine, Result, metric_rows, timeline_rows

if TYPE_CHECKING:
    import numpy

__all__ = ["Job"]


class Job:
    """A job, by Client.submit, Client.job or Client.jobs.

    `state`, `step`, `loss` and the like are as of the last call of this object; `refresh` asks anew.

    >>> job = client.submit("job.yaml")
    >>> job.wait().state
    'SUCCEEDED'
    """

    def __init__(self, connection: Connection, job: job_pb2.Job) -> None:
        self._connection = connection
        self._job = job
        self._after = 0  # record behind which the run of this object begins

    def __repr__(self) -> str:
        total = f" of {self.total_steps}" if self.total_steps else ""
        return f"<stagecoach.Job {self.id}: {self.state}, step {self.step}{total}>"

    @property
    def id(self) -> str:
        """The id, by which Client.job finds the job again.

        >>> client.job(job.id).id == job.id
        True
        """
        return self._job.id

    @property
    def state(self) -> str:
        """PENDING, RUNNING, SUCCEEDED, FAILED or CANCELLED.

        >>> job.state
        'SUCCEEDED'
        """
        return str(to_dict(self._job)["state"])

    @property
    def message(self) -> str:
        """Why it waits, recovers or failed.

        >>> job.message
        ''
        """
        return self._job.message

    @property
    def step(self) -> int:
        """Steps done.

        >>> job.step
        6
        """
        return self._job.step

    @property
    def total_steps(self) -> int:
        """Steps in all; 0 while a job that counts in epochs has not loaded its data.

        >>> job.total_steps
        6
        """
        return self._job.total_steps

    @property
    def loss(self) -> Optional[float]:
        """Loss of the last step.

        >>> job.loss > 0
        True
        """
        return self._job.loss if self._job.HasField("loss") else None

    @property
    def weights_digest(self) -> str:
        """"sha256:..." of the final weights; empty before.

        >>> job.weights_digest.startswith("sha256:")
        True
        """
        return self._job.weights_digest

    def refresh(self) -> Job:
        """Asks for the job's state, and returns the job.

        >>> job.refresh().state
        'SUCCEEDED'
        """
        self._job = _follow.get_job(self._connection, self.id)
        return self

    def describe(self) -> Dict[str, Any]:
        """All that the coordinator tells of the job, as the message Job of proto/stagecoach/v1/job.proto.

        >>> job.describe()["stages"][1]["name"]
        'stage-1'
        """
        return to_dict(self.refresh()._job)

    def spec(self) -> Dict[str, Any]:
        """The job file as a dict, without what is left to its default. Client.submit takes it.

        >>> job.spec()["training"]["steps"]
        6
        """
        return to_dict(self.refresh()._job.spec, with_defaults=False)

    def follow(self, *, progress: Optional[bool] = None) -> Iterator[Event]:
        """The records of the job's history from its begin, or of a resumed run, as they come, to the end of the job.

        If the connection breaks, goes on behind the last record for up to a minute. The last event is `finished`. Behind it
        JobFailed or JobCancelled is raised if the job did not succeed. If the iterator is left, the job goes on.

        progress: whether to draw a line with the progress; None: in terminals and notebooks.

        >>> for event in job.follow():
        ...     if event.kind == "evaluation":
        ...         print(event.step, event["loss"] > 0)
        3 True
        6 True
        """
        line = Progress(self.total_steps, show=progress)
        last: Optional[Event] = None
        try:
            for event in _follow.follow(self._connection, self.id, self._after, self._outage_note(line)):
                line.draw(event)
                last = event
                if event.kind == "finished":
                    self.refresh()
                yield event
        finally:
            line.close()
        if last is not None:
            self._raise_unless_succeeded(self._result(last))

    @staticmethod
    def _outage_note(line: Progress) -> Any:
        return lambda why: line.note(f"no answer ({why}); trying again")

    def wait(self, *, progress: Optional[bool] = None) -> Result:
        """Waits for the end of the job. Raises JobFailed or JobCancelled if it did not succeed.

        >>> job.wait().weights_digest == job.weights_digest
        True
        """
        if _follow.has_ended(self.refresh()._job):
            last = _follow.finished_event(self._job)
        else:
            for last in self.follow(progress=progress):
                pass
        result = self._result(last)
        self._raise_unless_succeeded(result)
        return result

    def _result(self, last: Event) -> Result:
        return Result(self.id, last["state"], last.step, last["loss"], last["weights_digest"], last["message"])

    def _raise_unless_succeeded(self, result: Result) -> None:
        if result.state == "SUCCEEDED":
            return
        kind = errors.JobCancelled if result.state == "CANCELLED" else errors.JobFailed
        reason = f": {result.message}" if result.message else ""
        raise kind(f"job {self.id} {result.state} at step {result.step}{reason}", address=self._connection.address,
                   result=result)

    def texts(self, *, progress: Optional[bool] = None) -> List[str]:
        """Waits for the end of a job with `write`, and returns the text of each of its lines. Client.generate submits one.

        Bytes that are no UTF-8 become U+FFFD.

        >>> written = client.submit({**job.spec(), "resume": {"job": job.id, "fresh_optimizer": True},
        ...                          "write": {"lines": ["The stage"], "generate": {"tokens": 8}}, "evaluation": {},
        ...                          "checkpoint": {"never": True}})
        >>> len(written.texts()[0])
        8
        """
        lines = len(self.refresh()._job.spec.write.lines)
        self._after = 0  # a line's text is the pieces of all its records
        texts = texts_of(self.follow(progress=progress), lines)
        if texts is None:
            raise errors.StagecoachError(f"job {self.id}: the coordinator has not all texts of its {lines} lines",
                                         address=self._connection.address, code="DATA_LOSS")
        return texts

    def metrics(self) -> List[Dict[str, Any]]:
        """One row a step up to now: loss, learning rate, times, measures, and evaluations behind their step.

        For pandas.DataFrame(job.metrics()). Rows come from the records that the coordinator keeps: all of a job's last
        100000; of longer histories older steps are thinned out. Times of single stages are not among them: `timeline` has
        those of the last steps.

        >>> rows = job.metrics()
        >>> len(rows), rows[0]["step"], rows[0]["loss"] > rows[-1]["loss"]
        (6, 1, True)
        """
        return metric_rows(list(_follow.history(self._connection, self.id)))

    def records_to(self, folder: str) -> List[str]:
        """The files of the job's history up to now, metrics.jsonl and TensorBoard's, into a new folder of this machine.

        Returns their names. For pandas.read_json("folder/metrics.jsonl", lines=True) and `tensorboard --logdir folder`.

        >>> "metrics.jsonl" in job.records_to("history")
        True
        """
        request = job_pb2.GetRecordFilesRequest(job_id=self.id)
        answer = self._connection.call("JobService/GetRecordFiles", request, job_pb2.GetRecordFilesResponse)
        if not answer.files:
            raise errors.FailedPrecondition(f"job {self.id}: has no records yet; try again once it has run",
                                            address=self._connection.address, code="FAILED_PRECONDITION")
        fetch_files(self._connection, answer, folder, lambda inner: None)
        return [file.name for file in answer.files]

    def timeline(self, steps: int = 0) -> List[Dict[str, Any]]:
        """What each stage did in the last steps, a row a span; 0 steps: all that the stages still hold.

        A row has stage, name, step, attempt, track (compute, send, receive), what, micro_batch (or None), cell (None where
        the stage has no other), start and end in seconds since the first span, bytes and peer. Stages keep this in memory, so it is gone when the stages begin
        another job or end. Warns of stages that did not answer.

        >>> rows = job.timeline(steps=1)
        >>> sorted({row["what"] for row in rows if row["track"] == "compute"} & {"forward", "backward"})
        ['backward', 'forward']
        """
        request = job_pb2.GetTraceRequest(job_id=self.id, steps=steps)
        answer = self._connection.call("JobService/GetTrace", request, job_pb2.GetTraceResponse)
        for stage in answer.stages:
            if stage.error:
                warnings.warn(f"{self._connection.address}: no timeline of stage {stage.name}: {stage.error}", stacklevel=2)
        return timeline_rows(list(answer.stages))

    def logs(self, *, stage: Optional[int] = None, tail: int = 0, follow: bool = False) -> Iterator[LogLine]:
        """Lines of the coordinator and the job's stages in order of time, of one `stage`, or at most the last `tail`.

        With `follow` it goes on with new lines until the job ends, over broken connections. Warns of servers that do not
        answer.

        >>> for line in job.logs(tail=1):
        ...     print(line.message != "")
        True
        """
        request = job_pb2.ReadLogsRequest(job_id=self.id, stage=stage, follow=follow, tail=tail)
        return _follow.read_logs(self._connection, request, self._warn_of_missing)

    def _warn_of_missing(self, server: str) -> None:
        warnings.warn(f"{self._connection.address}: missing in the logs: {server}", stacklevel=3)

    def cancel(self) -> Job:
        """Ends the job; harmless if it has ended.

        >>> job.cancel().state
        'SUCCEEDED'
        """
        request = job_pb2.CancelJobRequest(id=self.id)
        self._job = self._connection.call("JobService/CancelJob", request, job_pb2.CancelJobResponse).job
        return self

    def resume(self, *, stages: int = 0) -> Job:
        """Goes on from the newest checkpoint, if the job is held; with another number of stages if it is given.

        `follow` then begins behind what was before. A job that has ended is not resumed: begin another one with
        `{**job.spec(), "resume": {"job": job.id}}`.

        >>> try:
        ...     job.resume()
        ... except stagecoach.StagecoachError as error:
        ...     print(error.code)
        FAILED_PRECONDITION
        """
        request = job_pb2.ResumeJobRequest(id=self.id, stages=stages)
        answer = self._connection.call("JobService/ResumeJob", request, job_pb2.ResumeJobResponse)
        self._job, self._after = answer.job, answer.last_record
        return self

    def checkpoints(self, *, verify: bool = False) -> List[Checkpoint]:
        """The committed checkpoints, newest first; `verify` reads them and checks sizes and digests.

        >>> [checkpoint.step for checkpoint in job.checkpoints(verify=True)]
        [6, 4, 2]
        """
        request = job_pb2.ListCheckpointsRequest(job_id=self.id, verify=verify)
        answer = self._connection.call("JobService/ListCheckpoints", request, job_pb2.ListCheckpointsResponse,
                                       READING_SECONDS if verify else None)
        return [Checkpoint.of(info) for info in answer.checkpoints]

    def export(self, to: Optional[str] = None, *, step: Optional[int] = None, average: bool = False) -> Export:
        """Writes the weights of the newest checkpoint, or of that of `step`, into a folder on the coordinator.

        `to`: a new folder of this machine; the files are fetched. `average`: the averages of the weights in their place.

        >>> job.export(step=4).step
        4
        >>> sorted(os.listdir(job.export("here").folder))
        ['model.safetensors', 'stagecoach.json']
        """
        answer = self._export(step, average)
        if to is not None:
            fetch_export(self._connection, answer, to)
        return Export(answer.folder if to is None else to, answer.weights_digest, answer.step, list(answer.damaged))

    def weights(self, *, step: Optional[int] = None, average: bool = False) -> Dict[str, numpy.ndarray]:
        """The weights as NumPy arrays by name, fetched and compared with their digest. bfloat16 is read as float32.

        >>> weights = job.weights()
        >>> weights["model/0000/token.weight"].shape, weights["model/0000/token.weight"].dtype
        ((128, 32), dtype('float32'))
        """
        answer = self._export(step, average)
        with tempfile.TemporaryDirectory(prefix="stagecoach-weights-") as folder:
            fetched = os.path.join(folder, "export")
            fetch_export(self._connection, answer, fetched)
            return read_weights(fetched)

    def _export(self, step: Optional[int], average: bool) -> job_pb2.ExportWeightsResponse:
        request = job_pb2.ExportWeightsRequest(job_id=self.id, step=step, average=average)
        return self._connection.call("JobService/ExportWeights", request, job_pb2.ExportWeightsResponse, READING_SECONDS)
