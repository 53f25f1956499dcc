"""Requests that ask for more than a server has, before any work is done."""
import json
import os
import threading
import time

from cluster import HELD, SPEC, Cluster, resident
from rows import row, verdict
import waiting


def plan(cluster, stages, micro_batches, timeout=60):
    """Seconds that it took, and the answer."""
    spec = json.loads(json.dumps(SPEC))
    spec["model"]["gpt"].update(layers=stages + 1, width=16, heads=1)
    spec["training"].update(batch_size=micro_batches, micro_batches=micro_batches)
    spec["pipeline"]["stages"] = stages
    spec["data"]["text"]["path"] = str(cluster.data / "input.txt")
    began = time.monotonic()
    result = cluster.cli("user", "plan", "--server", "-", input=json.dumps(spec), timeout=timeout)
    return time.monotonic() - began, result


@row("plan-budget", "PlanJob with K = 1001 and M = 65,536", "the coordinator ended by bad_alloc")
def plan_budget(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        seconds, result = plan(cluster, 1001, 65536)
        answer = (result.stderr or result.stdout).strip().splitlines()[0][:160]
        fine, more = cluster.untouched()
        return verdict(result.returncode not in (0, 4) and fine,
                       f"refused in {seconds:.2f} s: {answer}; coordinator {resident(cluster.coordinator, True):.0f} MiB; {more}")


@row("plan-leases", "PlanJob with K = 16 and M = 65,536, then 20 times one after the other with the most that is allowed, M = 16,384",
     "its loop held for 1.3 s each, leases lost")
def plan_leases(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        slowest, over = [0.0], threading.Event()

        def probe():
            while not over.is_set():
                began = time.monotonic()
                cluster.job()
                slowest[0] = max(slowest[0], time.monotonic() - began)
        thread = threading.Thread(target=probe)
        thread.start()
        _, refused = plan(cluster, 16, 65536)
        answers = [plan(cluster, 16, 16384) for _ in range(20)]
        over.set()
        thread.join()
        planned = sum(result.returncode == 0 for _, result in answers)
        fine, more = cluster.untouched()
        peak = resident(cluster.coordinator, True)
        return verdict(fine and refused.returncode not in (0, 4) and planned == 20 and peak < 512,
                       f"the first is refused, {planned} of 20 are planned, beside the loop, in "
                       f"{max(took for took, _ in answers):.2f} s at most; other requests took {slowest[0]:.2f} s at most; "
                       f"coordinator {peak:.0f} MiB at the highest; {more}")


@row("plan-flood", "a user asks for 64 of the largest plans at once and leaves after 5 s; meanwhile another one submits a job",
     "kept out for as long as they were made (at 73ec861: 76 s, behind 64 that had been left)")
def plan_flood(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        threads = [threading.Thread(target=plan, args=(cluster, 16, 16384, 5)) for _ in range(64)]
        for thread in threads:
            thread.start()
        time.sleep(3)  # they are in line
        began = time.monotonic()
        result = cluster.submit(role="other user", job_id="bobs")
        took = time.monotonic() - began
        for thread in threads:
            thread.join()
        again = time.monotonic()
        second = cluster.submit(role="other user", job_id="bobs-second")
        later = time.monotonic() - again
        fine, more = cluster.untouched()
        return verdict(result.returncode == 0 and second.returncode == 0 and took < 30 and later < 30 and fine,
                       f"accepted within {took:.1f} s, and behind those that were left within {later:.1f} s; {more}")


@row("sparse-file", "a sparse file of 4 TB as data, with `data.text.bytes: true`", "stages killed for want of memory, eighteen times")
def sparse_file(programs, _):
    with Cluster(programs) as cluster:
        with open(cluster.data / "huge.txt", "wb") as file:
            os.truncate(file.fileno(), 4 << 40)

        def huge(spec):
            spec["data"]["text"].update(path=str(cluster.data / "huge.txt"), bytes=True)
        pids = [stage.process.pid for stage in cluster.stages]
        submitted = cluster.submit(change=huge)
        end = time.monotonic() + 20
        while time.monotonic() < end and cluster.job().get("state") not in ("JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED"):
            time.sleep(0.2)  # to see what it does with it
        job = cluster.job()
        peak = max(resident(stage, True) for stage in cluster.stages)
        alive = all(stage.process.poll() is None and stage.process.pid == pid for stage, pid in zip(cluster.stages, pids))
        cancelled = cluster.cli("user", "cancel", HELD).returncode
        waiting.wait_until("the job is cancelled", lambda: cluster.job().get("state") not in ("JOB_STATE_RUNNING", None), 60)
        return verdict(alive and submitted.returncode == 0 and peak < 1000 and cancelled == 0,
                       f"the job is {job.get('detail') or job.get('state')} (...{job.get('message', '')[-160:]}), stages have {peak:.0f} MiB at "
                       "the highest and live; it can be cancelled")
