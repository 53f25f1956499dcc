"""Calls with certificates of the wrong role."""
import concurrent.futures
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request

import waiting
from cluster import HELD, Cluster, checked, code_of, crc32c
from rows import row, verdict

HIGHEST = 2**64 - 1
REFUSALS = {"PERMISSION_DENIED", "UNAVAILABLE"}  # the latter for the pace of calls


def fence(messages, term=HIGHEST):
    return messages["stage"].Fence(job=HELD, term=term, generation=HIGHEST, step=1)


def refused(results):
    """All of them PERMISSION_DENIED, and which were not."""
    others = [f"{name}: {code}" for name, (code, _) in results.items() if code != "PERMISSION_DENIED"]
    return not others, f"{len(results) - len(others)} of {len(results)} calls refused" + (f", not {', '.join(others)}" if others else "")


@row("roles-stage", "a stage's certificate submits, lists, cancels and plans jobs", "all of them done")
def stage_as_user(programs, messages):
    with Cluster(programs) as cluster:
        cluster.train()
        job = messages["job"]
        channel = cluster.channel("stage")
        results = {name: code_of(channel, "JobService", name, request) for name, request in {
            "SubmitJob": job.SubmitJobRequest(id="evil"), "ListJobs": job.ListJobsRequest(),
            "CancelJob": job.CancelJobRequest(id=HELD), "PlanJob": job.PlanJobRequest(),
            "ExportWeights": job.ExportWeightsRequest(), "WatchJob": job.WatchJobRequest(id=HELD)}.items()}
        right, words = refused(results)
        fine, more = cluster.untouched()
        return verdict(right and fine, f"{words}; {more}")


@row("roles-user", "a user's certificate calls a stage: LoadCell, Abort and ReleaseCell with term 2^64-1, WriteShard into a "
     "folder of its choice, ProfileModel, snapshots", "loaded, written, the running job failed in 0.2 s")
def user_as_coordinator(programs, messages):
    with Cluster(programs) as cluster:
        cluster.train()
        stage, snapshot = messages["stage"], messages["snapshot"]
        there = fence(messages)
        results = {}
        for number, server in enumerate(cluster.stages):
            channel = cluster.channel("user", server.address)
            for name, request in {
                    "LoadCell": stage.LoadCellRequest(fence=there), "Run": stage.RunRequest(),
                    "Abort": stage.AbortRequest(fence=there, reason="for fun"),
                    "ReleaseCell": stage.ReleaseCellRequest(fence=there),
                    "WriteShard": stage.WriteShardRequest(fence=there, folder=str(cluster.folder / "evil")),
                    "ProfileModel": stage.ProfileModelRequest()}.items():
                results[f"{name} of stage {number}"] = code_of(channel, "StageService", name, request)
            results[f"PutSnapshotPart of stage {number}"] = code_of(channel, "SnapshotService", "PutSnapshotPart",
                                                                    snapshot.PutSnapshotPartRequest(fence=there))
        right, words = refused(results)
        fine, more = cluster.untouched()
        return verdict(right and fine and not (cluster.folder / "evil").exists(), f"{words}; {more}")


@row("roles-link", "a user's certificate opens a link to a stage", "open")
def user_as_neighbour(programs, messages):
    import grpc
    with Cluster(programs) as cluster:
        cluster.train()
        codes = set()
        for server in cluster.stages:
            exchange = cluster.channel("user", server.address).stream_stream(
                "/stagecoach.v1.LinkService/Exchange", request_serializer=bytes, response_deserializer=bytes)
            try:
                list(exchange(iter([b""]), timeout=20))
                codes.add("OK")
            except grpc.RpcError as error:
                codes.add(error.code().name)
        fine, more = cluster.untouched()
        return verdict(codes == {"PERMISSION_DENIED"} and fine, f"{', '.join(sorted(codes))}; {more}")


@row("roles-neighbour", "another stage's certificate says the hello of the running job's next 15 boundaries, then the stage in "
     "front is killed and comes back", "its streams were taken for the neighbour's (at b64fd6e: two more recoveries)")
