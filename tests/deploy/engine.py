"""A container engine for tests: the one that runs, or one of our own, started by hand and removed without a trace."""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from waiting import wait_until  # noqa: E402

BASE_IMAGE = "stagecoach-test/base:bookworm"


class NoEngine(Exception):
    """Why there can be none here."""


def find(program):
    """Debian's program before another one of the same name: client, compose and engine must fit together."""
    debian = pathlib.Path("/usr/bin") / program
    return str(debian) if debian.exists() else shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def end_with_parent():
    """A test that is killed must not leave a daemon behind."""
    ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))  # PR_SET_PDEATHSIG


class Engine:
    """Use as a context. environment is what docker and docker-compose need to find it."""

    def __init__(self, cache):
        self.cache = pathlib.Path(cache)
        self.docker = find("docker")
        self.environment = dict(os.environ, DOCKER_BUILDKIT="1")
        self.folder = None
        self.process = None

    def __enter__(self):
        if self.docker is None:
            raise NoEngine("no docker client: apt-get install docker.io docker-compose debootstrap")
        if not self._answers():
            self._start()
        try:
            self._import_base()
        except BaseException:
            self.__exit__()
            raise
        return self

    def run(self, *arguments, check=True, timeout=300, **options):
        """docker ARGUMENTS; output in the error if it fails."""
        result = subprocess.run([self.docker, *arguments], env=self.environment, text=True, timeout=timeout,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        if check and result.returncode != 0:
            raise AssertionError(f"docker {' '.join(arguments)}: {result.stdout[-2000:]}{result.stderr[-4000:]}")
        return result

    def start(self, *arguments):
        """docker ARGUMENTS as a process with pipes, for what must be ready before it is needed."""
        return subprocess.Popen([self.docker, *arguments], env=self.environment, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def build(self, folder, dockerfile, tag, target=None, **arguments):
        command = ["build", "--network", "host", "-q", "-t", tag, "-f", str(dockerfile)]
        if target:
            command += ["--target", target]
        for name, value in arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        self.run(*command, str(folder))

    def _answers(self):
        try:
            return subprocess.run([self.docker, "info"], env=self.environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=30).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _start(self):
        dockerd = find("dockerd")
        if os.geteuid() != 0:
            raise NoEngine("no container engine answers, and only root can start one")
        if dockerd is None:
            raise NoEngine("no container engine answers, and there is no dockerd: apt-get install docker.io")
        for driver in ("overlay2", "vfs"):
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stagecoach-engine-"))
            socket = self.folder / "sock"
            with open(self.folder / "log", "w") as log:
                # No bridge and no iptables: networks of our own work without, and the host stays as it is.
                self.process = subprocess.Popen(
                    [dockerd, "--iptables=false", "--bridge=none", f"--storage-driver={driver}",
                     f"--data-root={self.folder}/data", f"--exec-root={self.folder}/exec", f"--host=unix://{socket}",
                     f"--pidfile={self.folder}/pid"], stdout=log, stderr=log, start_new_session=True,
                    preexec_fn=end_with_parent)
            self.environment["DOCKER_HOST"] = f"unix://{socket}"
            if self._comes_up(socket):
                return
            last = (self.folder / "log").read_text().splitlines()[-1:]
            self.__exit__()
        raise NoEngine(f"dockerd does not start here: {last}")

    def _comes_up(self, socket):
        """A daemon does not say when it is ready: it answers, or ends."""
        try:
            wait_until("dockerd to answer", lambda: self.process.poll() is not None or
                       (socket.exists() and self._answers()), 120, every=0.1)
        except AssertionError:
            return False
        return self.process.poll() is None

    def _import_base(self):
        """Debian's minimal system, as no registry can be reached; kept as a file for the next time."""
        if self.run("image", "inspect", BASE_IMAGE, check=False).returncode == 0:
            return
        archive = self.cache / "debian-bookworm.tar"
        if not archive.exists():
            debootstrap = find("debootstrap")
            if debootstrap is None or os.geteuid() != 0:
                raise NoEngine("no base image: needs root and apt-get install debootstrap")
            self.cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="stagecoach-base-") as root:
                try:
                    made = subprocess.run([debootstrap, "--variant=minbase", "bookworm", root], text=True, timeout=400,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                except subprocess.TimeoutExpired as late:  # a mirror that is slow is as good as none
                    raise NoEngine(f"debootstrap: not done within {late.timeout:.0f} s")
                if made.returncode != 0:
                    raise NoEngine(f"debootstrap: {made.stdout[-500:]}")
                partial = archive.with_suffix(".partial")
                subprocess.run(["tar", "-C", root, "--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*",
                                "-cf", partial, "."], check=True)
                partial.rename(archive)
        self.run("import", str(archive), BASE_IMAGE)

    def __exit__(self, *_):
        """Ends our own engine and everything it left; another one is not touched."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None
        mounts = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((m for m in mounts if m.startswith(str(self.folder))), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
