"""A stand-in for the coordinator's HTTP side (docs/http_api.md), for tests of the page alone.

It serves the page's files and a job that it makes up in the contract's shapes: a GPipe pipeline of equal
stages on an ideal clock. What tests turn: lose(stage), recover() and go_on(), streams (False: 503), finish(),
untraced, frozen (stages), shown (held-out pictures), clock offsets, `says` (fields of the job as they should be told), others (jobs beside it).
Run by hand:  python3 tests/page/fake_coordinator.py 8000
"""
import contextlib
import gzip
import http.server
import json
import math
import pathlib
import sys
import threading
import time
import urllib.parse

STATIC = pathlib.Path(__file__).resolve().parents[2] / "services/coordinator/page/static"
CHART = pathlib.Path("/usr/share/javascript/chart.js/chart.min.js")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = ("default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
          "object-src 'none'")
MICRO = 8
TARGET_STEPS = 2000
FORWARD, RECOMPUTE, BACKWARD, OPTIMIZER, TRANSFER = 6.0, 6.0, 12.0, 4.0, 0.7  # milliseconds


def gpipe(stages, micro):
    """[stage] -> [(name, micro-batch, begin, end, wait before in ms)]: ascending backwards, every one recomputed."""
    end, free = {}, [0.0] * stages
    rows = [[] for _ in range(stages)]
    def place(stage, name, index, length, ready):
        begin = max(free[stage], ready)
        if begin > free[stage]:
            rows[stage].append(("bubble", index, free[stage], max(free[stage], begin - TRANSFER)))
            rows[stage].append(("receive_wait", index, max(free[stage], begin - TRANSFER), begin))
        rows[stage].append((name, index, begin, begin + length))
        free[stage] = end[name, stage, index] = begin + length
    for index in range(micro):
        for stage in range(stages):
            place(stage, "forward", index, FORWARD, 0 if stage == 0 else end["forward", stage - 1, index] + TRANSFER)
    for index in range(micro):
        for stage in reversed(range(stages)):
            if not (stage == stages - 1 and index == micro - 1):
                place(stage, "recompute", index, RECOMPUTE, 0)
            place(stage, "backward", index, BACKWARD, 0 if stage == stages - 1 else end["backward", stage + 1, index] + TRANSFER)
    length = max(free) + OPTIMIZER
    for stage in range(stages):
        rows[stage].append(("optimizer", -1, free[stage], free[stage] + OPTIMIZER))
        rows[stage].append(("idle", -1, free[stage] + OPTIMIZER, length + 2))
    return rows, length + 2


