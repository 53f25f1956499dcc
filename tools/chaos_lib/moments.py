"""Named moments of a job's life, and how each is known from outside: from the messages that pass the proxy, from the job's
records, from the folders. A moment is a list of signs that must be seen in order; at the last one the blow falls, before the
message in question arrives. A sign may do something itself, as the kill from which the job is recovering.
"""
import dataclasses
import itertools

from . import http2

# Of the job that the matrix trains; see JOB.
STEPS, MIDDLE_STEP, AVERAGED_STEP = 8, 4, 4
JOB = {
    "name": "moments", "seed": 3,
    "model": {"gpt": {"layers": 3, "width": 16, "heads": 2, "context": 16, "vocabulary": 128, "dropout": 0.1}},
    "data": {"text": {"path": "text.txt"}},
    "training": {
        "steps": STEPS, "batch_size": 6, "micro_batches": 4, "optimizer": {"adamw": {}},
        "learning_rate": {"cosine": {"peak": 1e-2, "warmup_steps": 2, "final": 1e-3}}, "gradient_clip_norm": 1.0,
        "average": {"decay": 0.9}},
    "pipeline": {"stages": 3, "schedule": "gpipe", "rematerialization": "always", "partition": "auto"},
    "checkpoint": {"every_steps": 3, "keep": 5},
    "evaluation": {"every_steps": AVERAGED_STEP, "batches": 2},
}
TEXT = "The stage coach rolls from town to town and no passenger is lost on the way. " * 100
NOTHING, TRAIN, EVALUATE = 0, 1, 2  # WorkKind

ROLES = {"coordinator": ["coordinator"], "first": ["stage-0"], "middle": ["stage-1"], "last": ["stage-2"],
         "two": ["coordinator", "stage-1"], "all": ["coordinator", "stage-0", "stage-1", "stage-2"]}
ACTIONS = ("kill", "stop")


@dataclasses.dataclass
class Message:
    path: str
    method: str  # without its service
    way: str
    body: bytes

    def __post_init__(self):
        self.fields = http2.fields(self.body) if self.method != "Exchange" else {}

    @property
    def step(self):
        """Of the fence of a control message."""
        return http2.fields(self.fields.get(1, b"")).get(4, 0)

    def frame_step(self):
        """Of a tensor's frame on a link; None of anything else."""
        frame = http2.fields(self.body[:200]).get(3)
        return http2.fields(frame).get(3, 0) if frame is not None else None


def passes(method, way, condition=lambda message: True, times=1):
    """The n-th such message."""
    count = itertools.count(1)

    def seen(event):
        return isinstance(event, Message) and event.method == method and event.way == way and condition(event) and \
            next(count) == times
    return seen


def runs(work, step=None, times=1, average=None):
    """A Run on its way to a stage."""
    return passes("Run", "up", lambda message: message.fields.get(3, 0) == work and (step is None or message.step == step) and
                  (average is None or bool(message.fields.get(5, 0)) == average), times)


def record(condition):
    return lambda event: isinstance(event, dict) and condition(event)


def enters(detail):
    return record(lambda event: event.get("state", {}).get("detail") == detail)


def finished_step(step):
    return record(lambda event: "step_done" in event and int(event["step"]) == step)


def appears(prefix):
    """A file or folder whose name, below the folder of checkpoints or exports, begins so."""
    return lambda event: isinstance(event, str) and event.startswith(prefix)


def frame(way, step):
    return passes("Exchange", way, lambda message: message.frame_step() == step)


@dataclasses.dataclass
class Moment:
    name: str
    text: str
    signs: object  # makes the list of (sign, what to do then: None, ("kill" | "drain" | "hold", server)); the last one's is the blow


def moment(name, text, *signs):
    """Signs are made anew for every trial: they count."""
    return Moment(name, text, lambda: [sign() if isinstance(sign(), tuple) else (sign(), None) for sign in signs])


def then(sign, action, server):
    return lambda: (sign(), (action, server))


def killed(server):
    """What most recoveries here begin with."""
    return then(lambda: finished_step(MIDDLE_STEP), "kill", server)