def another_stage_as_neighbour(programs, messages):
    import grpc
    with Cluster(programs) as cluster:
        cluster.train()
        state, term = cluster.job(), int(re.search(r"with the coordinator, term (\d+)", cluster.stages[0].log())[1])
        first, second = (next(stage for stage in cluster.stages if stage.address == placed["address"])
                         for placed in state["stages"])
        exchange = cluster.channel(f"stage-{cluster.stages.index(second)}", second.address).stream_stream(
            "/stagecoach.v1.LinkService/Exchange", request_serializer=bytes, response_deserializer=bytes)
        said, streams = threading.Event(), []
        for ahead in range(1, 16):
            there = messages["stage"].Fence(job=HELD, term=term, generation=int(state["generation"]) + ahead)
            hello = messages["link"].Hello(fence=there, protocol=1, capacity=4)
            hello.crc32c = crc32c(hello.SerializeToString(deterministic=True))
            streams.append(exchange(forged(messages["link"].ExchangeRequest(hello=hello), said)))
        first.kill()
        first.serve_on(first.address)
        waiting.wait_until("the job recovers", lambda: int(cluster.job().get("recoveries", 0)) > 0, 60)
        cluster.steps_more(5)
        recoveries, codes, named = int(cluster.job()["recoveries"]), [], 0
        for stream in streams:
            if stream.done():
                codes.append(stream.code().name)
                named += "certificate is that of" in stream.details()
        said.set()
        for stream in streams:
            stream.cancel()
        return verdict(recoveries == 1 and named == len(codes),
                       f"{recoveries} recoveries; of the 15 streams ended {len(codes)}: "
                       f"{', '.join(sorted(set(codes))) or 'none'}, for the certificate {named}")


def forged(request, until):
    """What a stream says: this, and then nothing."""
    yield request.SerializeToString()
    until.wait()


@row("terms", "the coordinator's own certificate aborts with term 2^64-1", "the running job failed in 0.2 s")
def highest_term(programs, messages):
    with Cluster(programs) as cluster:
        cluster.train()
        channel = cluster.channel("coordinator", cluster.stages[0].address)
        code, text = code_of(channel, "StageService", "Abort",
                             checked(messages["stage"].AbortRequest(fence=fence(messages), reason="for fun")))
        fine, more = cluster.untouched()
        return verdict(code != "OK" and fine, f"{code}: {text[:120]}; {more}")


@row("profile-spam", "ProfileModel to a stage as fast as it goes for 5 s, a user's certificate", "the job failed in 1 s")
def profile_spam(programs, messages):
    with Cluster(programs) as cluster:
        cluster.train()
        channel = cluster.channel("user", cluster.stages[0].address)
        codes, ends = {}, time.monotonic() + 5
        while time.monotonic() < ends:
            code, _ = code_of(channel, "StageService", "ProfileModel", messages["stage"].ProfileModelRequest())
            codes[code] = codes.get(code, 0) + 1
        fine, more = cluster.untouched()
        counts = ", ".join(f"{count} {code}" for code, count in codes.items())
        return verdict(set(codes) <= REFUSALS and fine, f"{counts}; {more}")


def registering(cluster, messages, holder):
    """A call that registers a name by the holder's certificate, and gives the answer's code."""
    fleet = messages["fleet"]
    channel = cluster.channel(holder)

    def register(name, address="127.0.0.1:1"):
        return code_of(channel, "FleetService", "RegisterStage", checked(fleet.RegisterStageRequest(stage=fleet.Stage(
            name=name, incarnation="evil", address=address, device="cpu", version="0", fingerprint="none"))))[0]
    return register


@row("ghosts", "9,999 names registered with a stage's certificate, its own with numbers behind it; then a stage that is new",
     "at b8f5c8d: all registered within 7.5 s, and no new stage could for an hour")
def ghosts(programs, messages):
    with Cluster(programs, stages=3) as cluster:
        cluster.train()
        register = registering(cluster, messages, "stage-1")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            codes = list(pool.map(register, [f"stage-1-{i}" for i in range(9999)]))
        new = registering(cluster, messages, "stage-2")("stage-2-0")
        fine, more = cluster.untouched()
        return verdict(new == "OK" and codes.count("OK") <= 1024 and fine,
                       f"{codes.count('OK')} registered; the new stage: {new}; {more}")


