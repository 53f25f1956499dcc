"""Connections and streams that are opened and left, reset or dripped into."""
import concurrent.futures
import contextlib
import json
import socket
import ssl
import threading
import time

import waiting
from cluster import HELD, Cluster, resident
from http2 import Http2
from rows import HOLDS, PARTLY, row, verdict


def health(cluster, server):
    return cluster.cli("operator", "health", server.address).returncode == 0


@row("silent-connections", "1,100 connections that say nothing, no certificate, at a limit of 1,024 open files; then a new stage",
     "the gRPC port dead for good, `/livez` 200, the job failed")
def silent_connections(programs, _):
    with Cluster(programs, limits=1024) as cluster:
        cluster.train()
        with contextlib.ExitStack() as silent:
            for _ in range(1100):
                with contextlib.suppress(OSError):
                    silent.enter_context(cluster.raw(cluster.coordinator))
        waiting.wait_until("the port answers again", lambda: health(cluster, cluster.coordinator), 30)
        stage = cluster.stages[0]
        unhurt = int(cluster.job()["recoveries"]) == 0
        registered = stage.log().count("registered as stage-0")
        stage.kill()
        stage.start()
        waiting.wait_until("the stage is back", lambda: stage.log().count("registered as stage-0") > registered, 30)
        cluster.steps_more(5)
        live = cluster.fetch("/livez") is not None
        recoveries = int(cluster.job()["recoveries"])
        return verdict(unhurt and live, f"{'no' if unhurt else 'a'} recovery by them; the port answers when they are gone, a "
                       f"stage that is killed and starts anew registers, and the job goes on behind {recoveries} recoveries "
                       f"({'; '.join(cluster.recovery_reasons())[:300]})")


def tls_socket(cluster, server, name):
    """name: whose certificate is shown; None: nobody's."""
    context = ssl.create_default_context(cafile=cluster.certs / "client" / "ca.pem")
    if name is not None:
        context.load_cert_chain(cluster.certs / name / "tls.crt", cluster.certs / name / "tls.key")
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(cluster.raw(server), server_hostname="localhost")


@row("endless-headers", "six TLS connections without a certificate to a coordinator with `--token-file`, and six with a user's, each a "
     "HEADERS frame and then CONTINUATION frames for 10 s or 512 MiB",
     "3 GB in 8.5 s, then the coordinator ended")
def endless_headers(programs, _):
    with Cluster(programs, tokens=True) as cluster:
        cluster.train()
        before = resident(cluster.coordinator)
        said = []
        for name in (None, "ann"):
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                sent = list(pool.map(lambda _, name=name: continue_headers(cluster, name), range(6)))
            said.append(f"{'with' if name else 'without'} a certificate {sum(sent) / 2**20:.1f} MiB were taken")
        peak = resident(cluster.coordinator, peak=True) if cluster.coordinator.process.poll() is None else float("inf")
        fine, words = cluster.untouched()
        return verdict(fine and peak < before + 50, f"{', '.join(said)}; coordinator {before:.0f} MiB before, {peak:.0f} at the "
                       f"highest; {words}")


def continue_headers(cluster, name):
    """How many bytes went out until the connection ended, or enough of them."""
    began, sent = time.monotonic(), 0
    field = b"\x00\x01a\x7f\xc1\x3d" + b"b" * 8000  # whole, and below the limit of 8 KiB that gRPC has for a frame
    first = Http2.frame(Http2.HEADERS, 0, 1, field)
    piece = Http2.frame(Http2.CONTINUATION, 0, 1, field) * 8
    with contextlib.suppress(OSError), tls_socket(cluster, cluster.coordinator, name) as connection:
        connection.sendall(Http2.PREFACE + Http2.frame(Http2.SETTINGS, 0, 0) + first)
        while sent < 2**29 // 6 and time.monotonic() - began < 10:
            connection.sendall(piece)
            sent += len(piece)
    return sent


@row("ending-header", "one call with the header `grpclb_client_stats`, without a certificate to a coordinator with `--token-file`, "
     "then with a user's certificate, and with a stage's to a stage",
     "at b8f5c8d: each ended its server by abort()")
