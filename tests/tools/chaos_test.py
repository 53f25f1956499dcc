"""tools/chaos: its proxy spoils what it was told to and nothing else, and its plan follows from the seed."""
import contextlib
import os
import pathlib
import signal
import socket
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "e2e")]
sys.dont_write_bytecode = True
from chaos_lib import history, http2, matrix, moments, plan, report, run  # noqa: E402
from chaos_lib.cluster import Broken, Cluster, fetch  # noqa: E402
from chaos_lib.proxy import Proxy  # noqa: E402

SECONDS = 20  # deadline of what a test waits for
QUIET_SECONDS = 0.2  # nothing came for so long: what is held back must not


class ProxyTest(unittest.TestCase):
    """A client and a server, joined by the proxy, under the path "path"."""

    def setUp(self):
        self.proxy = Proxy(seed=1)
        self.addCleanup(self.proxy.close)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.listener.settimeout(SECONDS)
        self.port = self.proxy.listen("path", lambda: self.listener.getsockname()[1])

    def joined(self):
        client = socket.create_connection(("127.0.0.1", self.port), SECONDS)
        self.addCleanup(client.close)
        server, _ = self.listener.accept()
        self.addCleanup(server.close)
        server.settimeout(SECONDS)
        return client, server

    def read(self, end, size):
        data = b""
        while len(data) < size:
            more = end.recv(size - len(data))
            self.assertTrue(more, f"ended after {len(data)} of {size} bytes")
            data += more
        return data

    def assert_silent(self, end):
        end.settimeout(QUIET_SECONDS)
        with self.assertRaises(TimeoutError):
            end.recv(1)
        end.settimeout(SECONDS)

    def assert_reset(self, end):
        with self.assertRaises(ConnectionResetError):
            while end.recv(1000):
                pass
            raise AssertionError("ended in order")

    def test_passes_bytes_and_the_end_of_each_way(self):
        client, server = self.joined()
        sent = bytes(range(256)) * 2000
        sender = threading.Thread(target=lambda: (client.sendall(sent), client.shutdown(socket.SHUT_WR)))
        sender.start()
        self.assertEqual(self.read(server, len(sent)), sent)
        sender.join()
        self.assertEqual(server.recv(1), b"")
        server.sendall(b"and back")
        server.close()
        self.assertEqual(self.read(client, 8), b"and back")
        self.assertEqual(client.recv(1), b"")

    def test_flips_exactly_one_bit_where_it_was_told_to(self):
        client, server = self.joined()
        self.proxy.set("path", "up", flip=(100_003, 5))
        sent = bytes(200_000)
        sender = threading.Thread(target=lambda: client.sendall(sent))
        sender.start()
        got = self.read(server, len(sent))
        sender.join()
        self.assertEqual([(i, byte) for i, byte in enumerate(got) if byte], [(100_003, 1 << 5)])
        server.sendall(bytes(1000))
        self.assertEqual(self.read(client, 1000), bytes(1000))  # the other way is as it was
        self.assertEqual((self.proxy.counts("path", "up")["flipped"], self.proxy.counts("path", "down")["flipped"]), (1, 0))

    def test_counts_bytes_of_a_flip_over_connections(self):
        self.proxy.set("path", "up", flip=(7, 0))
        for sent, expected in ((b"12345", b"12345"), (b"67890", b"67990"), (b"aaaaa", b"aaaaa")):
            client, server = self.joined()
            client.sendall(sent)
            self.assertEqual(self.read(server, 5), expected)

    def test_cuts_after_so_many_bytes(self):
        client, server = self.joined()
        self.proxy.set("path", "down", cut=1500)
        server.sendall(bytes(2000))
        self.assertEqual(self.read(client, 1500), bytes(1500))
        with contextlib.suppress(ConnectionResetError):
            self.assertEqual(client.recv(1), b"")
        self.assert_reset(server)
        client, server = self.joined()  # once
        server.sendall(bytes(2000))
        self.assertEqual(self.read(client, 2000), bytes(2000))

    def test_resets_both_sides_of_its_path_alone(self):
        other = self.proxy.listen("other", lambda: self.listener.getsockname()[1])
        client, server = self.joined()
        client.sendall(b"1")
        self.read(server, 1)
        spared = socket.create_connection(("127.0.0.1", other), SECONDS)
        self.addCleanup(spared.close)
        peer, _ = self.listener.accept()
        self.addCleanup(peer.close)
        spared.sendall(b"2")
        self.assertEqual(self.read(peer, 1), b"2")
        self.assertEqual(self.proxy.reset("path"), 1)
        self.assert_reset(client)
        self.assert_reset(server)
        spared.sendall(b"3")
        self.assertEqual(self.read(peer, 1), b"3")

    def test_black_hole_of_one_way_holds_that_way_and_heals(self):
        client, server = self.joined()
        self.proxy.set("path", "up", hold=True)
        client.sendall(b"late")
        server.sendall(b"passes")
        self.assertEqual(self.read(client, 6), b"passes")
        self.assert_silent(server)
        self.proxy.set("path", "up", hold=False)
        self.assertEqual(self.read(server, 4), b"late")

    def test_black_hole_swallows_ends_and_new_connections(self):
        client, server = self.joined()
        self.proxy.set("path", "both", hold=True)
        client.close()
        self.assert_silent(server)
        newer, peer = self.joined()  # it is taken, as a kernel would
        newer.sendall(b"x")
        self.assert_silent(peer)
        self.proxy.set("path", "both", hold=False)
        self.assertEqual(self.read(peer, 1), b"x")
        self.assertEqual(server.recv(1), b"")

    def test_delay_with_jitter_keeps_the_order(self):
        client, server = self.joined()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.proxy.set("path", "up", delay=0.001, jitter=0.02)
        sent = bytes(range(200))
        for byte in sent:
            client.sendall(bytes([byte]))
        self.assertEqual(self.read(server, len(sent)), sent)

    def test_nobody_behind_it_is_a_reset(self):
        port = self.proxy.listen("nobody", lambda: None)
        # As early as it is, the reset may meet the connection while it is being made.
        with self.assertRaises(ConnectionResetError), socket.create_connection(("127.0.0.1", port), SECONDS) as client:
            while client.recv(1000):
                pass
            raise AssertionError("ended in order")


