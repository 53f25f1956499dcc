#!/usr/bin/env python3
"""Builds the wheel of the Python client. Needs Python 3.11 and protoc, and nothing from PyPI.

    clients/python/build_wheel.py [FOLDER]      prints the wheel's path; FOLDER is build/python by default
    pip install ./clients/python                the same by pip: pyproject.toml names this file as its build back end

protoc makes the messages of proto/ into the private module stagecoach._proto. The same sources and the same protoc give
the same bytes of the wheel.
"""
from __future__ import annotations

import base64
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = HERE / "stagecoach"
BUILT_AT = (1980, 1, 1, 0, 0, 0)  # a wheel has no time of its own, so that its bytes are those of its sources


class UnsupportedOperation(Exception):
    """The name by which PEP 517 knows that a back end makes no source archive."""


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    """PEP 517: writes the wheel into the folder and returns its name."""
    project = read_project()
    title = f"{project['name']}-{project['version']}"
    files = {f"stagecoach/{path.name}": path.read_bytes() for path in sorted(PACKAGE.iterdir()) if path.is_file()}
    files |= {f"stagecoach/_proto/{name}": data for name, data in make_messages().items()}
    files[f"{title}.dist-info/METADATA"] = metadata(project).encode()
    files[f"{title}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: stagecoach\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{title}.dist-info/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{title}.dist-info/RECORD"] = record(files, f"{title}.dist-info/RECORD").encode()
    name = f"{title}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, BUILT_AT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """PEP 517: not offered; the messages are those of proto/, which a source archive of this folder would not have."""
    raise UnsupportedOperation("only a wheel is built: python3 clients/python/build_wheel.py")


def read_project() -> dict[str, typing.Any]:
    """The table [project] of pyproject.toml, with the version of the whole."""
    try:
        import tomllib
    except ImportError:
        raise SystemExit("building the wheel needs Python 3.11; the wheel itself runs on 3.9 and later") from None
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    return {**project, "version": (ROOT / "VERSION").read_text().strip()}


def make_messages() -> dict[str, bytes]:
    """The files of stagecoach._proto by name: protoc's, with imports from where they are."""
    protoc = shutil.which("protoc")
    if protoc is None:
        raise SystemExit("protoc is not installed: tools/setup, or apt-get install protobuf-compiler")
    protos = sorted(str(path) for path in (ROOT / "proto" / "stagecoach" / "v1").glob("*.proto"))
    if not protos:
        raise SystemExit(f"no .proto files below {ROOT / 'proto'}: build the wheel in a checkout")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([protoc, f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--pyi_out={folder}", *protos], check=True)
        made = sorted((pathlib.Path(folder) / "stagecoach" / "v1").iterdir())
        files = {path.name: path.read_text().replace("from stagecoach.v1 import", "from stagecoach._proto import").encode()
                 for path in made}
    return {"__init__.py": b'"""The messages of proto/stagecoach/v1, made by protoc."""\n', **files}


def metadata(project: dict[str, typing.Any]) -> str:
    """The wheel's METADATA."""
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}",
             f"Summary: {project['description']}", "License-File: LICENSE", f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {one}" for one in project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {one} ; extra == '{extra}'" for one in packages]
    return "\n".join(lines) + "\n"


def record(files: dict[str, bytes], own: str) -> str:
    """The wheel's RECORD: path, digest and size of each file."""
    def digest(data: bytes) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items()) + f"{own},,\n"


def main() -> None:
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else ROOT / "build" / "python")
    folder.mkdir(parents=True, exist_ok=True)
    print(folder / build_wheel(str(folder)))


if __name__ == "__main__":
    main()
