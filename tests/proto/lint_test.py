"""The .proto files hold buf's standard rules and have a comment on everything that clients see."""
import pathlib
import subprocess
import sys

BUF_BIN = "buf-bin==1.75.0"


def main():
    build, protos = map(pathlib.Path, sys.argv[1:3])
    tools = build / "python-buf"
    buf = tools / "bin" / "buf"
    if not buf.exists():
        subprocess.run([sys.executable, "-m", "venv", tools], check=True)
        install = subprocess.run([tools / "bin" / "pip", "install", "--quiet", "--timeout", "15", BUF_BIN],
                                 capture_output=True, text=True)
        if install.returncode != 0:
            print("skipped: buf could not be had from PyPI:", install.stderr.strip().splitlines()[-1:])
            return 77
    return subprocess.run([buf, "lint", protos]).returncode


if __name__ == "__main__":
    sys.exit(main())