class ClusterTest(unittest.TestCase):
    """Servers that do nothing but tell ports and end by SIGTERM, with the status that the file `exit` beside their logs says."""
    SERVER = """#!{python}
import pathlib, signal, sys
ports = pathlib.Path(sys.argv[sys.argv.index("--port-file") + 1])
said = ports.parent / "exit"
signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(said.read_text()) if said.exists() else 0))
ports.with_suffix(".new").write_text("1 2")
ports.with_suffix(".new").rename(ports)
while True:
    signal.pause()
"""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        for name in ("stagecoach-coordinator", "stagecoach-stage"):
            program = self.folder / name
            program.write_text(self.SERVER.format(python=sys.executable))
            program.chmod(0o755)

    def cluster(self, **options):
        return Cluster(self.folder, self.folder, 1, **options)

    def crash(self, member):
        """It has ended by a signal, and nobody knows yet."""
        os.kill(member.server.process.pid, signal.SIGSEGV)
        os.waitid(os.P_PID, member.server.process.pid, os.WEXITED | os.WNOWAIT)

    def test_a_crash_is_told_though_a_fault_fell_on_it_and_it_was_started_again(self):
        for fault in ("kill", "stop", "drain", "start"):
            with self.subTest(fault), self.assertRaisesRegex(Broken, "stage-0 ended by signal 11, and no fault asked for it"):
                with self.cluster() as cluster:
                    stage = cluster.members["stage-0"]
                    self.crash(stage)
                    self.assertFalse(getattr(stage, fault)(), "nothing was hit")
                    if fault != "start":
                        self.assertEqual(stage.ended_by_itself(), -signal.SIGSEGV)
                        stage.start()

    def test_a_crash_behind_the_last_look_is_told(self):
        with self.assertRaisesRegex(Broken, "coordinator ended by signal 11"), self.cluster() as cluster:
            self.crash(cluster.members["coordinator"])

    def test_what_faults_asked_for_is_no_crash_and_all_end_in_order(self):
        with self.cluster() as cluster:
            stage, coordinator = cluster.members["stage-0"], cluster.members["coordinator"]
            self.assertTrue(stage.kill())
            self.assertFalse(stage.kill(), "it is down")
            stage.start()
            self.assertTrue(coordinator.stop())
            self.assertTrue(coordinator.kill())
            cluster.check()
            coordinator.start()
            self.assertTrue(stage.stop())
        self.assertEqual([member.server.process.poll() for member in cluster.members.values()], [0, 0])

    def test_one_that_does_not_end_in_order_is_told(self):
        with self.assertRaisesRegex(Broken, "stage-0 ended with exit code 3"), self.cluster():
            (self.folder / "exit").write_text("3")

    def test_a_cluster_that_cannot_be_built_leaves_no_thread(self):
        def listen(*_):
            raise OSError("no ports left")
        before = threading.enumerate()
        with unittest.mock.patch.object(Proxy, "listen", listen), self.assertRaisesRegex(OSError, "no ports left"):
            self.cluster()
        self.assertEqual(threading.enumerate(), before)

    def test_a_trial_that_is_over_hears_nothing(self):
        trial, = moments.trials("submitted/last/kill")
        blow = matrix.Blow(trial)
        blow.close()
        blow.hear({"number": "1"})
        self.assertIsNone(blow.struck_unix)