@row("alias", "a name of its own registered for 20 s with a stage's certificate at the address of the stage beside it; meanwhile "
     "a job for one stage", "at b8f5c8d: loaded over the running one, 7 recoveries in 20 s")
def alias(programs, messages):
    with Cluster(programs) as cluster:
        cluster.train()
        register = registering(cluster, messages, "stage-1")
        other = register("stage-1-8", "unix:/tmp/x")
        codes, ends, submitted = set(), time.monotonic() + 20, False
        while time.monotonic() < ends:
            codes.add(register("stage-1-7", cluster.stages[0].address))
            if not submitted:
                submitted = cluster.submit(job_id="lured", change=lambda spec: spec["pipeline"].update(stages=1)).returncode == 0
            time.sleep(0.3)  # within the lease
        lured = cluster.job("lured")
        fine, more = cluster.untouched()
        return verdict(codes == {"OK"} and submitted and other == "INVALID_ARGUMENT" and int(lured.get("step", 0)) == 0 and fine,
                       f"registered: {', '.join(sorted(codes))}, with unix: {other}; the job for it is "
                       f"{lured.get('state', 'unknown')} at step {lured.get('step', 0)}, "
                       f"\"{str(lured.get('message', ''))[:160]}\"; {more}")


@row("registrations", "a live stage's name registered again and again for 25 s with another stage's certificate, and 9,998 invented "
     "names", "112 recoveries; new stages could not register")
def registrations(programs, messages):
    with Cluster(programs) as cluster:
        cluster.train()
        register = registering(cluster, messages, "stage-1")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            codes = set(pool.map(register, [f"invented-{i}" for i in range(9998)]))
        ends, tries = time.monotonic() + 25, 0
        while time.monotonic() < ends:
            codes.add(register("stage-0"))
            tries += 1
        fine, more = cluster.untouched()
        return verdict(codes <= REFUSALS and fine, f"9,998 and {tries} calls: {', '.join(sorted(codes))}; {more}")


@row("other-user", "a user's certificate looks at and cancels another user's job", "done")
def other_user(programs, messages):
    with Cluster(programs) as cluster:
        cluster.train()
        job = messages["job"]
        channel = cluster.channel("other user")
        results = {name: code_of(channel, "JobService", name, request) for name, request in {
            "GetJob": job.GetJobRequest(id=HELD), "CancelJob": job.CancelJobRequest(id=HELD),
            "WatchJob": job.WatchJobRequest(id=HELD), "ListCheckpoints": job.ListCheckpointsRequest(job_id=HELD),
            "GetTrace": job.GetTraceRequest(job_id=HELD)}.items()}
        right, words = refused(results)
        listed = HELD in cluster.cli("other user", "list").stdout
        fine, more = cluster.untouched()
        return verdict(right and not listed and fine, f"{words}; the list {'names' if listed else 'does not name'} it; {more}")


@row("http", "HTTP: another site's Host and Origin on loopback; off loopback without a login; `--listen=127.evil.example`",
     "answered, cancelled, taken for loopback")
def http(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        url = f"http://{cluster.coordinator.http_address}/api/v1/jobs"

        def ask(address, data=None, **headers):
            request = urllib.request.Request(address, data=data, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code
        host = ask(url, Host="evil.example")
        cancel = ask(f"{url}/{HELD}/cancel", data=b"", Origin="http://evil.example")

        def starts(*flags):
            state = cluster.folder / "other-state"
            result = subprocess.run([programs / "stagecoach-coordinator", "--state-dir", state, *flags], capture_output=True,
                                    text=True, timeout=20)
            return result.returncode
        open_http = starts("--listen", "127.0.0.1:0", "--http", "0.0.0.0:0")
        name = starts("--listen", "127.evil.example:0", "--http", "127.0.0.1:0")
        fine, more = cluster.untouched()
        return verdict(host >= 400 and cancel >= 400 and open_http != 0 and name != 0 and fine,
                       f"Host {host}, Origin {cancel}; off loopback it ends with {open_http}, with such a name with {name}; {more}")
