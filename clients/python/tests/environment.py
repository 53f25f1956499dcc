"""The tests' Python: one with the oldest packages that the client takes. A test that needs more packages names its own
environment before it imports `support`."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import pypi  # noqa: E402

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "bin").resolve()
OLDEST = ["grpcio==1.51.0", "protobuf==4.21.12"]  # those of pyproject.toml
_entered = False


def enter(name="python_client", *more):
    """Goes on in that environment with the client's packages and more, or ends with 77. The first call counts."""
    global _entered
    if not _entered:
        pypi.enter(BIN.parent, name, [*OLDEST, "pyyaml==6.0.2", "numpy==1.26.4", *more])
    _entered = True
