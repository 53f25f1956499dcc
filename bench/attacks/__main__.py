"""Tries on a cluster with mutual TLS what once ended jobs or servers, and prints a table of what happens now.

    /usr/bin/python3 bench/attacks [--bin build/bin] [--only TEXT[,TEXT]] [--list]

Each row starts a cluster of its own on loopback: a coordinator, two stages, certificates of all roles, most with a job that
trains meanwhile. "holds" is said only where this run saw it. Needs python3-grpcio, python3-protobuf and protoc. Exit code: 0
all hold, 1 some do not.
"""
import argparse
import pathlib
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import cluster  # noqa: E402
import rows  # noqa: E402
import connections  # noqa: E402, F401
import control  # noqa: E402, F401
import files  # noqa: E402, F401
import limits  # noqa: E402, F401
import roles  # noqa: E402, F401


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=cluster.ROOT / "build" / "bin", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="TEXT[,TEXT]", help="rows with one of these in their name")
    parser.add_argument("--list", action="store_true", help="print the rows' names and end")
    return parser.parse_args()


def run(row, programs, messages):
    began = time.monotonic()
    try:
        verdict, saw = row.run(programs, messages)
    except Exception as error:  # its outcome; the others go on
        traceback.print_exc()
        verdict, saw = rows.OPEN, f"{type(error).__name__}: {str(error)[:300]}"
    print(f"{row.name}: {verdict} ({time.monotonic() - began:.0f} s): {saw}", file=sys.stderr, flush=True)
    return row, verdict, saw


def main():
    options = parse()
    chosen = [row for row in rows.ROWS if any(text in row.name for text in options.only.split(","))]
    if options.list:
        print(*(row.name for row in rows.ROWS), sep="\n")
        return 0
    if not chosen:
        sys.exit(f"--only {options.only}: no row is called so; --list says what there is")
    cluster.raise_descriptors()
    with tempfile.TemporaryDirectory() as folder:
        messages = cluster.messages(folder)
        results = [run(row, options.bin.resolve(), messages) for row in chosen]
    print("| what was done | at b2d5b39 | now | |\n| --- | --- | --- | --- |")
    for row, verdict, saw in results:
        print(f"| {row.title} | {row.before} | {saw.replace('|', '/')} | {verdict} |")
    return 0 if all(verdict == rows.HOLDS for _, verdict, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
