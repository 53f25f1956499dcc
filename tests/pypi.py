"""Python packages for a test: a virtual environment under the build folder; without PyPI the test is skipped (77)."""
import os
import pathlib
import subprocess
import sys


def enter(build, name, packages, with_system_packages=False, dependencies=True, alone=()):
    """Goes on in an environment with these packages ("name==version"), or ends with 77 and the reason.

    `with_system_packages`: beside those that this Python has already, which are not fetched then. Without `dependencies`
    all that is needed is among the packages. Those of `alone` come afterwards, without what they say they need.
    """
    folder = pathlib.Path(build) / "venv" / name
    python = folder / "bin" / "python3"
    if pathlib.Path(sys.prefix) == folder:
        return
    stamp = folder / "complete"
    options = [] if dependencies else ["--no-deps"]
    wanted = "\n".join([sys.version, *options, *packages, *alone])
    install = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1"]
    if not stamp.exists() or stamp.read_text() != wanted:
        system = ["--system-site-packages"] if with_system_packages else []
        commands = [[sys.executable, "-m", "venv", "--clear", *system, str(folder)], [*install, *options, *packages]]
        if alone:
            commands.append([*install, "--no-deps", *alone])
        for command in commands:
            try:
                result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
            except subprocess.TimeoutExpired as late:  # a mirror that is slow is as good as none
                print(f"skipped: {' '.join(command[1:4])}: nothing within {late.timeout:.0f} s")
                sys.exit(77)
            if result.returncode != 0:
                print(f"skipped: {' '.join(command[1:4])}: {(result.stdout.splitlines() or ['no output'])[-1]}")
                sys.exit(77)
        stamp.write_text(wanted)
    os.execv(python, [str(python), *sys.argv])
