#!/usr/bin/env python3
"""Submits a job to a Stagecoach coordinator with generated stubs, follows it, and prints its digest.

    pip install grpcio grpcio-tools
    python3 examples/python/submit.py --address 127.0.0.1:8001 --text /data/input.txt [--certs FOLDER]

--certs: a folder of `stagecoach certs` with ca.pem, tls.crt, tls.key. The stubs are made from proto/ at the
first run; a project of its own would keep them.
"""
import argparse
import pathlib
import sys
import tempfile

import connect  # before grpc, which reads its settings when it is loaded
import grpc
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def make_stubs(folder):
    """protoc for Python; afterwards stagecoach.v1 can be imported."""
    files = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").glob("stagecoach/v1/*.proto"))
    arguments = ["protoc", f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}", *files]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")
    sys.path.insert(0, str(folder))


def make_spec(model_pb2, text, steps):
    """A job file as a message, whose fields docs/job_files.md explains."""
    return model_pb2.JobSpec(
        name="from-python", seed=1,
        model={"gpt": {"layers": 2, "width": 32, "heads": 2, "context": 32, "vocabulary": 256}},
        data={"text": {"path": text}},
        training={"steps": steps, "batch_size": 8, "micro_batches": 4, "optimizer": {"adamw": {}},
                  "learning_rate": {"cosine": {"peak": 3e-3, "warmup_steps": 5, "final": 3e-4}}},
        pipeline={"schedule": model_pb2.SCHEDULE_KIND_GPIPE},
        checkpoint={"every_steps": 10})


def follow(jobs, job_pb2, job_id):
    """Prints the records as they come, and gives the last one. A broken stream goes on after its last record."""
    after = 0
    while True:
        try:
            for record in jobs.WatchJob(job_pb2.WatchJobRequest(id=job_id, after=after), timeout=600):
                after = record.number
                kind = record.WhichOneof("kind")
                if kind == "step_done":
                    print(f"step {record.step}: loss {record.step_done.loss:.4f}, "
                          f"bubble {record.step_done.bubble:.3f} of ideal {record.step_done.bubble_ideal:.3f}")
                elif kind == "finished":
                    return record.finished
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise
            print(f"stream: {error.details()}; trying again", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--address", default="127.0.0.1:8001")
    parser.add_argument("--text", required=True, help="path of the training text on the stage servers")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--id", default="", help="repeating an id with the same spec is harmless")
    connect.add_arguments(parser)
    options = parser.parse_args()
    if not (ROOT / "proto").is_dir():
        raise SystemExit(f"no folder {ROOT / 'proto'}: run this example from a checkout")
    with tempfile.TemporaryDirectory() as folder:
        make_stubs(folder)
        from stagecoach.v1 import job_pb2, job_pb2_grpc, model_pb2
    with connect.open_channel(options.address, options.certs) as channel:
        jobs = job_pb2_grpc.JobServiceStub(channel)
        request = job_pb2.SubmitJobRequest(id=options.id, spec=make_spec(model_pb2, options.text, options.steps))
        try:
            job = jobs.SubmitJob(request, timeout=10).job
            print(f"job {job.id}")
            end = follow(jobs, job_pb2, job.id)
        except grpc.RpcError as error:
            connect.fail(error)
    print(f"{job_pb2.JobState.Name(end.state)} {end.weights_digest or end.message}")
    return 0 if end.state == job_pb2.JOB_STATE_SUCCEEDED else 1


if __name__ == "__main__":
    sys.exit(main())
