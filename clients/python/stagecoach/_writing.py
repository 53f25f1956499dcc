"""Jobs that write texts with the weights of another job, as `stagecoach generate --stages K` submits them."""
from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Sequence

from . import errors
from ._proto import model_pb2
from .results import Event

_MOST_NAME_CHARACTERS = 63
_FEWEST_PROMPTS, _MOST_PROMPTS, _GROUPS = 16, 64, 8


def writing_spec(trained: model_pb2.JobSpec, job_id: str, generate: model_pb2.Generate, prompts: Sequence[str], *,
                 step: Optional[int], seed: int, stages: int) -> model_pb2.JobSpec:
    """The trained job's spec, changed to write. Its network, data with their tokenizer and precision stay."""
    if trained.HasField("write"):
        raise errors.InvalidJob(f"job {job_id}: writes texts and has no weights; name a job that trains")
    if trained.training.HasField("lora"):
        raise errors.InvalidJob(f"job {job_id}: has adapters, and a cluster's stages take whole weights")
    if not prompts or stages < 1:
        raise errors.InvalidJob("generate wants at least one prompt, and one stage or more")
    spec = model_pb2.JobSpec()
    spec.CopyFrom(trained)
    spec.name = f"generate-{job_id}"[:_MOST_NAME_CHARACTERS]
    for field in ("initialize", "resume", "snapshot", "evaluation", "checkpoint", "write"):
        spec.ClearField(field)
    for field in ("freeze", "until", "average"):
        spec.training.ClearField(field)
    for field in ("min_stages", "schedule", "own_schedule", "partition"):
        spec.pipeline.ClearField(field)
    spec.checkpoint.never = True
    spec.resume.job = job_id
    spec.resume.fresh_optimizer = True
    if step is not None:
        spec.resume.step = step
    spec.seed = seed
    spec.write.lines.extend(prompts)
    spec.write.generate.CopyFrom(generate)
    # As many groups at a time as keep all stages at work; a group has an eighth of the prompts, but 16 to 64.
    share = -(-len(prompts) // _GROUPS)
    group = min(len(prompts), max(_FEWEST_PROMPTS, min(share, _MOST_PROMPTS)))
    spec.training.micro_batches = min(stages, -(-len(prompts) // group))
    spec.training.batch_size = spec.training.micro_batches * group
    spec.pipeline.stages = stages
    return spec


def texts_of(events: Iterable[Event], lines: int) -> Optional[List[str]]:
    """The lines' texts from the pieces of all records; None if pieces are missing. A piece may come again, equal."""
    texts: Dict[int, bytearray] = {line: bytearray() for line in range(lines)}
    done = set()
    for event in events:
        for piece in event.values.get("texts", ()) if event.kind == "written" else ():
            text = texts.get(piece["line"])
            if text is None or piece["offset"] > len(text):
                return None
            text[piece["offset"]:piece["offset"] + len(piece["text"])] = piece["text"]
            if piece["done"]:
                done.add(piece["line"])
    if len(done) < lines:
        return None
    return [texts[line].decode("utf-8", "replace") for line in range(lines)]
