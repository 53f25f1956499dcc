#!/usr/bin/env python3
"""Ratchet: layering, sizes and words that must not come in. Prints only what is wrong, exits 1 then.

A limit that a file may exceed for a stated reason is listed in EXCEPTIONS with that reason.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOFT_LINES, HARD_LINES, FUNCTION_LINES = 400, 800, 70

# folder -> folders it may include from and link (its own is always allowed)
LEVELS = {
    "base": set(),
    "scores": {"base"},
    "decoding": {"base"},
    "operations": {"base"},
    "network": {"base", "operations"},
    "devices": {"base", "operations"},
    "plan": {"base", "decoding", "operations", "network", "devices"},
    "checkpoint": {"base"},
    "stage": {"base", "scores", "decoding", "operations", "network", "devices", "plan", "checkpoint"},
    "coordinator": {"base", "scores", "decoding", "operations", "network", "devices", "plan", "checkpoint"},
    "services/common": {"base", "scores", "decoding", "operations", "network", "devices", "plan", "checkpoint", "stage"},
    "services/records": {"base", "scores", "decoding", "operations", "network", "devices", "plan", "checkpoint", "coordinator",
                         "services/common"},
    "services/coordinator": {"base", "scores", "decoding", "operations", "network", "devices", "plan", "checkpoint", "coordinator",
                             "services/common", "services/records"},
    "services/stage": {"base", "scores", "decoding", "operations", "network", "devices", "plan", "checkpoint", "stage", "services/common"},
    "services/cli": {"base", "scores", "decoding", "operations", "network", "devices", "plan", "checkpoint", "stage", "services/common"},
}
# Libraries of others that only some may link, however many targets lie between.
ONLY_LINKED_BY = {"SQLite::SQLite3": {"coordinator", "services/records", "services/coordinator"}}
# Code for tests alone: the product neither includes nor links it.
TEST_CODE = re.compile(r"_test\.cc$|_testing\.h$|/testing/|/conformance/|/emulation/|/recording/")
# Which product files may see gRPC, protobuf messages and Prometheus.
MAY_SEE_GRPC = ("services/", "stage/link/grpc/", "tests/", "bench/")
IMPURE = re.compile(r"(thread|mutex|chrono|fstream|condition_variable)$")
FORBIDDEN = [
    (re.compile(r"\bstd::recursive_mutex\b"), "recursive mutex"),
    (re.compile(r"\.detach\(\)"), "detached thread"),
    (re.compile(r"\bsleep_for\b|\busleep\(|\babsl::SleepFor\b"), "waiting by sleeping"),
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "work left for others"),
    (re.compile(r"-ffast-math|-march=native"), "flags that change bits"),
]
# Tests run beside each other: each has a folder of its own, which is removed (base/testing/temporary_folder.h).
FORBIDDEN_IN_TESTS = [
    (re.compile(r"\bTempDir\(|\bmkdtemp\(|\btemp_directory_path\(|\"/tmp\b"), "a temporary folder made by hand"),
]
EXCEPTIONS = {
    ("base/testing/temporary_folder.h", "a temporary folder made by hand"): "makes it",
    ("tests/fuzz/data_file_fuzz.cc", "a temporary folder made by hand"): "one file in memory, by mkstemp",
    ("network/zoo/every_network_testing.h", "functions"): "one table, a row for each network",
}


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in out.stdout.splitlines() if (ROOT / line).exists()]


def level_of(path):
    """The entry of LEVELS that a file or an include belongs to, or None."""
    parts = path.split("/")
    for name in ("/".join(parts[:2]), parts[0]):
        if name in LEVELS:
            return name
    return None


def is_product(path):
    return level_of(path) is not None and not TEST_CODE.search(path)


def check_includes(path, lines, problems):
    folder = level_of(path)
    for number, line in enumerate(lines, 1):
        match = re.match(r'#include\s+[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        include = match.group(1)
        target = level_of(include)
        if folder and target and target != folder and target not in LEVELS[folder]:
            problems.append(f"{path}:{number}: {folder}/ may not include {target}/")
        if is_product(path) and TEST_CODE.search(include):
            problems.append(f"{path}:{number}: may not include {include}, which is for tests")
        if re.match(r"(grpc|grpcpp|prometheus|google/protobuf|stagecoach/v1)/", include):
            if not path.startswith(MAY_SEE_GRPC):
                problems.append(f"{path}:{number}: gRPC, protobuf and Prometheus stay in services/ and stage/link/grpc/")
        if folder == "plan" and is_product(path) and IMPURE.match(include):
            problems.append(f"{path}:{number}: plan/ is pure: no <{include}>")


# Comments, directives and literals: braces in them count for nothing.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*|'
    r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\[^\']+|[^\'\\\n])\'',
    re.DOTALL | re.MULTILINE)
TYPE_HEAD = re.compile(r"\b(class|struct|union|enum|namespace)\s+[^()]*$|[=,(]$")


def functions_of(text):
    """First and last line of every function's body, within classes too. A lambda counts with its function."""
    code = NO_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)
    opened, line, head = [], 1, ""  # opened: of each open brace its line, and if it opens a function
    for piece in re.split(r"([{};\n])", code):
        if piece == "\n":
            line += 1
            head += " "
        elif piece == "{":
            within = any(is_function for _, is_function in opened)
            opened.append((line, not within and "(" in head and not TYPE_HEAD.search(head.strip())))
            head = ""
        elif piece == "}" and opened:
            first, is_function = opened.pop()
            if is_function:
                yield first, line
            head = ""
        else:
            head = "" if piece == ";" else head + piece


