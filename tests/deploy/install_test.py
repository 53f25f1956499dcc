"""`cmake --install` and the Debian package: all is there, it works where it lies, and nothing else comes along.

The systemd units are read and run as systemd would run them, from the package's own files, on free ports.
"""
import filecmp
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402

import servers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = harness.BIN.parent
PROGRAMS = ["stagecoach", "stagecoach-coordinator", "stagecoach-stage", "stagecoach-train-tokenizer"]
PAGES = {"stagecoach": 1, "stagecoach-coordinator": 8, "stagecoach-stage": 8}
COMPLETIONS = {"bash": "share/bash-completion/completions/stagecoach", "zsh": "share/zsh/site-functions/_stagecoach",
               "fish": "share/fish/vendor_completions.d/stagecoach.fish"}
SYNTAX_ONLY = {"bash": "-n", "zsh": "-n", "fish": "--no-execute"}
OTHERS_VARIABLES = {"OMP_WAIT_POLICY"}  # read by OpenMP


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} ended with {result.returncode}: {result.stdout}{result.stderr}")
    return result.stdout


class Unit:
    """A .service file: its variables, and the command that systemd makes of ExecStart."""

    def __init__(self, path):
        text = path.read_text().replace("\\\n", " ")
        self.variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
        self.settings_file = re.search(r"^EnvironmentFile=-(.*)$", text, re.MULTILINE).group(1)
        self.exec_start = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE).group(1)

    def named_variables(self):
        return set(self.variables) | set(re.findall(r"\$\{?(\w+)", self.exec_start))

    def command(self, variables):
        """${NAME} within a word stays one word; $NAME is split at blanks, and may be none."""
        words = []
        for word in shlex.split(self.exec_start):
            if re.fullmatch(r"\$\w+", word):
                words += shlex.split(variables.get(word[1:], ""))
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda match: variables[match.group(1)], word))
        return words


def settings(path):
    """(NAME, VALUE) of every line of a settings file, those in comments too."""
    return re.findall(r"^#?([A-Z_]+)=(.*)$", path.read_text(), re.MULTILINE)