MOMENTS = [
    moment("registering", "the last stage's registration is on its way", lambda: passes("RegisterStage", "up", times=3)),
    moment("registered", "the answer to the last registration is on its way",
           lambda: passes("RegisterStage", "down", times=3)),
    moment("heartbeat", "a heartbeat is on its way while a step waits, whose command the proxy holds until then",
           then(lambda: runs(TRAIN, MIDDLE_STEP, 3), "hold", "stage-1"), lambda: passes("RenewLease", "up")),
    moment("submitted", "the job's first record is there", lambda: record(lambda event: True)),
    moment("profiling", "the question for the layers' times is on its way", lambda: passes("ProfileModel", "up")),
    moment("profiled", "the layers' times are on their way back", lambda: passes("ProfileModel", "down")),
    moment("planned", "the job has a plan", lambda: enters("planned")),
    moment("loading", "the first cell is to be loaded", lambda: passes("LoadCell", "up")),
    moment("loaded", "the last answer to a load is on its way", lambda: passes("LoadCell", "down", times=3)),
    moment("greeting", "the first message of a link is on its way", lambda: passes("Exchange", "up")),
    moment("before-first-step", "the first step's command is on its way", lambda: runs(TRAIN, 0)),
    moment("forward", "an activation of a step is on its way", lambda: frame("up", MIDDLE_STEP)),
    moment("backward", "a gradient of a step is on its way", lambda: frame("down", MIDDLE_STEP)),
    moment("first-report", "the first report of a step is on its way", lambda: runs(TRAIN, MIDDLE_STEP),
           lambda: passes("Run", "down")),
    moment("last-report", "the last report of a step is on its way", lambda: runs(TRAIN, MIDDLE_STEP, 3),
           lambda: passes("Run", "down", times=3)),
    moment("between-steps", "a step is done, and recorded", lambda: finished_step(MIDDLE_STEP + 1)),
    moment("decision-to-one", "the decision about a step goes to the first stage that hears of it",
           lambda: runs(TRAIN, MIDDLE_STEP + 1)),
    moment("decision-to-others", "all but one stage have heard the decision about a step",
           lambda: runs(TRAIN, MIDDLE_STEP + 1, 3)),
    moment("decision-alone", "a decision goes without a next step, in front of a checkpoint", lambda: runs(NOTHING, 3)),
    moment("decision-alone-to-others", "all but one have heard it", lambda: runs(NOTHING, 3, 3)),
    moment("shards-asked", "the first stage is to write its shard", lambda: passes("WriteShard", "up")),
    moment("shard-written", "the first shard is written", lambda: passes("WriteShard", "down")),
    moment("between-shards-and-commit", "all shards are written, and the coordinator does not know it yet",
           lambda: passes("WriteShard", "down", times=3)),
    moment("committed", "the checkpoint's folder has its name", lambda: appears("checkpoints/step-")),
    moment("commit-recorded", "the commit is recorded", lambda: record(lambda event: "checkpoint" in event)),
    moment("evaluating", "an evaluation's first mini-batch is on its way", lambda: runs(EVALUATE)),
    moment("evaluated", "an evaluation's second mini-batch is on its way", lambda: runs(EVALUATE, times=4)),
    moment("averages-in", "averages take the weights' place", lambda: runs(EVALUATE, average=True)),
    moment("averages-in-at-others", "all but one have them in the weights' place", lambda: runs(EVALUATE, times=3, average=True)),
    moment("averages-out", "weights come back behind averages", lambda: runs(EVALUATE, average=True), lambda: runs(TRAIN)),
    moment("recovering", "a stage was killed, and the job says that it recovers", killed("stage-1"),
           lambda: record(lambda event: "recovery" in event)),
    moment("aborting", "a stage was killed, and the others are told to end the step", killed("stage-1"),
           lambda: passes("Abort", "up")),
    moment("loading-again", "a stage was killed, and the first cell is to be loaded again", killed("stage-1"),
           lambda: passes("LoadCell", "up")),
    moment("loaded-again", "a stage was killed, and the last cell is loaded again", killed("stage-1"),
           lambda: passes("LoadCell", "down", times=3)),
    moment("registering-again", "the coordinator was killed, and a stage registers with the next one", killed("coordinator"),
           lambda: passes("RegisterStage", "up")),
    moment("taken-up", "the coordinator was killed, and the next one has the first cell loaded", killed("coordinator"),
           lambda: passes("LoadCell", "up")),
    moment("draining", "a stage got SIGTERM, and its heartbeat says that it drains",
           then(lambda: runs(TRAIN, MIDDLE_STEP), "drain", "stage-1"),
           lambda: passes("RenewLease", "up", lambda message: message.fields.get(3) == b"draining")),
    moment("last-step", "the last step's command is on its way", lambda: runs(TRAIN, STEPS - 1)),
    moment("last-decision", "the last step's decision is on its way", lambda: runs(NOTHING, STEPS)),
    moment("last-commit", "the last checkpoint has its name", lambda: appears(f"checkpoints/step-{STEPS:012}")),
    moment("exporting", "the export's folder is there", lambda: appears("exports/")),
    moment("releasing", "the first cell is to be freed, at the job's end", lambda: passes("ReleaseCell", "up")),
]


@dataclasses.dataclass
class Trial:
    moment: Moment
    role: str
    action: str

    @property
    def name(self):
        return f"{self.moment.name}/{self.role}/{self.action}"


def trials(only=""):
    """All, or those whose name has one of the words, split at commas, in it."""
    words = [word for word in only.split(",") if word]
    everything = [Trial(*what) for what in itertools.product(MOMENTS, ROLES, ACTIONS)]
    return [trial for trial in everything if not words or any(word in trial.name for word in words)]
