"""Coordinator and stages as processes with flags of the test's choice, where `stagecoach local` offers none."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402


class ServersTest(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        self.programs = []
        self.addCleanup(self.stop_programs)

    def stop_programs(self):
        for _, program, log in self.programs:
            if program.poll() is None:
                program.terminate()
        for name, program, log in self.programs:
            try:
                program.wait(timeout=20)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
            log.close()

    def launch(self, program, name, *arguments, listen="127.0.0.1:0"):
        """Starts a server on free ports; its log is folder/NAME.log."""
        log = open(self.folder / f"{name}.log", "w")
        process = subprocess.Popen([str(harness.BIN / program), "--listen", listen, "--http", "127.0.0.1:0",
                                    "--port-file", str(self.folder / f"{name}.ports"), "--die-with-parent",
                                    *map(str, arguments)], stdout=log, stderr=log)
        self.programs.append((name, process, log))
        return process

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def address(self, name):
        ports = self.folder / f"{name}.ports"
        harness.wait_until(f"{name} to listen", lambda: ports.exists() or self.fail_if_gone(name))
        return "127.0.0.1:" + ports.read_text().split()[0]

    def fail_if_gone(self, name):
        process = next(p for n, p, _ in self.programs if n == name)
        if process.poll() is not None:
            raise AssertionError(f"{name} ended with {process.returncode}: {self.log(name)}")
        return False
