"""A gRPC port that is dead while its process lives: the process finds out, says so at /livez and ends with 5, whoever started
it starts a new one, and the job goes on. Silent connections at the limit of descriptors did that to a listener once."""
import ctypes
import errno
import os
import re
import socket
import urllib.error
import urllib.request

import fleet
import harness

PIDFD_GETFD = 438  # the number of the system call on every architecture
LISTENING = "0A"   # of /proc/net/tcp


def listening_descriptor(pid, port):
    """The process's own number for its socket that listens on the port."""
    with open(f"/proc/{pid}/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    inodes = {row[9] for row in rows if row[3] == LISTENING and int(row[1].split(":")[1], 16) == port}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:  # closed meanwhile
            continue
        if found and found.group(1) in inodes:
            return int(name)
    raise AssertionError(f"process {pid} does not listen on {port}")


def end_listening(pid, port):
    """Ends the listening socket of another process, whose connections stay. OSError where this is not allowed."""
    holder = os.pidfd_open(pid)
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
        copy = call(PIDFD_GETFD, holder, listening_descriptor(pid, port), 0)
        if copy < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        with socket.socket(fileno=copy) as listener:
            listener.shutdown(socket.SHUT_RDWR)
    finally:
        os.close(holder)


def livez(http):
    """The status, or None where nobody answers."""
    try:
        with urllib.request.urlopen(f"http://{http}/livez", timeout=60) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


class Unreachable(fleet.FleetTest):
    def test_a_process_that_cannot_be_reached_says_so_and_ends(self):
        self.launch_stage("stage-0")
        address, http = self.launch_stage("stage-1")
        self.submit(training={"steps": 100000}, checkpoint={"every_steps": 0})
        harness.wait_until("the job runs", lambda: int(self.job()["step"]) > 2, 60)
        watched = {"coordinator": (self.address, self.http), "stage-1": (address, http)}
        try:
            for title, (of, _) in watched.items():
                end_listening(self.processes[title].pid, int(of.split(":")[1]))
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOSYS):
                raise
            self.skipTest(f"the socket of another process cannot be had here: {error}")
        for _, at in watched.values():
            self.assertEqual(livez(at), 200, "one dial that fails is no death")

        said = {title: set() for title in watched}

        def ended():
            for title, (_, at) in watched.items():
                said[title].add(livez(at))
            return all(self.processes[title].poll() is not None for title in watched)
        harness.wait_until("both have found out", ended, 90)
        for title in watched:
            self.assertEqual(self.processes[title].returncode, 5, self.log(title)[-2000:])
            self.assertIn(503, said[title], "it said so before it ended")
            self.assertIn("the gRPC port has not answered its own process", self.log(title))

        self.address, self.http = self.launch("coordinator", "stagecoach-coordinator", "--state-dir", self.folder / "state",
                                              "--checkpoint-dir", self.checkpoints)
        self.processes["stage-0"].kill()  # it knows the coordinator's former port only
        self.launch_stage("stage-0")
        self.launch_stage("stage-1")
        harness.wait_until("the job goes on",
                           lambda: self.job()["state"] == "JOB_STATE_RUNNING" and int(self.job()["step"]) > 2, 60)


if __name__ == "__main__":
    harness.main()
