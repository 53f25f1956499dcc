"""Mutual TLS and tokens: a user's certificate calls, and what does not fit is refused with the reason."""
import hashlib
import os
import subprocess
import unittest.mock

import support

import stagecoach


class Tls(support.servers.ServersTest):
    def setUp(self):
        super().setUp()
        self.certs = self.folder / "certs"
        self.make(self.certs, "coordinator", "stage-0", "stage-1", "user:ann")
        self.tokens = self.folder / "tokens"
        self.tokens.write_text(f"bob {hashlib.sha256(b'secret').hexdigest()}\n")
        self.tokens.chmod(0o600)
        self.launch("stagecoach-coordinator", "coordinator", "--state-dir", self.folder / "state", "--token-file", self.tokens,
                    *self.flags("coordinator"))
        self.coordinator = self.address("coordinator")

    def make(self, folder, *names):
        subprocess.run([str(support.servers.harness.CLI), "certs", str(folder), *names], check=True, stdout=subprocess.DEVNULL)

    def flags(self, name):
        own = self.certs / name
        return ["--grpc-use-ssl", "--grpc-server-cert", own / "tls.crt", "--grpc-server-key", own / "tls.key",
                "--grpc-root-cert", own / "ca.pem"]

    def files(self, name, folder=None):
        own = (folder or self.certs) / name
        return {"ca": str(own / "ca.pem"), "cert": str(own / "tls.crt"), "key": str(own / "tls.key")}

    def refused(self, kind, pattern, call=None, address=None, **given):
        with self.assertRaisesRegex(kind, pattern) as caught:
            with stagecoach.Client(address or self.coordinator, **given) as client:
                (call or stagecoach.Client.jobs)(client)
        return caught.exception

    def test_a_user_with_a_certificate_trains(self):
        for name in ("stage-0", "stage-1"):
            self.launch("stagecoach-stage", name, "--name", name, "--coordinator", self.coordinator, "--threads", "1",
                        *self.flags(name))
        job = {**support.servers.harness.TINY, "data": {"text": {"path": str(self.folder / "input.txt")}}}
        with stagecoach.Client(self.coordinator, **self.files("ann")) as client:
            submitted = client.submit(job)
            self.assertEqual(list(submitted.follow())[-1]["state"], "SUCCEEDED")
            self.assertEqual(submitted.describe()["owner"], "user/ann")
        profile = self.folder / "config.yaml"
        profile.write_text(f"current: here\nclusters:\n  here:\n    coordinator: {self.coordinator}\n    certs: certs/ann\n")
        with unittest.mock.patch.dict(os.environ, {"STAGECOACH_CONFIG": str(profile)}):
            with stagecoach.Client() as client:
                self.assertEqual(client.job(submitted.id).state, "SUCCEEDED", "by the profile")
        # Another user's job is not theirs to see.
        with stagecoach.Client(self.coordinator, ca=str(self.certs / "ca.pem"), token="secret") as client:
            self.assertEqual(client.submit(job, id="of-bob").describe()["owner"], "user/bob")
            client.job("of-bob").cancel()

    def test_a_stages_certificate_submits_nothing(self):
        error = self.refused(stagecoach.PermissionDenied, "ListJobs of stagecoach.v1.JobService is for the role user or "
                             "operator", **self.files("stage-0"))
        self.assertEqual(error.address, self.coordinator)

    def test_a_wrong_authority_is_named(self):
        other = self.folder / "other"
        self.make(other, "user:ann")
        self.refused(stagecoach.Unavailable, f"^{self.coordinator}: the server's certificate is not accepted by ca "
                     f"{other}/ann/ca.pem: ", **self.files("ann", other))
        mixed = {**self.files("ann", other), "ca": str(self.certs / "ca.pem")}
        self.refused(stagecoach.Unavailable, f"^{self.coordinator}: the server (refuses cert|ends the connection).*"
                     f"{other}/ann/tls.crt", **mixed)

    def test_what_does_not_fit_is_told(self):
        self.refused(stagecoach.Unavailable, "the server speaks TLS only: give ca")
        self.refused(stagecoach.Unauthenticated, "", ca=str(self.certs / "ca.pem"), token="wrong")
        self.refused(stagecoach.ConfigurationError, "ca .*none.pem: No such file", ca=str(self.folder / "none.pem"), token="x")
        text = self.folder / "input.txt"
        self.refused(stagecoach.ConfigurationError, "ca .*input.txt: is not a PEM certificate", ca=str(text), token="x")
        self.refused(stagecoach.ConfigurationError, "cert .*are not a PEM certificate and its key",
                     **{**self.files("ann"), "key": str(self.certs / "stage-0" / "tls.key")})
        self.launch("stagecoach-coordinator", "plain", "--state-dir", self.folder / "plain-state")
        self.refused(stagecoach.Unavailable, "the server speaks no TLS; leave out ca, cert and key", address=self.address("plain"),
                     **self.files("ann"))


if __name__ == "__main__":
    support.main()