def check_functions(path, text, problems):
    for first, last in functions_of(text):
        if last - first > FUNCTION_LINES and (path, "functions") not in EXCEPTIONS:
            problems.append(f"{path}:{first}: function of {last - first} lines, limit {FUNCTION_LINES}")


def find_circle(uses):
    """One circle of folders as a list that ends where it began, or None."""
    state, path = {}, []

    def visit(folder):
        state[folder] = "open"
        path.append(folder)
        for used in sorted(uses.get(folder, {})):
            if state.get(used) == "open":
                return path[path.index(used):] + [used]
            if used not in state:
                circle = visit(used)
                if circle:
                    return circle
        path.pop()
        state[folder] = "done"
        return None

    for folder in sorted(uses):
        if folder not in state:
            circle = visit(folder)
            if circle:
                return circle
    return None


def check_circles(sources, problems):
    """Folders include each other in one direction only. Tests may look anywhere."""
    folders = {str(pathlib.PurePath(path).parent) for path in sources}
    uses = {}
    for path, lines in sources.items():
        if TEST_CODE.search(path):
            continue
        folder = str(pathlib.PurePath(path).parent)
        for line in lines:
            match = re.match(r'#include "([^"]+)"', line)
            target = str(pathlib.PurePath(match.group(1)).parent) if match else folder
            if target != folder and target in folders:
                uses.setdefault(folder, {}).setdefault(target, path)
    circle = find_circle(uses)
    if circle:
        steps = [f"{a} -> {b} ({uses[a][b]})" for a, b in zip(circle, circle[1:])]
        problems.append("folders include each other in a circle: " + ", ".join(steps))


CMAKE_CALL = re.compile(
    r"(stagecoach_module|stagecoach_program|add_library|target_link_libraries)\s*\(([^)]*)\)")


def read_libraries():
    """Of every library and program: the folder that makes it, and what it links."""
    folder_of, links = {}, {}
    for path in tracked("*CMakeLists.txt"):
        folder = str(pathlib.PurePath(path).parent)
        text = re.sub(r"#.*", "", (ROOT / path).read_text())
        for function, body in re.findall(CMAKE_CALL, text):
            words = body.split()
            name = f"stagecoach_{words[0]}" if function == "stagecoach_module" else words[0]
            links.setdefault(name, set())
            if function != "target_link_libraries":
                folder_of[name] = folder
            if "TEST_DEPS" in words:  # tests may look anywhere
                words = words[:words.index("TEST_DEPS")]
            links[name].update(word for word in words[1:] if word.startswith("stagecoach_") or "::" in word)
    return folder_of, links


def check_links(problems):
    folder_of, links = read_libraries()

    def is_for_tests(name):
        made_in = folder_of.get(name, "") + "/"
        return name.startswith("GTest::") or "_testing" in name or TEST_CODE.search(made_in)

    for name, folder in sorted(folder_of.items()):
        level = level_of(folder + "/")
        for used in sorted(links[name]):
            if level and is_for_tests(used) and not is_for_tests(name):
                problems.append(f"{folder}/CMakeLists.txt: {name} may not link {used}: for tests")
        reached, todo = set(), [name]
        while level and todo:
            for used in links.get(todo.pop(), ()):
                if used not in reached:
                    reached.add(used)
                    todo.append(used)
        for used in sorted(reached):
            target = level_of(folder_of[used] + "/") if used in folder_of else None
            if target and target != level and target not in LEVELS[level]:
                problems.append(f"{folder}/CMakeLists.txt: {name} may not link {used}, which {target}/ makes")
            if used in ONLY_LINKED_BY and level not in ONLY_LINKED_BY[used]:
                problems.append(f"{folder}/CMakeLists.txt: {name} may not link {used}")


def main():
    problems, notes = [], []
    sources = {path: (ROOT / path).read_text().splitlines() for path in tracked("*.cc", "*.h", "*.cu", "*.cuh")}
    for path, lines in sources.items():
        if not path.endswith("_test.cc"):
            check_functions(path, "\n".join(lines), problems)
    check_circles(sources, problems)
    check_links(problems)
    for path in tracked("*.cc", "*.h"):
        lines = sources[path]
        check_includes(path, lines, problems)
        for pattern, what in FORBIDDEN + ([] if is_product(path) else FORBIDDEN_IN_TESTS):
            for number, line in enumerate(lines, 1):
                if pattern.search(line) and (path, what) not in EXCEPTIONS:
                    problems.append(f"{path}:{number}: {what}")
        if len(lines) > HARD_LINES and (path, "lines") not in EXCEPTIONS:
            problems.append(f"{path}: {len(lines)} lines, limit {HARD_LINES}")
        elif len(lines) > SOFT_LINES:
            notes.append(f"{path}: {len(lines)} lines (is it one idea?)")
    for note in notes:
        print("note:", note)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
