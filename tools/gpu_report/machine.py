"""What is here: the card and its driver, CUDA's libraries, a Python with PyTorch, compute-sanitizer, the programs."""
import ctypes
import glob
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

from .arithmetic import datasheet_tflops
from .budget import Failed, Late, NotRun
from .clocks import Clocks

PROBE_TORCH = """
import json, torch
card = torch.cuda.is_available()
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "card": card,
                  "name": torch.cuda.get_device_name(0) if card else None,
                  "compile": hasattr(torch, "compile"),
                  "attention": hasattr(torch.nn.functional, "scaled_dot_product_attention")}))
"""


def call(command, seconds, env=None):
    """A finished process with its output. Failed if it does not end in time."""
    try:
        return subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", env=env,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Late(f"{pathlib.Path(str(command[0])).name}: not finished within {seconds:.0f} s")
    except OSError as error:
        raise NotRun(f"{command[0]}: {error.strerror}")


def driver_cards():
    """(number of cards, CUDA version of the driver) by the driver itself. NotRun where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise NotRun("no device: libcuda.so.1 is not here, so no NVIDIA driver")
    code = driver.cuInit(0)
    if code == 100:
        raise NotRun("no device: a driver, but no card that it may use")
    if code != 0:
        raise NotRun(f"no device: the driver does not start (cuInit: {code})")
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        raise NotRun("no device: a driver, but no card that it may use")
    return count.value, f"{version.value // 1000}.{version.value % 1000 // 10}"


def parse_smi(text):
    """One line of nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader,nounits.
    Memory in bytes, None where it says [N/A]."""
    parts = [part.strip() for part in text.strip().splitlines()[0].split(",")]
    name, driver = ", ".join(parts[:-3]), parts[-3]

    def mebibytes(part):
        return int(part) * 2**20 if part.isdigit() else None
    return {"name": name, "driver": driver, "total_bytes": mebibytes(parts[-2]), "used_bytes": mebibytes(parts[-1])}


def smi_name(ordinal, environment=os.environ):
    """What nvidia-smi calls the card that CUDA numbers so: it does not look at CUDA_VISIBLE_DEVICES."""
    visible = [part.strip() for part in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    return visible[ordinal] if ordinal < len(visible) else str(ordinal)


def smi(ordinal):
    """What nvidia-smi says of one card, or None where it is not here or does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    fields = "name,driver_version,memory.total,memory.used"
    done = call([program, f"--id={smi_name(ordinal)}", f"--query-gpu={fields}", "--format=csv,noheader,nounits"], 30)
    return parse_smi(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


def library_folders(environment=os.environ, path=None):
    yield from filter(None, environment.get("LD_LIBRARY_PATH", "").split(":"))
    yield from sorted(glob.glob("/usr/local/cuda*/lib64"), reverse=True)
    yield from ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")
    for folder in sys.path if path is None else path:  # Python wheels, as PyTorch brings them
        yield from sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib")), reverse=True)


def find_libraries(wanted, folders):
    """{name: folder} of the libraries; NotRun naming the first that is nowhere."""
    folders, found = list(folders), {}
    for name in wanted:
        if name.startswith("libcuda.so"):
            continue
        folder = next((f for f in folders if os.path.exists(os.path.join(f, name))), None)
        if folder is None:
            raise NotRun(f"{name} is neither in a CUDA toolkit nor in a Python wheel here; the major version must be the "
                         "one that the programs were built with")
        found[name] = folder
    return found


def find_sanitizer(environment=os.environ, path=None):
    """compute-sanitizer's path: PATH, a toolkit, a Python wheel. NotRun where there is none."""
    found = shutil.which("compute-sanitizer", path=environment.get("PATH"))
    if found:
        return found
    homes = [environment[name] for name in ("CUDA_HOME", "CUDA_PATH") if environment.get(name)]
    homes += sorted(glob.glob("/usr/local/cuda*"), reverse=True)
    for folder in sys.path if path is None else path:
        homes += sorted(glob.glob(os.path.join(folder, "nvidia", "*")), reverse=True)
    for home in homes:
        for inner in ("bin", "compute-sanitizer"):
            program = os.path.join(home, inner, "compute-sanitizer")
            if os.access(program, os.X_OK) and os.path.isfile(program):
                return program
    raise NotRun("compute-sanitizer is neither on PATH nor in a CUDA toolkit here")


def cpu_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


class Machine:
    """The programs' folder, the device, and how to call them there."""

    def __init__(self, programs, device, python=None, home=None):
        self.programs, self.device = pathlib.Path(programs), device
        self.python = python or sys.executable
        self.home = pathlib.Path(home) if home else self.programs.parent  # of bundle.json
        self.env = dict(os.environ)
        self.total_bytes = None
        self.idle_bytes = None
        self.card_name = None
        self.driver = None
        self.libraries = {}  # name: the file behind it, whose name has the whole version
        self.ready = device == "cpu"  # the programs find their libraries
        self._commit = self._fingerprint = None
        self._torch = None
        self._bfloat16 = None

    @property
    def on_card(self):
        return self.device != "cpu"

    @property
    def ordinal(self):
        return int(self.device.split(":")[1]) if ":" in self.device else 0

    def program(self, name):
        path = self.programs / name
        if not path.exists():
            raise NotRun(f"{path} is not here")
        return path

    def bundle(self):
        file = self.home / "bundle.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def commit(self):
        if self._commit is None:
            file = self.home / "COMMIT"
            describe = ["git", "-C", str(self.home), "describe", "--always", "--dirty", "--exclude=*"]
            text = file.read_text() if file.exists() else subprocess.run(describe, capture_output=True, text=True).stdout
            self._commit = text.strip() or "unknown"
        return self._commit

    def find_card(self, values):
        """Fills in name, memory and driver; NotRun without a card."""
        count, supports = driver_cards()
        if self.ordinal >= count:
            raise NotRun(f"no device {self.device}: there are {count}, from cuda:0")
        values.update(cards=count, driver_supports=f"CUDA {supports}")
        seen = smi(self.ordinal)
        if seen is None:
            self.card_name = "a card that nvidia-smi does not name"
            return
        self.card_name, self.total_bytes, self.idle_bytes = seen["name"], seen["total_bytes"], seen["used_bytes"]
        self.driver = seen["driver"]
        values.update(driver=seen["driver"], memory_bytes=seen["total_bytes"], datasheet_tflops=self.datasheet())

    def find_libraries(self, values):
        wanted = self.bundle().get("from_target")
        if wanted is None:
            self.ready = True
            return  # built here: the programs know their libraries
        if not wanted:
            raise NotRun("these programs were built without CUDA")
        folders = list(library_folders(self.env))
        values["libraries"] = find_libraries(wanted, folders)
        for name in self.bundle().get("from_target_if_there", []):  # loaded by the programs where they find them
            try:
                values["libraries"].update(find_libraries([name], folders))
            except NotRun:
                values["libraries_absent"] = [*values.get("libraries_absent", []), name]
        # In front, never instead: some machines have the driver's libcuda on this variable only.
        before = [folder for folder in self.env.get("LD_LIBRARY_PATH", "").split(":") if folder]
        self.env["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys([*values["libraries"].values(), *before]))
        self.libraries = {name: os.path.basename(os.path.realpath(os.path.join(folder, name)))
                          for name, folder in values["libraries"].items()}
        values["found"] = ", ".join(values["libraries"])
        if "libraries_absent" in values:
            values["found"] += "; not here: " + ", ".join(values["libraries_absent"])
        self.ready = True

    def datasheet(self):
        return datasheet_tflops(self.card_name) if self.card_name else None

    def fingerprint(self):
        """What the programs' back end says of itself here, with its libraries' versions; asked once. Text, also where it
        cannot be asked; None before the libraries are found."""
        if self._fingerprint is None and self.ready:
            self._fingerprint = self._ask_fingerprint()
        return self._fingerprint

    def _ask_fingerprint(self):
        try:
            done = call([self.program("gpu-matmul-bench"), "--device", self.device, "--size", 16, "--seconds", 0.01], 60,
                        self.env)
            return str(json.loads(done.stdout.strip().splitlines()[-1])["fingerprint"])
        except (NotRun, Failed) as why:
            return f"unknown: {why}"
        except (IndexError, KeyError, ValueError):
            return f"unknown: {(done.stderr.strip().splitlines() or ['gpu-matmul-bench said nothing'])[-1]}"

    def conditions(self, clocks, began):
        """Under which a row ran since then: without them two numbers of one card cannot be compared."""
        return {"fingerprint": self.fingerprint(), "driver": self.driver, "libraries": self.libraries,
                "clocks": clocks.since(began)}

    def used_bytes(self):
        """Of the card by all processes, or None."""
        seen = smi(self.ordinal) if self.on_card else None
        return seen["used_bytes"] if seen else None

    def torch(self):
        """What the probe says; NotRun where PyTorch is not, or does not see the card."""
        if self._torch is None:
            done = call([self.python, "-c", PROBE_TORCH], 120)
            if done.returncode != 0:
                self._torch = {"why": f"PyTorch: {(done.stderr.strip().splitlines() or ['does not start'])[-1]} "
                                      f"({self.python}; another Python: --python)"}
            else:
                self._torch = json.loads(done.stdout.strip().splitlines()[-1])
        if "why" in self._torch:
            raise NotRun(self._torch["why"])
        if self.on_card and not self._torch["card"]:
            raise NotRun(f"PyTorch {self._torch['version']} sees no card")
        return self._torch

    def need_bfloat16(self, folder):
        """NotRun where the programs do not know `precision: bfloat16`."""
        if self._bfloat16 is None:
            file = pathlib.Path(folder) / "precision.json"
            from .jobs import tiny_job
            file.write_text(json.dumps(tiny_job(precision="bfloat16")))
            done = call([self.program("stagecoach"), "validate", "--data-elsewhere", file], 30, self.env)
            self._bfloat16 = done.stderr.strip() if done.returncode else ""
        if self._bfloat16:
            why = self._bfloat16.splitlines()[0].split("precision.json")[-1].split(";")[0]
            raise NotRun(f"these programs do not take precision: bfloat16 ({why.lstrip(':0123456789 ')})")

    def clocks(self):
        """Sampled while it is entered; nothing on a CPU."""
        return Clocks(shutil.which("nvidia-smi") if self.on_card else None, smi_name(self.ordinal))

    def known(self):
        """What can be said of the machine before anything is asked."""
        return {"device_name": self.card_name if self.on_card and self.card_name else f"{self.device}, {cpu_name()}",
                "device": self.device, "commit": self.commit(),
                "machine": f"{os.cpu_count()} cores of {cpu_name()}, {platform.system()} {platform.release()}"}

    def describe(self):
        facts = self.known()
        if self.on_card:
            seen = smi(self.ordinal) or {}
            facts["driver"] = seen.get("driver", "unknown")
        else:
            facts["note"] = "on the CPU with tiny shapes: a trial of the report, not a measurement of a card"
        try:
            facts["PyTorch"] = self.torch()["version"]
        except NotRun as why:
            facts["PyTorch"] = str(why)
        except Failed as why:
            facts["PyTorch"] = str(why)
        return facts