def ending_header(programs, _):
    with Cluster(programs, tokens=True) as cluster:
        cluster.train()
        for server, name in ((cluster.coordinator, None), (cluster.coordinator, "ann"), (cluster.stages[0], "stage-1")):
            with contextlib.suppress(OSError), tls_socket(cluster, server, name) as connection:
                call = Http2.headers(1, "/stagecoach.v1.JobService/ListJobs", {"grpclb_client_stats": "x"})
                connection.sendall(Http2.PREFACE + Http2.frame(Http2.SETTINGS, 0, 0) + call)
                connection.settimeout(3)
                read_all(connection)
        servers = {"coordinator": cluster.coordinator, "stage": cluster.stages[0]}
        ended = [name for name, server in servers.items() if server.process.poll() is not None]
        if ended:
            return verdict(False, f"ended: {', '.join(ended)}")
        fine, words = cluster.untouched()
        return verdict(fine, f"all servers live; {words}")


@row("stream-resets", "106,000 streams opened and reset at once, as fast as the coordinator reads, with a user's certificate",
     "2 GB in 8 s, never given back")
def stream_resets(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        before = resident(cluster.coordinator)
        path = "/stagecoach.v1.JobService/ListJobs"
        sent, began, connections = 0, time.monotonic(), 0
        while sent < 106000 and time.monotonic() - began < 120:
            connections += 1
            with contextlib.suppress(OSError), tls_socket(cluster, cluster.coordinator, "ann") as connection:
                connection.sendall(Http2.PREFACE + Http2.frame(Http2.SETTINGS, 0, 0))
                for number in range(0, 106000 - sent, 50):
                    connection.sendall(b"".join(Http2.opened_and_reset(2 * (number + i) + 1, path) for i in range(50)))
                    sent += 50
                    read_what_is_there(connection)
        seconds = time.monotonic() - began
        peak = resident(cluster.coordinator, peak=True)
        fine, words = cluster.untouched()
        time.sleep(60)  # in which memory could be given back
        after = resident(cluster.coordinator)
        saw = (f"{sent} in {seconds:.1f} s over {connections} connections; coordinator {before:.0f} MiB before, {peak:.0f} at the "
               f"highest, {after:.0f} a minute later; {words}")
        return verdict(fine and sent == 106000 and peak < before + 100, saw)


def read_what_is_there(connection):
    connection.settimeout(0)
    with contextlib.suppress(ssl.SSLWantReadError, ValueError):
        while connection.recv(65536):
            pass
    connection.settimeout(20)


def read_all(connection):
    with contextlib.suppress(OSError, ValueError):
        while connection.recv(65536):
            pass


@row("departed-watches", "5,000 watches of a job, each left at once", "312 steps/s became 11, for good")
def departed_watches(programs, messages):
    import grpc
    with Cluster(programs) as cluster:
        cluster.train()
        rate = steps_per_second(cluster)
        before = resident(cluster.coordinator)
        request = messages["job"].WatchJobRequest(id=HELD).SerializeToString()
        channel = cluster.channel("user")
        watch = channel.unary_stream("/stagecoach.v1.JobService/WatchJob", request_serializer=lambda _: request,
                                     response_deserializer=bytes)

        def leave(_):
            """How often the pace of calls or the cap of watches refused it before it was there."""
            for refusals in range(1000):
                stream = watch(None, timeout=20)
                try:
                    next(stream)
                except grpc.RpcError as error:
                    if error.code() != grpc.StatusCode.UNAVAILABLE:
                        raise
                    time.sleep(0.2)  # as an attacker would who wants it to count
                    continue
                stream.cancel()
                return refusals
            raise AssertionError("a watch is refused for ever")
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            refusals = sum(pool.map(leave, range(5000)))
        later = steps_per_second(cluster)
        fine, words = cluster.untouched()
        after = resident(cluster.coordinator)
        return verdict(fine and later > 0.6 * rate and after < before + 50,
                       f"5,000 were there, tries above the pace of calls refused {refusals} times; {rate:.0f} steps/s before, "
                       f"{later:.0f} after; coordinator {before:.0f} MiB before, {after:.0f} after; {words}")


def steps_per_second(cluster, seconds=5):
    first, began = cluster.step(), time.monotonic()
    time.sleep(seconds)  # the measured time
    return (cluster.step() - first) / (time.monotonic() - began)


@row("dripping-http", "200 HTTP requests, a byte a second", "`/livez` dead while they last")
def dripping(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        host, port = cluster.coordinator.http_address.split(":")
        sockets = []
        for _ in range(200):
            sockets.append(socket.create_connection((host, int(port)), timeout=20))
        slowest, ended = 0.0, 0
        for second in range(15):
            for each in sockets:
                with contextlib.suppress(OSError):
                    each.send(b"GET /api/v1/jobs HTTP/1.1\r\n"[second:second + 1])
            began = time.monotonic()
            cluster.fetch("/livez")
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(1)  # the pace of the drip
        for each in sockets:
            each.settimeout(0.05)
            with contextlib.suppress(OSError):
                ended += each.recv(100) != b"" or True
            each.close()
        fine, words = cluster.untouched()
        return verdict(fine and slowest < 1, f"`/livez` in {slowest:.3f} s at most; {ended} of 200 ended within 15 s; {words}")


@row("silent-streams", "960 link streams to a stage without a hello, with another stage's certificate", "all stay open")
def silent_streams(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        streams = []
        for _ in range(10):
            channel = cluster.channel("stage-1", cluster.stages[0].address)
            exchange = channel.stream_stream("/stagecoach.v1.LinkService/Exchange", request_serializer=bytes,
                                             response_deserializer=bytes)
            for _ in range(96):
                done = threading.Event()
                streams.append(exchange(iter(done.wait, None)))
                streams[-1].done_event = done
        began = time.monotonic()
        firsts = 0.0
        with contextlib.suppress(AssertionError):
            waiting.wait_until("the first are ended", lambda: any(stream.done() for stream in streams), 30, every=0.1)
            firsts = time.monotonic() - began
            waiting.wait_until("the stage ends them", lambda: all(stream.done() for stream in streams), 90, every=0.5)
        ended, seconds = sum(stream.done() for stream in streams), time.monotonic() - began
        for stream in streams:
            stream.done_event.set()
            stream.cancel()
        fine, words = cluster.untouched()
        return verdict(fine and ended == 960, f"the first are ended after {firsts:.0f} s, {ended} within {seconds:.0f} s (a "
                       f"stage lets 16 of a connection in at a time); {words}")


@row("cancelled-specs", "60 jobs with specs of 123 KiB submitted and cancelled, then the list of jobs",
     "895 MB, and 8.4 GB for one `GET /api/v1/jobs`")
def cancelled_specs(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        before = resident(cluster.coordinator)
        accepted, size, refusal = 0, 0, ""

        def wide(spec):
            nonlocal size
            spec["model"] = {"sequence": {"width": 64, "context": 64, "vocabulary": 256, "layers": [
                {"embedding": {}}, *({"linear": {"out": 64}} for _ in range(4800)), {"linear": {"out": 256}}]}}
            spec["pipeline"]["stages"] = 7  # more than there are, so that it waits
            size = len(json.dumps(spec))
        for number in range(60):
            result = cluster.submit(job_id=f"wide-{number}", change=wide)
            accepted += result.returncode == 0
            refusal = result.stderr.strip()[:200] or refusal
            cluster.cli("user", "cancel", f"wide-{number}")
        listed = len(cluster.fetch("/api/v1/jobs"))
        fine, words = cluster.untouched()
        after, peak = resident(cluster.coordinator), resident(cluster.coordinator, peak=True)
        taken = "all accepted" if accepted == 60 else f"{accepted} accepted, others refused: {refusal}"
        outcome, saw = verdict(fine and peak < before + 100 and listed < 2**20,
                               f"{size / 1024:.0f} KiB each, {taken}; coordinator {before:.0f} MiB before, {peak:.0f} at the "
                               f"highest, {after:.0f} after; the list has {listed} bytes; {words}")
        return (PARTLY if outcome == HOLDS and accepted < 60 else outcome), saw  # refused specs try nothing of the memory
