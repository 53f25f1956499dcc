"""The wheel, installed by pip into empty environments with the oldest and the newest packages, trains a job.

Skips (77) where PyPI is not reached.
"""
import json
import subprocess
import sys
import zipfile

import support

PROGRAM = """
import importlib.metadata, sys
import stagecoach
assert "yaml" not in sys.modules
with stagecoach.Client(sys.argv[1]) as client:
    job = client.submit(sys.argv[2])
    steps = [event.step for event in job.follow(progress=True) if event.kind == "step"]
    result = job.wait()
    assert [row["step"] for row in job.metrics()] == steps == list(range(1, 7)), steps
    assert job.timeline() and job.checkpoints() and client.plan(sys.argv[2]).stages and job.spec()
    print(result.state, result.weights_digest, stagecoach.__file__)
    print(*(f"{name} {importlib.metadata.version(name)}" for name in ("stagecoach", "grpcio", "protobuf")), sep="\\n")
"""


class Wheels(support.ClusterTest):
    def run_in_environment(self, name, *packages):
        """PROGRAM's output, in a new environment with the wheel and these packages."""
        environment = self.folder / name
        python = environment / "bin" / "python3"
        install = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", str(environment)], [*install, str(support.WHEEL), *packages]):
            result = subprocess.run(command, capture_output=True, text=True, timeout=240)
            if result.returncode != 0:
                self.skipTest(f"{' '.join(command[1:4])}: {(result.stderr.splitlines() or ['no output'])[-1]}")
        job_file = self.folder / "job.json"
        job_file.write_text(json.dumps(self.job()))
        result = subprocess.run([str(python), "-W", "error", "-c", PROGRAM, self.coordinator, str(job_file)], cwd=self.folder,
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("6/6  SUCCEEDED", result.stderr, "the line with the progress")
        self.assertIn(str(environment), result.stdout)
        return result.stdout

    def test_the_oldest_packages(self):
        out = self.run_in_environment("oldest", *support.OLDEST)
        for package in support.OLDEST:
            self.assertIn(package.replace("==", " ") + "\n", out)

    def test_the_newest_packages(self):
        out = self.run_in_environment("newest")
        self.assertRegex(out, r"^SUCCEEDED sha256:[0-9a-f]{64} ")
        self.assertNotIn(support.OLDEST[1].replace("==", " "), out)

    def test_the_requirements_are_the_oldest_that_are_tested(self):
        with zipfile.ZipFile(support.WHEEL) as wheel:
            title = next(name for name in wheel.namelist() if name.endswith("METADATA"))
            metadata = wheel.read(title).decode()
            self.assertIn("stagecoach/py.typed", wheel.namelist())
        for package in support.OLDEST:
            name, version = package.split("==")
            self.assertRegex(version, "^" + metadata.split(f"Requires-Dist: {name}>=")[1].splitlines()[0])

    def test_the_same_sources_give_the_same_bytes(self):
        again = self.folder / "again"
        again.mkdir()
        name = support.build_wheel.build_wheel(str(again))
        self.assertEqual((again / name).read_bytes(), support.WHEEL.read_bytes())

    def test_pip_builds_it_from_the_checkout_with_nothing_from_pypi(self):
        environment = self.folder / "source"
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        result = subprocess.run([str(environment / "bin" / "python3"), "-m", "pip", "wheel", "--no-deps", "--no-index", "--quiet",
                                 "--wheel-dir", str(self.folder / "wheels"), str(support.CLIENT)], capture_output=True, text=True,
                                timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.folder / "wheels" / support.WHEEL.name).read_bytes(), support.WHEEL.read_bytes())


if __name__ == "__main__":
    support.main()
