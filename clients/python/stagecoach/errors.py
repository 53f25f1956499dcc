"""The exceptions of this package. Each is a StagecoachError."""
from __future__ import annotations

from typing import Any, Optional

import grpc

__all__ = ["AlreadyExists", "ConfigurationError", "DataLoss", "DeadlineExceeded", "FailedPrecondition", "InvalidArgument", "InvalidJob",
           "JobCancelled", "JobFailed", "NotFound", "PermissionDenied", "ResourceExhausted", "StagecoachError",
           "Unauthenticated", "Unavailable"]


class StagecoachError(Exception):
    """A call failed. `message` is the server's text, `address` the coordinator's, `code` gRPC's name of the status.

    >>> try:
    ...     client.job("nobody")
    ... except stagecoach.StagecoachError as error:
    ...     print(error.code, error.address == client.address)
    NOT_FOUND True
    """

    def __init__(self, message: str, *, address: Optional[str] = None, code: Optional[str] = None) -> None:
        super().__init__(message if address is None else f"{address}: {message}")
        self.message = message
        self.address = address
        self.code = code


class InvalidArgument(StagecoachError):
    """The coordinator does not take what the call asks for."""


class InvalidJob(InvalidArgument):
    """A job file is wrong. The message names the field, and of a file the line.

    >>> try:
    ...     client.submit({"name": "wrong", "seeed": 1})
    ... except stagecoach.InvalidJob as error:
    ...     print(error)
    seeed: unknown field; did you mean "seed"?
    """


class NotFound(StagecoachError):
    """No such job or checkpoint."""


class AlreadyExists(StagecoachError):
    """The id is that of another job, with another spec."""


class PermissionDenied(StagecoachError):
    """The certificate or token does not allow the call; the message says what it lacks."""


class Unauthenticated(StagecoachError):
    """The coordinator knows no such token."""


class FailedPrecondition(StagecoachError):
    """The job's state does not allow the call."""


class ResourceExhausted(StagecoachError):
    """A limit of the coordinator is reached; try again later."""


class Unavailable(StagecoachError):
    """No coordinator answers at the address; the message says why, if that can be found out."""


class DeadlineExceeded(StagecoachError):
    """The answer did not come in time."""


class DataLoss(StagecoachError):
    """A checkpoint is damaged, or what was fetched is not what its digest says."""


class ConfigurationError(StagecoachError):
    """The profile file, an address or a certificate file is wrong. Nothing was called."""


class JobFailed(StagecoachError):
    """The job that was followed ended by an error. `result` is how it stands.

    >>> issubclass(stagecoach.JobCancelled, stagecoach.JobFailed)
    True
    """

    def __init__(self, message: str, *, address: Optional[str] = None, result: Any = None) -> None:
        super().__init__(message, address=address)
        self.result = result


class JobCancelled(JobFailed):
    """The job that was followed was cancelled."""


_BY_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.DATA_LOSS: DataLoss,
}

# The coordinator is away, restarts, or sheds a slow reader: the same call may succeed later.
_PASSING = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "CANCELLED", "INTERNAL", "UNKNOWN"}


def of_status(code: grpc.StatusCode, message: str, address: str) -> StagecoachError:
    """The exception of a call's status."""
    return _BY_STATUS.get(code, StagecoachError)(message, address=address, code=code.name)


def is_passing(error: StagecoachError) -> bool:
    """Whether the error may pass by itself."""
    return error.code in _PASSING
