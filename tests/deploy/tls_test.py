"""Mutual TLS between coordinator, stages and client: right certificates work, wrong ones are refused by name."""
import calendar
import contextlib
import hashlib
import json
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402

import servers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CA_CONFIG = """[ca]
default_ca=d
[d]
database=index.txt
new_certs_dir=.
policy=p
default_md=sha256
rand_serial=yes
unique_subject=no
x509_extensions=e
[p]
commonName=supplied
[e]
subjectAltName=DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth,clientAuth
"""


def flags(folder, root=None):
    return ["--grpc-use-ssl", "--grpc-server-cert", str(folder / "tls.crt"), "--grpc-server-key", str(folder / "tls.key"),
            "--grpc-root-cert", str(root or folder / "ca.pem")]


class Tls(servers.ServersTest):
    def setUp(self):
        super().setUp()
        self.certs = self.folder / "certs"
        self.make(self.certs, "coordinator", "stage-0", "stage-1", "client")

    def make(self, folder, *names):
        subprocess.run([str(harness.CLI), "certs", str(folder), *names], check=True, capture_output=True)

    def make_brief(self, name, seconds):
        """A certificate of the cluster's authority that ends so many seconds from now, and its last second."""
        folder = self.certs / name
        folder.mkdir()
        (folder / "ca.cnf").write_text(CA_CONFIG)
        (folder / "index.txt").touch()
        ends = int(time.time()) + seconds
        for command in (["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "tls.key"],
                        ["req", "-new", "-key", "tls.key", "-subj", f"/CN={name}", "-out", "request"],
                        ["ca", "-batch", "-config", "ca.cnf", "-cert", "../ca.pem", "-keyfile", "../ca.key", "-in",
                         "request", "-startdate", "20200101000000Z", "-enddate",
                         time.strftime("%Y%m%d%H%M%SZ", time.gmtime(ends)), "-notext", "-out", "tls.crt"]):
            subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
        shutil.copy(self.certs / "ca.pem", folder / "ca.pem")
        return folder, ends

    def coordinator(self, cert=None, name="coordinator", *extra):
        self.launch("stagecoach-coordinator", name, "--state-dir", self.folder / f"{name}-state",
                    *flags(cert or self.certs / "coordinator"), *extra)
        return self.address(name)

    def stage(self, name, coordinator, cert=None, *extra):
        return self.launch("stagecoach-stage", name, "--name", name, "--coordinator", coordinator, "--threads", "1",
                           *flags(cert or self.certs / name), *extra)

    def client(self, address, *arguments, cert=None, root=None):
        return self.cli(*flags(cert or self.certs / "client", root), "--address", address, *arguments)

    def refused(self, result, pattern):
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertRegex(result.stderr, pattern)

    def test_a_job_runs_with_the_same_bits_as_without_tls(self):
        coordinator = self.coordinator()
        for name in ("stage-0", "stage-1"):
            self.stage(name, coordinator)
        result = self.client(coordinator, "-o", "ndjson", "submit", self.job_file())
        self.assertEqual(result.returncode, 0, result.stderr + self.log("stage-0") + self.log("coordinator"))
        finished = json.loads(result.stdout.splitlines()[-1])
        plain = self.run_job(self.job_file("plain.json"))
        self.assertEqual(finished["weights_digest"], plain.digest())
        health = self.client(coordinator, "health", self.address("stage-1"))
        self.assertEqual(health.returncode, 0, health.stderr)

    def test_stages_without_a_name_train_by_the_certificate_of_their_host(self):
        """Numbers behind a certificate's name ended at 1,023, so the default name, <host name>-<port>, was refused."""
        coordinator, host = self.coordinator(), socket.gethostname()
        self.make(self.certs, f"stage:{host}")
        for title in ("first", "second"):
            self.launch("stagecoach-stage", title, "--coordinator", coordinator, "--threads", "1",
                        *flags(self.certs / host))
        result = self.client(coordinator, "submit", self.job_file())
        self.assertEqual(result.returncode, 0, result.stderr + self.log("first") + self.log("coordinator"))

    def test_certificates_say_who_may_do_what(self):
        """Any certificate of the authority was good for every call: one stage's, stolen, was the whole cluster's."""
        self.make(self.certs, "user:ann")
        coordinator = self.coordinator()
        self.stage("stage-0", coordinator)
        for cert, code in (("stage-0", 1), ("coordinator", 1), ("ann", 0), ("client", 0)):
            result = self.client(coordinator, "list", cert=self.certs / cert)
            self.assertEqual(result.returncode, code, f"{cert}: {result.stderr}")
            if code != 0:
                self.assertRegex(result.stderr, f"ListJobs of stagecoach.v1.JobService is for the role user or operator, "
                                                f"and the caller is .* {cert} .*stagecoach certs FOLDER user:NAME")
            health = self.client(coordinator, "health", self.address("stage-0"), cert=self.certs / cert)
            self.assertEqual(health.returncode, 0, health.stderr)
        self.assertEqual(self.refusals("coordinator"), {("ListJobs", "stage"): 1, ("ListJobs", "coordinator"): 1})
        self.assertRegex(self.log("coordinator"), "refused a call: ListJobs of .* stage stage-0 by its certificate")

    def test_users_with_tokens_have_jobs_of_their_own(self):
        """All users could do the same with all jobs, and each of them needed a certificate."""
        self.make(self.certs, "user:ann")
        tokens = self.folder / "tokens"
        tokens.touch(0o600)
        tokens.write_text(f"bob {hashlib.sha256(b'secret-of-bob').hexdigest()}\n")
        secret = self.folder / "bob.token"
        secret.touch(0o600)  # the client refuses one that others may read
        secret.write_text("secret-of-bob\n")
        coordinator = self.coordinator(None, "coordinator", "--token-file", tokens)
        for name in ("stage-0", "stage-1"):
            self.stage(name, coordinator)

        def as_bob(*arguments):
            return self.cli("--grpc-use-ssl", "--grpc-root-cert", str(self.certs / "ca.pem"), "--token-file", str(secret),
                            "--address", coordinator, *arguments)

        def as_ann(*arguments):
            return self.client(coordinator, *arguments, cert=self.certs / "ann")

        result = as_bob("submit", "--id", "job-of-bob", self.job_file())
        self.assertEqual(result.returncode, 0, result.stderr + self.log("coordinator"))
        self.assertIn("Owner:          user/bob", as_bob("describe", "job-of-bob").stdout)
        self.assertIn("job-of-bob", self.client(coordinator, "list").stdout)
        self.assertNotIn("job-of-bob", as_ann("list").stdout)
        for command in ("describe", "watch", "cancel", "resume", "checkpoints list", "export", "logs", "trace"):
            result = as_ann(*command.split(), "job-of-bob")
            self.assertEqual(result.returncode, 1, f"{command}: {result.stderr}")
            self.assertIn("job job-of-bob is not of user/ann", result.stderr)
        # By the journal, too.
        name, process, log = self.programs.pop(0)
        process.terminate()
        self.assertEqual(process.wait(timeout=20), 0, self.log(name))
        log.close()
        (self.folder / f"{name}.ports").unlink()
        coordinator = self.coordinator(None, name, "--token-file", tokens)
        self.assertNotIn("job-of-bob", as_ann("list").stdout)
        self.assertIn("job-of-bob", as_bob("list").stdout)
        tokens.write_text("# nobody\n")
        result = as_bob("list")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("the caller's token is not known", result.stderr)

    def test_a_stage_takes_no_name_but_its_own(self):
        coordinator = self.coordinator()
        self.stage("stage-7", coordinator, self.certs / "stage-0")
        harness.wait_until("the stage to say why it is not registered", lambda: re.search(
            "not registered: stage.name=stage-7: the caller's certificate is that of stage stage-0, which may be stage-0",
            self.log("stage-7")))
        # The pods of a StatefulSet share one.
        self.make(self.certs, "stage")
        self.stage("stage-3", coordinator, self.certs / "stage")
        harness.wait_until("the pod to register", lambda: "registered as stage-3" in self.log("stage-3"))
        stages = self.client(coordinator, "-o", "json", "stages")
        self.assertEqual(stages.returncode, 0, stages.stderr)
        self.assertNotIn("stage-7", stages.stdout)

    def test_certificates_of_before_there_were_roles(self):
        """They name no role: refused with what to do, or, by the flag, good for everything as they were."""
        old, _ = self.make_brief("old", 86400)
        address = self.coordinator()
        result = self.client(address, "list", cert=old)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"certificate \(CN old\) names no role: make it anew .*stagecoach certs.*"
                                        "--any-certificate-i-know")
        self.assertEqual(self.client(address, "health", address, cert=old).returncode, 0, "any certificate will do")
        lenient = self.coordinator(old, "lenient", "--any-certificate-i-know")
        self.assertIn("a certificate without a role may call everything here", self.log("lenient"))
        for name in ("stage-0", "stage-1"):
            self.stage(name, lenient, old, "--any-certificate-i-know")
        submitted = self.client(lenient, "-o", "ndjson", "submit", self.job_file(), cert=old)
        self.assertEqual(submitted.returncode, 0, submitted.stderr + self.log("stage-0") + self.log("lenient"))
        refused = self.client(lenient, "list", cert=self.certs / "stage-0")
        self.assertRegex(refused.stderr, "the caller is stage stage-0 by its certificate")

    def test_certs_refuses_what_is_no_role_and_no_name(self):
        for entry, pattern in (("root:eve", '"root" is no role'), ("user:", '"" is no name'), ("stage:a/b", '"a/b" is no name'),
                               ("user:..", "is no name"), (":eve", "is no role")):
            result = self.cli("certs", self.certs, "user:before", entry)
            self.assertEqual(result.returncode, 2, entry)
            self.assertIn(pattern, result.stderr)
        self.assertFalse((self.certs / "before").exists(), "all are looked at before any is made")

    def metrics(self, server):
        http = "127.0.0.1:" + (self.folder / f"{server}.ports").read_text().split()[1]
        return urllib.request.urlopen(f"http://{http}/metrics", timeout=20).read().decode()

    def refusals(self, server):
        found = re.findall(r'stagecoach_rpc_refused_total\{.*grpc_method="(\w+)",role="(\w+)"\} (\d+)',
                           self.metrics(server))
        return {(method, role): int(count) for method, role, count in found}

    def test_metrics_say_when_the_certificates_end(self):
        brief, ends = self.make_brief("brief", 7 * 86400)
        self.coordinator(brief)
        found = {name: float(value) for name, value in re.findall(
            r'stagecoach_certificate_expiry_timestamp_seconds\{certificate="(\w+)"\} (\S+)', self.metrics("coordinator"))}
        self.assertEqual(set(found), {"identity", "authority"})
        self.assertEqual(found["identity"], ends)
        self.assertGreater(found["authority"], ends)

    def test_renewed_certificates_are_taken_while_the_server_runs(self):
        """They were read at the start only: until its restart a server went by the ones that were about to end."""
        brief, ends = self.make_brief("brief", 86400)
        address = self.coordinator(brief)
        later, later_ends = self.make_brief("later", 5 * 86400)
        for name in ("tls.crt", "tls.key"):
            shutil.copy(later / name, brief / name)
        expiry = r'expiry_timestamp_seconds\{certificate="identity"\} (\S+)'
        harness.wait_until("the renewed certificate", lambda: float(
            re.search(expiry, self.metrics("coordinator")).group(1)) == later_ends)
        self.assertIn("the certificates have changed", self.log("coordinator"))
        harness.wait_until("it to be shown to clients", lambda: later_ends == self.shown_end(address))
        self.assertEqual(self.client(address, "list").returncode, 0)

    def shown_end(self, address):
        """Of the certificate that a server shows."""
        shown = subprocess.run(["openssl", "s_client", "-connect", address, *self.openssl_identity()], input=b"",
                               capture_output=True, timeout=30).stdout  # the server's HTTP/2 is no text
        text = subprocess.run(["openssl", "x509", "-noout", "-enddate"], input=shown, check=True,
                              capture_output=True).stdout.decode()
        return calendar.timegm(time.strptime(text.strip(), "notAfter=%b %d %H:%M:%S %Y GMT"))

    def openssl_identity(self):
        client = self.certs / "client"
        return ["-alpn", "h2", "-cert", str(client / "tls.crt"), "-key", str(client / "tls.key")]

    def test_clients_that_the_cluster_does_not_know_are_refused(self):
        address = self.coordinator()
        self.make(self.folder / "other", "client")
        other = self.folder / "other" / "client"
        # Another authority on both sides; then only the client's own certificate is foreign.
        self.refused(self.client(address, "list", cert=other), "its certificate is not accepted: self.signed certificate")
        foreign = self.folder / "foreign"
        shutil.copytree(other, foreign)
        both = foreign / "both.pem"
        both.write_text((self.certs / "ca.pem").read_text() + (other / "ca.pem").read_text())
        self.refused(self.client(address, "list", cert=foreign, root=both),
                     "it refused the certificate of this program")
        self.assertIn("certificate verify failed", self.log("coordinator"))
        self.refused(self.cli("list", "--address", address), "speaks TLS only: use --grpc-use-ssl")
        self.assertEqual(self.client(address, "list").returncode, 0, "the right one still works")

    def test_no_client_certificate(self):
        address = self.coordinator()
        result = subprocess.run(["openssl", "s_client", "-connect", address, "-alpn", "h2", "-CAfile",
                                 str(self.certs / "ca.pem"), "-ign_eof"], input="", capture_output=True, text=True,
                                timeout=30)
        self.assertIn("Acceptable client certificate CA names", result.stdout)
        self.assertNotEqual(result.returncode, 0, "the server must end the connection")
        harness.wait_until("the coordinator to say why",
                           lambda: "peer did not return a certificate" in self.log("coordinator"))

    def test_a_server_under_another_name_is_refused(self):
        self.make(self.certs, "elsewhere")
        folder = self.certs / "elsewhere"
        # A certificate for elsewhere only, without the loopback names that `stagecoach certs` adds.
        request = subprocess.run(["openssl", "req", "-new", "-key", folder / "tls.key", "-subj", "/CN=elsewhere"],
                                 check=True, capture_output=True).stdout
        (folder / "names").write_text("subjectAltName=DNS:elsewhere\n")
        subprocess.run(["openssl", "x509", "-req", "-CA", self.certs / "ca.pem", "-CAkey", self.certs / "ca.key",
                        "-set_serial", "77", "-days", "1", "-extfile", folder / "names", "-out", folder / "tls.crt"],
                       input=request, check=True, capture_output=True)
        address = self.coordinator(folder)
        self.refused(self.client(address, "list"), "its certificate is not for 127.0.0.1, but for DNS:elsewhere")
        self.stage("stage-0", address)
        harness.wait_until("the stage to say why it cannot register",
                           lambda: "its certificate is not for 127.0.0.1" in self.log("stage-0"))

    def test_a_stage_under_another_name_is_named_by_the_job(self):
        coordinator = self.coordinator()
        # Registers well, as a client; but nobody finds stage-0's name in its certificate when dialling 127.0.0.2.
        self.launch("stagecoach-stage", "stage-0", "--name", "stage-0", "--coordinator", coordinator, "--threads", "1",
                    *flags(self.certs / "stage-0"), listen="127.0.0.2:0")
        # Of a fleet that is too small the job would only say that, a second later, and end.
        harness.wait_until("the stage to register", lambda: "registered as stage-0" in self.log("stage-0"))
        job = self.job_file(pipeline={"stages": 1, "replacement_timeout_seconds": 1})
        submitted = self.client(coordinator, "submit", "--detach", "--id", "misnamed", job)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        # Not the job's fault: it goes on trying, and says what to mend.
        harness.wait_until("the job to say why", lambda: re.search(
            "127.0.0.2 is not in peer certificate|Peer name", self.client(coordinator, "describe", "misnamed").stdout))
        cancelled = self.client(coordinator, "cancel", "misnamed")
        self.assertEqual(cancelled.returncode, 0, cancelled.stderr)

    def test_files_that_no_peer_would_accept_are_refused_at_the_start(self):
        expired, _ = self.make_brief("expired", -60)
        self.make(self.folder / "other", "client")
        mixed = self.folder / "mixed"
        shutil.copytree(self.certs / "client", mixed)
        shutil.copy(self.certs / "coordinator" / "tls.key", mixed / "tls.key")
        for cert, root, pattern in (
                (expired, None, r"--grpc-server-cert=.*expired on"),
                (mixed, None, r"--grpc-server-key=.*does not belong to"),
                (self.certs / "client", self.folder / "other" / "ca.pem", r"not accepted by --grpc-root-cert="),
                (self.folder, None, r"--grpc-server-cert=.*cannot be read")):
            for program in (["stagecoach-coordinator", "--state-dir", str(self.folder / "state")],
                            ["stagecoach-stage", "--name", "x"]):
                result = subprocess.run([str(harness.BIN / program[0]), *program[1:], "--listen", "127.0.0.1:0",
                                         "--http", "127.0.0.1:0", *flags(cert, root)], capture_output=True, text=True,
                                        timeout=20)
                self.assertNotEqual(result.returncode, 0)
                self.assertRegex(result.stderr + result.stdout, pattern)

    def test_a_certificate_that_expires_while_the_server_runs(self):
        for seconds in (4, 16, 64):  # on a busy machine it may be over before the server has started
            brief, ends = self.make_brief(f"brief-{seconds}", seconds)
            try:
                address = self.coordinator(brief, f"brief-{seconds}")
                break
            except AssertionError:
                if time.time() < ends or seconds == 64:
                    raise
        harness.wait_until("the certificate to expire", lambda: time.time() > ends + 1, seconds + 20)
        self.refused(self.client(address, "list"), "its certificate is not accepted: certificate has expired")

    def test_silent_connections_do_not_end_a_server(self):
        """Out of descriptors, gRPC's own listener stopped for good: the port was dead, and /livez said it was well."""
        address = self.coordinator()
        self.stage("stage-0", address)
        harness.wait_until("the stage to register", lambda: "registered as stage-0" in self.log("stage-0"))
        servers = {name: self.address(name) for name in ("coordinator", "stage-0")}
        for name, process, _ in self.programs:
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (128, 128))
        with contextlib.ExitStack() as silent:
            for server in servers.values():
                host, port = server.split(":")
                for _ in range(200):
                    last = silent.enter_context(socket.create_connection((host, int(port)), timeout=20))
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(last.recv(1), b"", "there is no descriptor for it: it is sent away")
        for name, server in servers.items():
            # It has yet to find out that they are gone.
            harness.wait_until(f"{name} answers", lambda: self.client(address, "health", server).returncode == 0)
            refused = re.search(r'connections_refused_total\{reason="descriptors"\} (\d+)', self.metrics(name))
            self.assertGreater(int(refused.group(1)), 0, name)
            self.assertRegex(self.log(name), "refused a gRPC connection from 127.0.0.1: this process may open no more")
        # The rest goes on as well: a stage that is new, and a job.
        self.stage("stage-1", address)
        harness.wait_until("a new stage to register", lambda: "registered as stage-1" in self.log("stage-1"))
        result = self.client(address, "submit", self.job_file())
        self.assertEqual(result.returncode, 0, result.stderr + self.log("stage-0") + self.log("coordinator"))

    def test_connections_are_limited(self):
        address = self.coordinator(None, "coordinator", "--max-connections", "20")
        host, port = address.split(":")
        with contextlib.ExitStack() as silent:
            for _ in range(21):
                last = silent.enter_context(socket.create_connection((host, int(port)), timeout=20))
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(last.recv(1), b"", "one too many")
            # Beside them there is, now and then and for a moment, one of the server to itself.
            harness.wait_until("twenty are there", lambda: "stagecoach_grpc_connections 20\n" in self.metrics("coordinator"))
            self.assertIn('stagecoach_grpc_connections_refused_total{reason="total"} 1\n', self.metrics("coordinator"))
        # A server that is full looks ten times a second who has gone.
        harness.wait_until("room again", lambda: self.client(address, "list").returncode == 0)

    def test_off_loopback_nothing_is_plain(self):
        for listen, http, extra, pattern in (
                ("0.0.0.0:0", "127.0.0.1:0", [], "without TLS is open to anyone"),
                ("0.0.0.0:0", "127.0.0.1:0", ["--insecure-http-i-know"], "without TLS is open to anyone"),
                ("0.0.0.0:0", "0.0.0.0:0", flags(self.certs / "coordinator"), "--http=0.0.0.0:0 is open to anyone"),
                ("127.0.0.1:0", "127.0.0.1:0", ["--grpc-use-ssl"], "--grpc-use-ssl needs")):
            result = subprocess.run([str(harness.BIN / "stagecoach-coordinator"), "--listen", listen, "--http", http,
                                     "--state-dir", str(self.folder / "state"), *extra], capture_output=True, text=True,
                                    timeout=20)
            self.assertNotEqual(result.returncode, 0)
            self.assertRegex(result.stderr + result.stdout, pattern)

    def test_a_stage_on_every_address_must_say_its_name(self):
        result = subprocess.run([str(harness.BIN / "stagecoach-stage"), "--listen", "0.0.0.0:0", "--http", "127.0.0.1:0",
                                 *flags(self.certs / "stage-0")], capture_output=True, text=True, timeout=20)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr + result.stdout, "say under which name they can by --advertise")


if __name__ == "__main__":
    harness.main()