class RecordsTest(unittest.TestCase):
    def test_an_answer_that_a_kill_cut_short_is_none(self):
        for said in (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
                     b"HT", b""):
            with self.subTest(said), socket.create_server(("127.0.0.1", 0)) as listener:
                def answer():
                    peer, _ = listener.accept()
                    with peer:
                        peer.recv(4096)
                        peer.sendall(said)
                server = threading.Thread(target=answer)
                server.start()
                self.assertIsNone(fetch(f"127.0.0.1:{listener.getsockname()[1]}", "/", SECONDS))
                server.join()

    def test_a_reader_that_fails_is_no_job_that_ended(self):
        read = threading.Event()

        def get(_):
            read.set()
            return {"records": [{"number": "1"}]}  # without a step
        watcher = history.Watcher(types.SimpleNamespace(get=get), "job")
        self.assertTrue(read.wait(SECONDS))
        watcher.close()
        with self.assertRaisesRegex(Broken, "records could not be read: KeyError"):
            self.assertTrue(watcher.done)


class DisturbedTest(unittest.TestCase):
    def disturbed(self, patience):
        """Behind its last fault, with a job whose newest step is long ago."""
        told = run.Disturbed(types.SimpleNamespace(get=lambda path: None), "job.yaml", [], patience=patience)
        told._submission, told._watcher = None, types.SimpleNamespace(done=False, changed_at=time.monotonic() - 1000)
        return told

    def test_patience_begins_anew_when_a_fault_is_over(self):
        struck = run.Struck(plan.Fault(0, "stop", "stage-0", 1), 0, True)
        patient = self.disturbed(patience=100)
        patient._heal(struck, lambda: None)
        self.assertTrue(patient._step())
        with self.assertRaisesRegex(Broken, "no new step for 100 s after the last fault"):
            self.disturbed(patience=100)._step()


class PlanTest(unittest.TestCase):
    def test_same_seed_same_plan(self):
        first = plan.draw(7, 300, 2, list(plan.KINDS), 3)
        self.assertEqual(first, plan.draw(7, 300, 2, list(reversed(plan.KINDS)), 3))
        self.assertNotEqual(first, plan.draw(8, 300, 2, list(plan.KINDS), 3))

    def test_has_every_kind_and_target_and_keeps_to_its_time(self):
        faults = plan.draw(1, 3000, 2, list(plan.KINDS), 3)
        self.assertEqual({fault.kind for fault in faults}, set(plan.KINDS))
        self.assertEqual({fault.target for fault in faults},
                         {"coordinator", "stage-0", "stage-1", "stage-2", *plan.paths(3)})
        self.assertTrue(all(0 < fault.at < 3000 for fault in faults))
        self.assertAlmostEqual(len(faults) / 1500, 1, delta=0.1)

    def test_only_the_kinds_that_are_asked_for(self):
        self.assertEqual({fault.kind for fault in plan.draw(1, 100, 1, ["flip", "kill"], 2)}, {"flip", "kill"})

    def test_is_read_back_as_it_was_written_and_a_wrong_line_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.jsonl"
            faults = plan.draw(3, 50, 1, list(plan.KINDS), 2)
            plan.write(path, faults, 2)
            self.assertEqual(plan.read(path), (faults, 2))
            with open(path, "a") as file:
                file.write('{"at": 1, "kind": "kill", "target": "stage-2", "seconds": 1}\n')
            with self.assertRaisesRegex(plan.PlanError, rf"plan.jsonl:{len(faults) + 2}: .*'stage-2' of 2 stages"):
                plan.read(path)