class FakeCoordinator:
    """One job, `stages` stages, a step each `length` of the schedule. Use as a context manager; .url is its address."""

    def __init__(self, stages=4, steps_done=640, port=0, job_id="fake-gpipe"):
        self.asked = stages
        self.servers = [f"stage-{k}" for k in range(stages)]  # by place
        self.job_id = job_id
        rows, length = gpipe(stages, MICRO)
        self.started = time.time() - steps_done * length / 1e3
        # A placement: its first step, when it began, its stages, and what a step of it looks like.
        self.placements = [{"first": 0, "began": self.started, "servers": list(self.servers), "rows": rows, "length": length}]
        self.stopped_at = None   # time at which it began to recover
        self.happened = []       # [(after this many steps, time, record)]
        self.says = {}
        self.others = {}         # id -> (job, records)
        self.shown = None        # step -> GetShownPicturesResponse with the files
        self.most_listed = 100   # jobs of a page of the list
        self.untraced = False
        self.bundled = None      # path -> bytes of the page's parts as a program has them; None: the files one by one
        self.frozen = 0          # so many first stages train nothing
        self.unreadable = ""     # why no more records can be read
        self.lost = set()
        self.streams = True
        self.ended = None  # (state name, time)
        self.requests = []
        self.offsets = [int(3e6 * stage * (-1) ** stage) for stage in range(stages)]
        self.turned = threading.Condition()  # notified when a test turned something: streams tell at once
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a page that was left
                    owner.get(self)

            def do_POST(self):
                owner.post(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.tell()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    stopping = False

    # What tests turn.

    def tell(self):
        with self.turned:
            self.turned.notify_all()

    def lose(self, stage):
        self.lost.add(stage)
        self.tell()

    def finish(self, state):
        self.ended = (state, time.time())
        self.tell()

    def recover(self, stage):
        """The stage is lost and the job stands still."""
        self.lose(stage)
        self.stopped_at = time.time()
        self.happened.append((self.step(), self.stopped_at, {"recovery": {"message": f"lost stage {stage}: its lease expired"}}))

    def go_on(self, steps=True):
        """With the stages that are left, each of which has more to do; without `steps` the first one takes for ever."""
        now, done = time.time(), self.step()
        self.servers = [name for name in self.servers if int(name.split("-")[1]) not in self.lost]
        rows, length = gpipe(len(self.servers), MICRO)
        self.placements.append({"first": done, "began": now, "servers": list(self.servers), "rows": rows, "length": length})
        self.happened.append((done, now, {"state": {"state": "JOB_STATE_RUNNING", "detail": "running", "message": ""}}))
        self.stopped_at = None if steps else now
        self.says = {} if steps else {"detail": "running", "message": ""}
        self.tell()

    # The story.

    @property
    def stages(self):
        return len(self.servers)

    @property
    def rows(self):
        return self.placements[-1]["rows"]

    @property
    def length(self):
        return self.placements[-1]["length"]

    @property
    def recovering(self):
        return self.stopped_at is not None and not self.ended

    def placement(self, step):
        return next(placed for placed in reversed(self.placements) if placed["first"] < step or placed is self.placements[0])

    def time_of(self, step):
        placed = self.placement(step)
        return placed["began"] + (step - placed["first"]) * placed["length"] / 1e3

    def step(self):
        placed = self.placements[-1]
        end = min(self.ended[1] if self.ended else time.time(), self.stopped_at or math.inf)
        return min(TARGET_STEPS, placed["first"] + int((end - placed["began"]) * 1e3 / placed["length"]))

    def step_record(self, step):
        wobble = math.sin(step * 12.9898) * 0.5 + math.sin(step * 78.233) * 0.5
        return {"loss": 1.6 + 3.2 * math.exp(-step / 220) + 0.05 * wobble,
                "learning_rate": 3e-3 * min(1, step / 100) * (0.55 + 0.45 * math.cos(math.pi * step / TARGET_STEPS)),
                "gradient_norm": 0.6 + 2 * math.exp(-step / 120) + 0.1 * wobble,
                "tokens_per_second": 16384 / (self.length / 1e3) * (1 + 0.02 * wobble),
                "step_seconds": self.length / 1e3 * (1 - 0.02 * wobble),
                "bubble": self.bubble() + 0.008 * wobble, "bubble_ideal": (self.stages - 1) / (MICRO + self.stages - 1),
                "skipped": step == 333, "nonfinite_steps": str(int(step >= 333))}

    def bubble(self):
        waits = sum(e - b for row in self.rows for name, _, b, e in row if name in ("bubble", "receive_wait"))
        return waits / (self.length * self.stages)

    def records(self, after):
        """Every record above `after`; numbers are fixed by the step, so that they are the same every time."""
        result, number = [], 0
        def add(step, at=None, **kind):
            nonlocal number
            number += 1
            if number > after:
                result.append({"number": str(number), "unix_seconds": at or self.time_of(step), "step": str(step), **kind})
        add(0, state={"state": "JOB_STATE_RUNNING", "detail": "running", "message": ""})
        for step in range(1, self.step() + 1):
            for _, at, record in [one for one in self.happened if one[0] == step - 1]:
                add(step - 1, at, **record)
            add(step, step_done=self.step_record(step))
            if step == 420:
                add(400, recovery={"message": "stage-2 lost: its lease expired"})
            if step % 50 == 0:
                add(step, evaluation={"loss": self.step_record(step)["loss"] + 0.12})
            if step % 200 == 0:
                add(step, checkpoint={"error": ""})
        for _, at, record in [one for one in self.happened if one[0] == self.step()]:
            add(self.step(), at, **record)
        if self.ended:
            add(self.step(), finished={"state": f"JOB_STATE_{self.ended[0]}", "message": "", "loss": 2.0, "weights_digest": ""})
        return result, number

    def phases(self, stage, steps):
        seconds = {}
        for name, _, begin, end in self.rows[stage]:
            seconds[name] = seconds.get(name, 0.0) + (end - begin) / 1e3 * steps
        return {"seconds": seconds}

    def memory(self, stage, share=1.0):
        mib = 1 << 20
        return {"parameters": str(24 * mib), "gradients": str(24 * mib), "optimizer": str(48 * mib),
                "activations": str(int((70 - 9 * stage) * share * mib))}

    def job(self):
        step = self.step()
        record = self.step_record(max(1, step))
        state = self.ended[0] if self.ended else "RUNNING"
        job = {"id": self.job_id, "state": f"JOB_STATE_{state}",
               "spec": {"name": self.job_id, "seed": "1",
                        "model": {"gpt": {"layers": "16", "width": "256", "heads": "8", "context": "256", "vocabulary": "128", "dropout": 0.1}},
                        "data": {"text": {"path": "/data/books/walden.txt"}},
                        "training": {"steps": str(TARGET_STEPS), "batch_size": "64", "micro_batches": str(MICRO), "gradient_clip_norm": 1.0,
                                     "optimizer": {"adamw": {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1}},
                                     "learning_rate": {"cosine": {"peak": 3e-3, "warmup_steps": "100", "final": 3e-4}}},
                        "checkpoint": {"every_steps": "200", "keep": "3"}, "evaluation": {"every_steps": "50", "batches": "4"},
                        "precision": "PRECISION_FLOAT32",
                        "pipeline": {"stages": str(self.asked), "schedule": "SCHEDULE_KIND_GPIPE", "rematerialization": "REMATERIALIZATION_ALWAYS",
                                     "partition": {"rule": "PARTITION_RULE_AUTO", "cuts": []}}},
               "detail": "recovering" if self.recovering else "running" if not self.ended else state.lower(),
               "message": "stage lost" if self.recovering else "", "generation": "2", "step": str(step),
               "evaluation_loss": self.step_record(step // 50 * 50)["loss"] + 0.12, "skipped_steps": str(int(step >= 333)),
               "recoveries": str(int(step >= 420) + len(self.placements) - 1 + int(self.recovering)), "last_checkpoint_step": str(step // 200 * 200),
               "forecast_step_seconds": self.length / 1e3 * 0.97, "submitted_unix_seconds": self.started - 2,
               "stages": [{"name": name, "address": f"127.0.0.1:{8101 + int(name.split('-')[1])}", "first_layer": str(5 * k), "stage": k,
                           "last_layer": str(5 * k + 5), "phases": self.phases(k, 1), "memory_peak": self.memory(k)}
                          for k, name in enumerate(self.servers) if not (self.recovering and int(name.split("-")[1]) in self.lost)],
               "pipeline_stages": str(self.stages), "weights_digest": "", "weights_folder": ""}
        for field in ("loss", "tokens_per_second", "step_seconds", "bubble", "bubble_ideal"):
            job[field] = record[field]
        if self.ended:
            job["finished_unix_seconds"] = self.ended[1]
        return {**job, **self.says}

    def stage_infos(self):
        now = time.time()
        result = []
        for number in range(self.asked):
            uptime = now - self.started
            lost = number in self.lost
            k = self.servers.index(f"stage-{number}") if f"stage-{number}" in self.servers else 0
            links = [{"peer": peer, "sent_bytes": str(int(uptime * 18e6)), "received_bytes": str(int(uptime * 18e6)),
                      "inflight_messages": "1", "reconnects": "0", "transfer_p95_seconds": TRANSFER / 1e3}
                     for peer, there in (("upstream", k > 0), ("downstream", k + 1 < self.stages)) if there]
            result.append({"stage": {"name": f"stage-{number}", "incarnation": "1", "address": f"127.0.0.1:{8101 + number}", "device": "cpu",
                                     "version": "1.0.0", "fingerprint": "", "memory_limit_bytes": str(256 << 20)},
                           "state": "lost" if lost else "busy", "job_id": "" if lost else self.job_id,
                           "last_heartbeat_unix_seconds": now - (2.0 if lost else 0.3), "waiting_for": "" if k else "gradient 3 from stage-1",
                           "telemetry": {"phases": self.phases(k, uptime * 1e3 / self.length), "memory": self.memory(k, 0.6),
                                         "memory_peak": self.memory(k), "memory_limit_bytes": str(256 << 20), "links": links,
                                         "uptime_seconds": uptime}})
        return result

    def trace(self, steps):
        last = self.step()
        stages = []
        for place, name in enumerate(self.servers):
            if self.untraced:
                stages.append({"stage": place, "name": name, "spans": [], "error": f"{name} cannot be reached"})
                continue
            spans = []
            for step in range(max(1, last - steps + 1), last + 1):
                placed = self.placement(step)
                k = placed["servers"].index(name)  # where it was then
                zero = int((placed["began"] + (step - 1 - placed["first"]) * placed["length"] / 1e3) * 1e9) + self.offsets[place]
                def span(name, track, index, begin, end, size=0, peer=""):
                    spans.append({"name": name, "track": f"TRACE_TRACK_{track}", "step": str(step - 1), "attempt": 1, "micro_batch": index,
                                  "begin_unix_nanos": str(zero + int(begin * 1e6)), "end_unix_nanos": str(zero + int(end * 1e6)),
                                  "bytes": str(size), "peer": peer})
                there = len(placed["servers"])
                for phase, index, begin, end in placed["rows"][k]:
                    if k < self.frozen and phase in ("recompute", "backward"):
                        continue
                    span(phase, "COMPUTE", index, begin, end)
                    size = 1 << 20
                    if phase == "forward" and k + 1 < there:
                        span("activation", "SEND", index, end, end + TRANSFER, size, "downstream")
                    if phase == "forward" and k > 0:
                        span("activation", "RECEIVE", index, begin - TRANSFER, begin, size, "upstream")
                    if phase == "backward" and k > 0:
                        span("gradient", "SEND", index, end, end + TRANSFER, size, "upstream")
                    if phase == "backward" and k + 1 < there:
                        span("gradient", "RECEIVE", index, begin - TRANSFER, begin, size, "downstream")
            stages.append({"stage": place, "name": name, "spans": spans, "now_unix_nanos": str(int(time.time() * 1e9)),
                           "clock_offset_nanos": str(self.offsets[place]), "clock_error_nanos": "90000", "error": ""})
        return {"stages": stages}

    def logs(self, stage):
        sources = ["coordinator"] + [f"stage-{k}" for k in range(self.stages)]
        if stage != "":
            sources = [f"stage-{stage}"]
        levels = ["info", "info", "warning", "debug"]
        return {"lines": [{"number": str(i + 1), "unix_seconds": self.started + i, "level": levels[i % 4], "source": sources[i % len(sources)],
                           "job_id": self.job_id, "message": f"line {i} of the fixture: weights loaded, links open"} for i in range(60)],
                "unreachable": []}

    # HTTP.

    def reply(self, handler, status, body, kind="application/json", cache="no-store"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        if self.bundled and "gzip" in handler.headers.get("Accept-Encoding", ""):
            data = gzip.compress(data)
            handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(data)))
        handler.send_header("Cache-Control", cache)
        handler.send_header("Content-Security-Policy", POLICY)
        handler.send_header("X-Content-Type-Options", "nosniff")
        handler.end_headers()
        handler.wfile.write(data)

    def not_found(self, handler, what):
        self.reply(handler, 404, {"error": {"code": "NOT_FOUND", "message": what}})

    def get(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        self.requests.append(handler.path)
        parts = [part for part in url.path.split("/") if part]
        if self.bundled and url.path in self.bundled:
            return self.reply(handler, 200, self.bundled[url.path], TYPES.get(pathlib.PurePath(url.path).suffix, TYPES[".html"]),
                              "no-cache" if url.path == "/" else "private, max-age=31536000, immutable")
        if url.path == "/" or (parts and parts[0] == "assets"):
            return self.file(handler, "index.html" if url.path == "/" else parts[-1])
        if parts[:2] != ["api", "v1"]:
            return self.not_found(handler, "no such page")
        if parts[2] == "stream":
            return self.stream(handler, query)
        if parts[2] == "stages":
            return self.reply(handler, 200, {"stages": self.stage_infos()})
        if parts[2] == "logs":
            return self.reply(handler, 200, self.logs(query.get("stage", "")))
        if parts[2] == "jobs" and len(parts) == 3:
            return self.reply(handler, 200, self.page_of_jobs(int(query.get("after") or 0), int(query.get("limit", 100))))
        if parts[2] == "jobs" and parts[3] in self.others:
            return self.other(handler, *self.others[parts[3]], parts[4:], query)
        if parts[2] != "jobs" or parts[3] != self.job_id:
            return self.not_found(handler, f"no job {parts[3] if len(parts) > 3 else ''}")
        if len(parts) == 4:
            return self.reply(handler, 200, self.job())
        if parts[4] == "records":
            if self.unreadable:
                return self.reply(handler, 400, {"error": {"code": "FAILED_PRECONDITION", "message": self.unreadable}})
            records, last = self.records(int(query.get("after", 0)))
            page = records[:int(query.get("limit", 10000))]
            return self.reply(handler, 200, {"records": page, "next": str(page[-1]["number"] if page else last), "complete": len(page) == len(records)})
        if parts[4] == "pictures" and self.shown:
            told = self.shown(self.step() // 50 * 50)
            return self.reply(handler, 200, told if query.get("files") == "1" else {**told, "files": []})
        if parts[4] == "trace":
            return self.reply(handler, 200, self.trace(int(query.get("steps", 5))))
        return self.not_found(handler, "no such path")

    def jobs(self):
        return [self.job()] + [job for job, _ in self.others.values()]

    def page_of_jobs(self, begin, limit):
        """A token is a place in the list here."""
        end = begin + min(limit, self.most_listed)
        jobs = self.jobs()
        return {"jobs": jobs[begin:end], "next_page_token": str(end) if end < len(jobs) else ""}

    def other(self, handler, job, records, rest, query):
        if not rest:
            return self.reply(handler, 200, job)
        if rest == ["records"]:
            page = [record for record in records if int(record["number"]) > int(query.get("after", 0))]
            return self.reply(handler, 200, {"records": page, "next": str(len(records)), "complete": True})
        self.reply(handler, 200, {"stages": []})

    def file(self, handler, name):
        path = CHART if name == "chart.min.js" else STATIC / name
        if not path.is_file():
            return self.not_found(handler, f"no file {name}")
        data = path.read_bytes()
        if name == "page.css":  # axe cannot read what a style sheet imports
            data = b"".join((STATIC / line.split('"')[1]).read_bytes() for line in data.decode().splitlines())
        self.reply(handler, 200, data, TYPES[path.suffix])

    def post(self, handler):
        handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if handler.headers.get("X-Stagecoach-Request") != "cancel":
            return self.reply(handler, 403, {"error": {"code": "PERMISSION_DENIED", "message": "header missing"}})
        self.finish("CANCELLED")
        self.reply(handler, 200, self.job())

    def stream(self, handler, query):
        if not self.streams:
            return self.reply(handler, 503, {"error": {"code": "RESOURCE_EXHAUSTED", "message": "too many streams"}})
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Cache-Control", "no-store")
        handler.end_headers()
        after = int(query.get("after", 0))
        first = True
        told = ""
        def send(event, data):
            handler.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())
        try:
            while not self.stopping and self.streams:
                if first:
                    send("jobs", self.page_of_jobs(0, 100))
                if query.get("job") == self.job_id:
                    send("job", self.job())
                    records, last = self.records(after)
                    if records and not self.unreadable:
                        after = last
                        send("records", {"records": records, "next": str(last)})
                    if self.unreadable and self.unreadable != told:
                        told = self.unreadable
                        send("unreadable", {"error": {"code": "FAILED_PRECONDITION", "message": told}})
                send("stages", {"stages": self.stage_infos()})
                handler.wfile.flush()
                first = False
                with self.turned:  # as the coordinator: at least every half second
                    self.turned.wait(0.5)
            send("end", {})
        except (BrokenPipeError, ConnectionResetError):
            pass


if __name__ == "__main__":
    with FakeCoordinator(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000) as fake:
        print(fake.url, flush=True)
        fake.thread.join()
