"""Client of Stagecoach: submits jobs to a coordinator, follows them, and gives their numbers as rows.

>>> client = stagecoach.Client()
>>> job = client.submit("job.yaml")
>>> losses = [event["loss"] for event in job.follow() if event.kind == "step"]
>>> losses[0] > losses[-1]
True
"""
import os

# gRPC's own lines on standard error about a failed handshake say less than the exceptions do. It reads this when loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from .client import Client  # noqa: E402
from .errors import (  # noqa: E402
    AlreadyExists, ConfigurationError, DataLoss, DeadlineExceeded, FailedPrecondition, InvalidArgument, InvalidJob, JobCancelled,
    JobFailed, NotFound, PermissionDenied, ResourceExhausted, StagecoachError, Unauthenticated, Unavailable)
from .job import Job  # noqa: E402
from .progress import Progress  # noqa: E402
from .results import Checkpoint, Event, Export, LogLine, Plan, PlannedStage, Result, Stage  # noqa: E402

__all__ = ["AlreadyExists", "Checkpoint", "Client", "ConfigurationError", "DataLoss", "DeadlineExceeded", "Event", "Export",
           "FailedPrecondition", "InvalidArgument", "InvalidJob", "Job", "JobCancelled", "JobFailed", "LogLine", "NotFound",
           "PermissionDenied", "Plan", "PlannedStage", "Progress", "ResourceExhausted", "Result", "Stage", "StagecoachError",
           "Unauthenticated", "Unavailable"]
