"""The client of a coordinator."""
from __future__ import annotations

import time
import uuid
from types import TracebackType
from typing import List, Optional, Sequence, Type, Union

from . import errors
from ._connection import Connection
from ._job_file import JobSource, read_job
from ._profile import Settings, find_target
from ._proto import fleet_pb2, job_pb2, model_pb2
from ._upload import upload_data_of
from ._writing import writing_spec
from .job import Job
from .results import Plan, Stage

__all__ = ["Client"]

_SUBMIT_PATIENCE_SECONDS = 5.0
_RETRY_SECONDS = 0.2
_MOST_ID_CHARACTERS = 63
_PAGE_JOBS = 1000


class Client:
    """A coordinator's jobs and stages. Thread-safe. A context manager: at its end the connection is closed.

    address: host:port of the coordinator's gRPC port.
    cluster: the name of a cluster of the profile, ~/.config/stagecoach/config.yaml.
    ca, cert, key: PEM files for mutual TLS: the authority's certificate, the user's, and its key.
    token or token_file: in the place of cert and key.
    timeout: seconds that a call may take. Verifying and exporting take up to ten minutes.

    What is not given is that of the variables that `stagecoach` reads (STAGECOACH_ADDRESS, _CLUSTER, _TLS, _TLS_CA,
    _TLS_CERT, _TLS_KEY, _TOKEN_FILE), else that of the profile's current cluster, else localhost:8001 without TLS. With an
    address the profile is not read, with a cluster the variables are not.

    >>> with stagecoach.Client() as client:
    ...     print(len(client.stages()))
    2
    """

    def __init__(self, address: Optional[str] = None, *, cluster: Optional[str] = None, ca: Optional[str] = None,
                 cert: Optional[str] = None, key: Optional[str] = None, token: Optional[str] = None,
                 token_file: Optional[str] = None, timeout: float = 10.0) -> None:
        use_tls = True if ca or cert or key or token or token_file else None
        given = Settings(address, cluster, use_tls, ca, cert, key, token, token_file)
        self._connection = Connection(find_target(given), timeout)

    def __repr__(self) -> str:
        return f"<stagecoach.Client {self.address}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The coordinator's address.

        >>> stagecoach.Client("lab-1:8001").address
        'lab-1:8001'
        """
        return self._connection.address

    def close(self) -> None:
        """Closes the connection. Jobs go on.

        >>> stagecoach.Client().close()
        """
        self._connection.close()

    def submit(self, job: JobSource, *, id: Optional[str] = None) -> Job:
        """Submits a job: a dict, a file's path, or a text in JSON or YAML, as in docs/job_files.md.

        A str with a line end or a { in front is a text. YAML needs PyYAML. Paths of data are this machine's, relative ones
        from the file's folder, else from the current one. What of it the cluster lacks is uploaded first, some megabytes a
        second; `stagecoach submit` and `stagecoach data put` are faster with large files.

        Submitting again is harmless: the same `id` and job give the same job, another job is AlreadyExists. So a lost answer
        is asked for again, for five seconds. Without an id it is the job's name with eight random characters.

        >>> job = client.submit({
        ...     "name": "small", "seed": 1,
        ...     "model": {"gpt": {"layers": 2, "width": 32, "heads": 2, "context": 16, "vocabulary": 128}},
        ...     "data": {"text": {"path": "input.txt"}},
        ...     "training": {"steps": 2, "batch_size": 4, "micro_batches": 2,
        ...                  "learning_rate": {"constant": {"peak": 0.001}}}})
        >>> job.wait().step
        2
        """
        spec = read_job(job)
        upload_data_of(self._connection, spec)
        return self._submit(spec, id)

    def generate(self, job: Union[Job, str], prompts: Sequence[str], *, tokens: int = 200, temperature: float = 0.8,
                 top_k: int = 0, top_p: float = 1.0, stops: Sequence[str] = (), step: Optional[int] = None,
                 seed: int = 1, stages: int = 1) -> List[str]:
        """Continues prompts on `stages` free stages, with the weights of the newest checkpoint, or that of `step`.

        job: one that trained, or its id. Submits a job with `write`, waits for it, and returns the text behind each prompt. If
        the wait is interrupted, that job goes on. The fields are those of `write.generate` in docs/job_files.md; the same
        seed gives the same texts for every number of stages.

        >>> texts = client.generate(job, ["The stage", "The coach"], tokens=12, temperature=0)
        >>> [len(text) for text in texts]
        [12, 12]
        """
        trained = self.job(job if isinstance(job, str) else job.id)
        options = model_pb2.Generate(tokens=tokens, temperature=temperature, top_k=top_k, top_p=top_p, stops=stops)
        spec = writing_spec(trained._job.spec, trained.id, options, prompts, step=step, seed=seed, stages=stages)
        return self._submit(spec, None).texts()

    def _submit(self, spec: model_pb2.JobSpec, id: Optional[str]) -> Job:
        request = job_pb2.SubmitJobRequest(id=id or _make_id(spec.name), spec=spec)
        give_up = time.monotonic() + _SUBMIT_PATIENCE_SECONDS
        while True:
            try:
                answer = self._connection.call("JobService/SubmitJob", request, job_pb2.SubmitJobResponse)
                return Job(self._connection, answer.job)
            except errors.InvalidArgument as error:
                raise _invalid_job(error) from None
            except errors.Unavailable:
                if time.monotonic() >= give_up:
                    raise
                self._connection.pause(_RETRY_SECONDS)

    def plan(self, job: JobSource) -> Plan:
        """Partition and forecast of a job, which is not run.

        >>> plan = client.plan("job.yaml")
        >>> len(plan.stages), plan.precision
        (2, 'float32')
        """
        request = job_pb2.PlanJobRequest(spec=read_job(job))
        try:
            return Plan.of(self._connection.call("JobService/PlanJob", request, job_pb2.PlanJobResponse))
        except errors.InvalidArgument as error:
            raise _invalid_job(error) from None

    def jobs(self) -> List[Job]:
        """All jobs, newest first.

        >>> job.id in [one.id for one in client.jobs()]
        True
        """
        request = job_pb2.ListJobsRequest(page_size=_PAGE_JOBS)
        jobs: List[Job] = []
        while True:
            page = self._connection.call("JobService/ListJobs", request, job_pb2.ListJobsResponse)
            jobs += [Job(self._connection, one) for one in page.jobs]
            # A token that repeats itself would keep us for ever.
            if page.next_page_token in ("", request.page_token):
                return jobs
            request.page_token = page.next_page_token

    def job(self, id: str) -> Job:
        """The job with the id. Raises NotFound.

        >>> client.job(job.id).step
        6
        """
        request = job_pb2.GetJobRequest(id=id)
        return Job(self._connection, self._connection.call("JobService/GetJob", request, job_pb2.GetJobResponse).job)

    def stages(self) -> List[Stage]:
        """The stage servers that the coordinator knows, by name.

        >>> [stage.state for stage in client.stages()]
        ['ready', 'ready']
        """
        answer = self._connection.call("FleetService/ListStages", fleet_pb2.ListStagesRequest(), fleet_pb2.ListStagesResponse)
        return [Stage.of(info) for info in answer.stages]


def _make_id(name: str) -> str:
    suffix = f"-{uuid.uuid4().hex[:8]}"
    return name[:_MOST_ID_CHARACTERS - len(suffix)] + suffix


def _invalid_job(error: errors.InvalidArgument) -> errors.InvalidJob:
    return errors.InvalidJob(error.message, address=error.address, code=error.code)
