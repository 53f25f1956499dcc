"""Waiting for what a test cannot be told of.

Ends of processes, lines of output and events come by themselves: wait_gone, Cluster.wait_for and wait_for_note block
until they do. wait_until is for the rest, where nothing tells: a number in /metrics or an answer of another program's
HTTP API, a file that appears, the state of a container. It asks again and again, up to a deadline."""
import os
import select
import time


def wait_until(what, condition, seconds, every=0.02):
    """What the condition gives once that is true; it is asked at least once more after the deadline came."""
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() > deadline
        value = condition()
        if value:
            return value
        if late:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(every)


def wait_gone(what, pids, seconds):
    """Until none of these processes runs, whoever started them; a zombie does not run."""
    deadline = time.monotonic() + seconds
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            poll = select.poll()
            poll.register(process, select.POLLIN)
            if not poll.poll(max(0, deadline - time.monotonic()) * 1000):
                raise AssertionError(f"process {pid} not gone within {seconds} s: {what}")
        finally:
            os.close(process)