class Prefix(servers.ServersTest):
    """`cmake --install build --prefix P`."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="stagecoach-install-")
        cls.addClassCleanup(folder.cleanup)
        cls.prefix = pathlib.Path(folder.name) / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

    def unit(self, server):
        return Unit(self.prefix / "lib/systemd/system" / f"stagecoach-{server}.service")

    def help(self, *command):
        return run(self.prefix / "bin" / command[0], *command[1:], "--help")

    def test_programs_run_from_there_and_no_other_is_there(self):
        self.assertEqual(sorted(path.name for path in (self.prefix / "bin").iterdir()), PROGRAMS)
        version = (ROOT / "VERSION").read_text().strip()
        self.assertEqual(run(self.prefix / "bin/stagecoach", "version", cwd="/"), f"stagecoach {version}\n")
        for program in PROGRAMS[1:3]:
            self.assertEqual(run(self.prefix / "bin" / program, "--version", cwd="/"), f"{version}\n")
        for program in PROGRAMS:
            libraries = run("ldd", self.prefix / "bin" / program)
            self.assertNotIn("not found", libraries)
            self.assertNotIn(str(BUILD), libraries)
        self.assertEqual(list(BUILD.glob("install-*")), [], "what the installation made on its way")

    def test_only_what_belongs_to_it_is_installed(self):
        folders = {str(path.relative_to(self.prefix).parent) for path in self.prefix.rglob("*") if path.is_file()}
        allowed = ("bin", "etc/stagecoach", "lib/systemd/system", "lib/sysusers.d", "lib/tmpfiles.d", "share/man/man1",
                   "share/man/man8", "share/bash-completion/completions", "share/zsh/site-functions",
                   "share/fish/vendor_completions.d")
        for folder in folders:
            self.assertTrue(folder in allowed or re.match("share/(doc/)?stagecoach(/|$)", folder), folder)
        self.assertTrue((self.prefix / "share/doc/stagecoach/copyright").exists())
        examples = self.prefix / "share/stagecoach/examples"
        self.assertEqual({path.name for path in examples.glob("*.yaml")},
                         {path.name for path in (ROOT / "examples").glob("*.yaml")})
        # Its text is ../LICENSE.
        run(self.prefix / "bin/stagecoach", "validate", examples / "gpt-tiny.yaml", cwd="/")

    def test_pages_have_every_flag_and_every_command(self):
        for program, section in PAGES.items():
            page = (self.prefix / f"share/man/man{section}/{program}.{section}").read_text()
            flags = re.findall(r"^  (-[\w,-]+)", self.help(program), re.MULTILINE)
            self.assertGreater(len(flags), 5)
            for flag in flags:
                self.assertIn("\\fB" + flag.replace("-", "\\-") + "\\fR", page, program)
            self.assertNotIn(str(BUILD), page)
        page = (self.prefix / "share/man/man1/stagecoach.1").read_text()
        commands = re.findall(r"^  ([a-z]+) ", self.help("stagecoach").split("Subcommands:")[1], re.MULTILINE)
        self.assertIn("submit", commands)
        for command in [*commands, "checkpoints verify", "tokenizer train"]:
            self.assertIn(f"\n.SS {command}\n", page)
        # A text below its term, and one beside it.
        local = page.split("\n.SS local\n")[1].split("\n.SS ")[0].splitlines()
        term = local.index("\\fB\\-\\-threads\\-per\\-stage\\fR INT in [1 \\- 1024]")
        self.assertEqual(local[term + 1], "default: the cores divided among the stages")
        term = local.index("\\fB\\-\\-id\\fR TEXT")
        self.assertEqual(local[term + 1], "job id; default: the job\\(aqs name")

    def test_pages_are_the_same_again_whatever_the_environment_has(self):
        environment = dict(os.environ, STAGECOACH_ADDRESS="elsewhere:1", COLUMNS="40", LC_ALL="C")
        run(sys.executable, ROOT / "tools/man_pages.py", harness.BIN, self.folder / "man", env=environment)
        for program, section in PAGES.items():
            page = f"man{section}/{program}.{section}"
            self.assertTrue(filecmp.cmp(self.folder / "man" / page, self.prefix / "share/man" / page, shallow=False), page)

    def test_man_reads_the_pages_without_a_warning(self):
        if not shutil.which("man"):
            self.skipTest("no man here")
        for program, section in PAGES.items():
            page = self.prefix / f"share/man/man{section}/{program}.{section}"
            result = subprocess.run(["man", "--warnings=all", "-E", "UTF-8", "-l", str(page)], capture_output=True,
                                    text=True, timeout=60, env=dict(os.environ, MANWIDTH="100", LC_ALL="C.UTF-8"))
            self.assertEqual((result.returncode, result.stderr), (0, ""), page)
            self.assertIn(f"{program} - ", result.stdout)

    def test_shells_take_their_completions(self):
        missing = [shell for shell in COMPLETIONS if not shutil.which(shell)]
        for shell, path in COMPLETIONS.items():
            if shell not in missing:
                run(shell, SYNTAX_ONLY[shell], self.prefix / path)
        answer = run("bash", "-c", f'source {shlex.quote(str(self.prefix / COMPLETIONS["bash"]))} && complete -p stagecoach')
        self.assertEqual(answer, "complete -F _stagecoach stagecoach\n")
        if missing:
            self.skipTest(f"no {' and no '.join(missing)} here")

    def test_systemd_takes_the_units(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here")
        for server in ("coordinator", "stage"):
            unit = self.prefix / "lib/systemd/system" / f"stagecoach-{server}.service"
            result = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True,
                                    timeout=60)
            self.assertEqual((result.returncode, result.stderr), (0, ""), unit)

    def test_settings_files_name_what_units_and_programs_read_and_what_they_take_without_them(self):
        for server in ("coordinator", "stage"):
            unit = self.unit(server)
            self.assertEqual(unit.settings_file, str(self.prefix / f"etc/stagecoach/{server}.env"))
            known = unit.named_variables() | set(re.findall(r"Env:(\w+)", self.help(f"stagecoach-{server}")))
            named = settings(pathlib.Path(unit.settings_file))
            for name, value in named:
                self.assertIn(name, known | OTHERS_VARIABLES, server)
                if name in unit.variables:
                    self.assertEqual(value, unit.variables[name], f"{server}: {name}")
            self.assertLessEqual(unit.named_variables(), {name for name, _ in named})


class Package(servers.ServersTest):
    """`cpack -G DEB`."""

    @classmethod
    def setUpClass(cls):
        for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file", "strip"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"no {tool} here")
        folder = tempfile.TemporaryDirectory(prefix="stagecoach-package-")
        cls.addClassCleanup(folder.cleanup)
        made = pathlib.Path(folder.name)
        run("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", made)
        (cls.file,) = made.glob("stagecoach_*.deb")
        cls.root, cls.control = made / "root", made / "control"
        run("dpkg-deb", "-x", cls.file, cls.root)
        run("dpkg-deb", "-e", cls.file, cls.control)

    def field(self, name):
        return run("dpkg-deb", "-f", self.file, name).strip()

    def test_control_files(self):
        version = (ROOT / "VERSION").read_text().strip()
        self.assertEqual(self.field("Package"), "stagecoach")
        self.assertEqual(self.field("Version"), version)
        for library in ("libc6", r"libgrpc\+\+1", "libdnnl2", "libsqlite3-0", "libsentencepiece0"):
            self.assertRegex(self.field("Depends"), rf"(^|, ){library}\b")
        conffiles = (self.control / "conffiles").read_text().split()
        self.assertEqual(sorted(conffiles), sorted("/" + str(path.relative_to(self.root))
                                                   for path in (self.root / "etc").rglob("*") if path.is_file()))
        for script in ("postinst", "prerm", "postrm"):
            run("sh", "-n", self.control / script)
            self.assertEqual((self.control / script).stat().st_mode & 0o777, 0o755)

    def test_files_are_roots_and_stripped(self):
        lines = [line.split(maxsplit=5) for line in run("dpkg-deb", "-c", self.file).splitlines()]
        for mode, owner, _, _, _, name in lines:
            self.assertEqual(owner, "root/root", name)
            self.assertRegex(mode, "^(d|-)rw(x|-)r-(x|-)r-(x|-)$", name)
        names = {line[5] for line in lines}
        self.assertTrue({f"./usr/bin/{program}" for program in PROGRAMS} <= names)
        self.assertEqual({name for name in names if name.startswith("./usr/bin/") and name != "./usr/bin/"},
                         {f"./usr/bin/{program}" for program in PROGRAMS})
        for name in ("./usr/lib/systemd/system/stagecoach-stage.service", "./usr/share/man/man8/stagecoach-stage.8",
                     "./usr/share/zsh/vendor-completions/_stagecoach", "./etc/stagecoach/stage.env"):
            self.assertIn(name, names)
        for program in PROGRAMS:
            sections = run("readelf", "-S", "-W", self.root / "usr/bin" / program)
            self.assertNotRegex(sections, r"\.(symtab|debug_info)\b", program)

    def start(self, server, **changes):
        """The unit's command, with this test's folders and free ports as its settings."""
        unit = Unit(self.root / "usr/lib/systemd/system" / f"stagecoach-{server}.service")
        self.assertEqual(unit.settings_file, f"/etc/stagecoach/{server}.env")
        variables = unit.variables | changes | {
            "STAGECOACH_LISTEN": "127.0.0.1:0", "STAGECOACH_HTTP": "127.0.0.1:0",
            "STAGECOACH_FLAGS": f"--port-file={self.folder}/{server}.ports --die-with-parent"}
        command = unit.command(variables)
        self.assertEqual(command[0], f"/usr/bin/stagecoach-{server}")
        log = open(self.folder / f"{server}.log", "w")
        process = subprocess.Popen([str(self.root) + command[0], *command[1:]], stdout=log, stderr=log, cwd="/",
                                   env=dict(os.environ, **variables))
        self.programs.append((server, process, log))
        return process

    def test_the_units_commands_train_a_job(self):
        self.start("coordinator", STAGECOACH_STATE_DIR=str(self.folder / "state"),
                   STAGECOACH_CHECKPOINT_DIR=str(self.folder / "checkpoints"))
        coordinator = self.address("coordinator")
        self.start("stage", STAGECOACH_ADDRESS=coordinator, STAGECOACH_STAGE_STATE_DIR=str(self.folder / "stage"),
                   STAGECOACH_CACHE_DIR=str(self.folder / "cache"), STAGECOACH_DATA_ROOT=str(self.folder),
                   STAGECOACH_STAGE_NAME="installed")
        job = self.job_file(pipeline={"stages": 1}, data={"text": {"path": str(self.folder / "input.txt")}})
        result = subprocess.run([str(self.root / "usr/bin/stagecoach"), "-o", "ndjson", "submit", str(job)], cwd="/",
                                capture_output=True, text=True, timeout=60,
                                env=dict(os.environ, STAGECOACH_ADDRESS=coordinator))
        self.assertEqual(result.returncode, 0, result.stderr + self.log("coordinator") + self.log("stage"))
        self.assertEqual(json.loads(result.stdout.splitlines()[-1])["state"], "SUCCEEDED")
        self.assertIn("registered as installed", self.log("stage"))
        self.assertTrue(any((self.folder / "checkpoints").iterdir()))
        for name, process, log in reversed(self.programs):
            process.terminate()
            self.assertEqual(process.wait(timeout=30), 0, self.log(name))


if __name__ == "__main__":
    harness.main()
