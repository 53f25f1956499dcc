"""A cluster from nothing: certificates by `certs`, servers with TLS by variables, a client with a profile and no flags."""
import json
import os
import stat

import harness
import server_process


def variables(certs):
    """TLS of a server or client, as a service manager's EnvironmentFile or a container's env gives it."""
    return {"STAGECOACH_TLS": "true", "STAGECOACH_TLS_CA": str(certs / "ca.pem"),
            "STAGECOACH_TLS_CERT": str(certs / "tls.crt"), "STAGECOACH_TLS_KEY": str(certs / "tls.key")}


class Profile(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        self.certs = self.folder / "certs"
        self.home = self.folder / "home"
        self.home.mkdir()
        self.fine("certs", self.certs, "coordinator", "stage-0", "user:ann")

    def as_user(self, *arguments, **more):
        """The client, with a home of its own in place of the test's."""
        kept = {name: value for name, value in os.environ.items() if name not in ("XDG_CONFIG_HOME", "STAGECOACH_CONFIG")}
        return self.cli(*arguments, env={**kept, "HOME": str(self.home), **more})

    def fine(self, *arguments, **more):
        result = self.as_user(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def launch(self, title, program, *arguments, certs=None):
        before = ["env", *(f"{name}={value}" for name, value in variables(certs or self.certs / title).items())]
        server = server_process.Server(harness.BIN / program, self.folder, title, *arguments, before=before)
        self.addCleanup(server.kill)
        server.start()
        return server

    def cluster(self):
        coordinator = self.launch("coordinator", "stagecoach-coordinator", "--state-dir", self.folder / "state")
        self.stage = self.launch("stage-0", "stagecoach-stage", "--name", "stage-0", "--coordinator", coordinator.address,
                                 "--threads", "1")
        return coordinator

    def test_a_job_is_submitted_and_followed_without_flags(self):
        coordinator = self.cluster()
        self.fine("config", "set", "lab", "--coordinator", coordinator.address, "--certs", self.certs / "ann")
        profile = self.home / ".config" / "stagecoach" / "config.yaml"
        self.assertEqual(stat.S_IMODE(profile.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(profile.parent.stat().st_mode), 0o700)
        harness.wait_until("the stage to register", lambda: "registered as stage-0" in self.stage.log())
        job = self.job_file(pipeline={"stages": 1})
        submitted = self.fine("-o", "ndjson", "submit", "--id", "tiny", job)
        self.assertEqual(json.loads(submitted.stdout.splitlines()[-1])["state"], "SUCCEEDED")
        self.assertIn("user/ann", self.fine("describe", "tiny").stdout)
        self.assertIn("serving", self.fine("health").stdout)
        # A cluster on this machine has nothing to do with the profile's, nor with the variables of another.
        self.fine("config", "set", "gone", "--coordinator", "127.0.0.1:1")
        local = self.fine("-o", "ndjson", "local", "--state-dir", self.folder / "local", job, STAGECOACH_CLUSTER="gone",
                          **variables(self.certs / "ann"))
        self.assertEqual(json.loads(local.stdout.splitlines()[-1])["state"], "SUCCEEDED")
        # By another name, by variables alone, and by a flag that goes before them.
        self.assertEqual(self.as_user("list", "--cluster", "gone").returncode, 4)
        self.assertEqual(self.as_user("list", STAGECOACH_CLUSTER="gone").returncode, 4)
        self.fine("list", "--cluster", "lab", STAGECOACH_ADDRESS="127.0.0.1:1")
        self.fine("config", "remove", "lab")
        plain = self.as_user("list", "--address", coordinator.address)
        self.assertEqual(plain.returncode, 4, plain.stderr)
        self.assertIn("it speaks TLS only", plain.stderr)
        self.fine("list", STAGECOACH_ADDRESS=coordinator.address, **variables(self.certs / "ann"))

    def test_a_certificate_of_another_authority_is_refused(self):
        coordinator = self.cluster()
        other = self.folder / "other"
        self.fine("certs", other, "user:eve")
        self.fine("config", "set", "lab", "--coordinator", coordinator.address, "--certs", other / "eve")
        refused = self.as_user("list")
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertRegex(refused.stderr, f"coordinator {coordinator.address}: its certificate is not accepted: ")
        # She knows the cluster's authority, but that does not know her.
        both = other / "both.pem"
        both.write_text((self.certs / "ca.pem").read_text() + (other / "ca.pem").read_text())
        self.fine("config", "set", "lab", "--coordinator", coordinator.address, "--grpc-root-cert", both,
                  "--grpc-server-cert", other / "eve" / "tls.crt", "--grpc-server-key", other / "eve" / "tls.key")
        refused = self.as_user("list")
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertIn("it refused the certificate of this program, whose authority or dates it does not accept", refused.stderr)
        # A user's certificate is no server's, and a server says so at once.
        stranger = server_process.Server(harness.BIN / "stagecoach-stage", self.folder, "stranger", "--name", "stage-0",
                                         "--coordinator", coordinator.address, before=[
                                             "env", *(f"{name}={value}" for name, value in variables(other / "eve").items())])
        self.addCleanup(stranger.kill)
        stranger.spawn()
        harness.wait_until("the stage to say why it cannot register",
                           lambda: "its certificate is not accepted" in stranger.log())


if __name__ == "__main__":
    harness.main()