class ReportTest(unittest.TestCase):
    def test_recovery_is_measured_to_the_step_after_it(self):
        self.assertEqual(report.recovery_seconds(10, [9, 10.5, 11], []), 0.5)
        self.assertEqual(report.recovery_seconds(10, [9, 10.25, 13], [12]), 3)  # the first one was over
        self.assertEqual(report.recovery_seconds(10, [9, 13, 14], [12]), 3)
        self.assertIsNone(report.recovery_seconds(10, [9], [12]))

    def test_useful_time_counts_each_step_once_at_the_disturbed_runs_own_speed(self):
        told = history.History()
        for number, (step, at, seconds) in enumerate([(1, 0, 2), (2, 3, 2), (2, 8, 3)], 1):
            told.add({"number": str(number), "step": str(step), "unix_seconds": float(at),
                      "step_done": {"loss": 1.0, "step_seconds": seconds}})
        # 5 s in steps, and 1 beside them as the reference had, of 10.
        self.assertEqual(report.useful_share({"seconds": 3.0, "seconds_in_steps": 2.0}, [told], 10), 0.6)
        self.assertIsNone(report.useful_share({"seconds": 3.0}, [], 0))

    def test_a_run_that_met_nothing_is_no_proof(self):
        self.assertIn("nothing was struck: none of 2", report.nothing_struck([False, False]))
        self.assertTrue(report.nothing_struck([]))
        self.assertEqual(report.nothing_struck([[], ["stage-1"]]), "")

    def test_percentiles_are_nearest_ranks(self):
        self.assertEqual([report.percentile(range(1, 11), share) for share in (0.5, 0.9, 0.99, 1)], [5, 9, 10, 10])
        self.assertIsNone(report.percentile([], 0.5))

    def test_a_loss_that_differs_in_its_last_bit_is_found(self):
        def run(loss):
            told = history.History()
            told.add({"number": "1", "step": "1", "unix_seconds": 1.0, "step_done": {"loss": loss}})
            told.add({"number": "2", "step": "1", "unix_seconds": 2.0,
                      "finished": {"state": "JOB_STATE_SUCCEEDED", "message": "", "weights_digest": "sha256:1"}})
            return told
        loss = 4.851234567890123
        self.assertEqual(history.differences(run(loss).result(), run(loss).result()), [])
        other = run(4.851234567890124)
        self.assertRegex(history.differences(run(loss).result(), other.result())[0], "losses: 1 of 1 differ, .* step 1")
        other.add({"number": "3", "step": "1", "unix_seconds": 3.0, "step_done": {"loss": loss}})
        self.assertEqual(other.faults_found, ["step 1 was repeated with another loss"])


class ReaderTest(unittest.TestCase):
    def frame(self, kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def test_reads_methods_and_messages_however_they_are_cut(self):
        path = b"/a.B/Call"
        literal = bytes([0x40 | 4, len(path)]) + path  # name 4 of the static table, kept
        message = b"\x08\x96\x01\x12\x02hi"
        body = b"\0" + len(message).to_bytes(4, "big") + message
        sent = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(http2.HEADERS, http2.END_HEADERS, 1, literal) +
                self.frame(http2.DATA, 0, 1, body[:4]) + self.frame(http2.DATA, 1, 1, body[4:]) +
                self.frame(http2.HEADERS, http2.END_HEADERS, 3, bytes([0x80 | 62])) +  # the same again, by its number
                self.frame(http2.DATA, 1, 3, body))
        for size in (1, 7, len(sent)):
            heard = []
            reader = http2.Reader(lambda *what: heard.append(what))
            for at in range(0, len(sent), size):
                reader.feed("up", sent[at:at + size])
            self.assertEqual(heard, [("/a.B/Call", "up", message)] * 2)
            self.assertFalse(reader.broken)
        self.assertEqual(http2.fields(message), {1: 150, 2: b"hi"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
