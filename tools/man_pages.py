#!/usr/bin/env python3
"""Writes the manual pages of the programs, from what their --help prints: man_pages.py BIN_FOLDER OUTPUT_FOLDER.

The same programs give the same bytes: no date, no path of the build, and no variable of the environment.
"""
import pathlib
import re
import subprocess
import sys

# CLI11 prints a term two columns in, its text from column 30 on, beside the term or below it.
TERM_COLUMN, TEXT_COLUMN = 2, 30
CLIENT, COORDINATOR, STAGE = "stagecoach", "stagecoach-coordinator", "stagecoach-stage"
SECTIONS = {CLIENT: 1, COORDINATOR: 8, STAGE: 8}
FILES = {
    COORDINATOR: [("/etc/stagecoach/coordinator.env", "settings of the systemd unit"),
                  ("/var/lib/stagecoach/coordinator", "journal and exports, as the unit sets them")],
    STAGE: [("/etc/stagecoach/stage.env", "settings of the systemd unit"),
            ("/var/lib/stagecoach/stage", "state that outlives a restart, as the unit sets it")],
}
EXIT_STATUS = {
    CLIENT: "0 if the command did what it says; else clients.md lists the codes.",
    COORDINATOR: "0 after SIGTERM or SIGINT; 78 if another start would fail too; operations.md lists the others.",
    STAGE: "0 after SIGTERM or SIGINT; 78 if another start would fail too; operations.md lists the others.",
}


class Help:
    """One --help: a description, the words behind the command's name, and groups of (term, text)."""

    def __init__(self, text):
        self.description, self.usage, self.groups = "", "", {}
        group = None
        lines = text.splitlines()
        for line, following in zip(lines, lines[1:] + [""]):
            indent = len(line) - len(line.lstrip())
            if not line.strip():
                continue
            if line.startswith("Usage: "):
                self.usage = line.removeprefix("Usage: ")
            elif indent == 0 and line.endswith(":") and self.usage:
                group = self.groups.setdefault(line[:-1], [])
            elif indent == 0 and not self.usage:
                self.description = f"{self.description} {line}".strip()
            elif indent == TERM_COLUMN and group is not None:
                group.append(self.split(line, following))
            elif indent >= TEXT_COLUMN and group:
                term, text_before = group[-1]
                group[-1] = (term, f"{text_before} {line.strip()}".strip())
            else:
                raise SystemExit(f"man_pages: a line of --help that CLI11 did not print before: {line!r}")
        if not self.usage or not self.description:
            raise SystemExit(f"man_pages: no description or no usage in: {text!r}")

    @staticmethod
    def split(line, following):
        """A term of 27 characters or fewer has its text beside it; a longer one has it on the next line."""
        text_below = following.startswith(" " * TEXT_COLUMN)
        if text_below or line[TEXT_COLUMN - 1:TEXT_COLUMN] != " ":
            return line.strip(), ""
        return line[:TEXT_COLUMN].strip(), line[TEXT_COLUMN:].strip()


def escaped(text):
    """Text for troff: its own characters taken as they are, no line taken for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\\&" + text if text.startswith(".") else text


def term_line(term):
    names, _, kind = term.partition(" ")
    # CLI11 writes the kind of a range twice: FLOAT:FLOAT in [0 - 1].
    kind = re.sub(r"\b([A-Z]+):\1\b", r"\1", kind)
    return f"\\fB{escaped(names)}\\fR" + (f" {escaped(kind)}" if kind else "")


def group_lines(entries):
    lines = []
    for term, text in entries:
        lines += [".TP", term_line(term)]
        if text:
            lines.append(escaped(text))
    return lines


class Writer:
    def __init__(self, folder):
        self.folder = folder

    def help(self, program, *words):
        command = [str(self.folder / program), *words, "--help"]
        # Nothing of the caller's environment shows as a default.
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"LC_ALL": "C.UTF-8"})
        if result.returncode != 0:
            raise SystemExit(f"man_pages: {' '.join(command)} ended with {result.returncode}: {result.stderr.strip()}")
        return Help(result.stdout)

    def version(self):
        command = [str(self.folder / CLIENT), "version"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()[-1]

    def page(self, program):
        top = self.help(program)
        summary = top.description[:1].lower() + top.description[1:].rstrip(".")
        summary = summary.split(": ", 1)[-1]
        _, words = top.usage.split(" ", 1)
        lines = [f'.TH {program.upper()} {SECTIONS[program]} "" "Stagecoach {self.version()}" "Stagecoach"',
                 ".SH NAME", f"{escaped(program)} \\- {escaped(summary)}",
                 ".SH SYNOPSIS", f"\\fB{escaped(program)}\\fR {escaped(words)}",
                 ".SH DESCRIPTION", escaped(top.description),
                 ".SH OPTIONS", *group_lines(top.groups.get("Options", []))]
        if "Subcommands" in top.groups:
            lines += [".SH COMMANDS", *self.commands(program, top)]
        lines += [".SH EXIT STATUS", escaped(EXIT_STATUS[program])]
        if program in FILES:
            lines += [".SH FILES", *group_lines(FILES[program])]
        others = [f"\\fB{escaped(name)}\\fR({section})" for name, section in SECTIONS.items() if name != program]
        lines += [".SH SEE ALSO", ", ".join(others)]
        return "\n".join(lines) + "\n"

    def commands(self, program, above, *path):
        """Each sub-command as a sub-section, the sub-commands of a command behind it."""
        lines = []
        for name, _ in above.groups["Subcommands"]:
            command = self.help(program, *path, name)
            full = " ".join([program, *path, name])
            behind = command.usage.split(full, 1)[-1].strip()
            lines += [f".SS {escaped(' '.join([*path, name]))}", escaped(command.description) + ".", ".PP",
                      f"\\fB{escaped(full)}\\fR {escaped(behind)}"]
            lines += group_lines(command.groups.get("Positionals", []))
            # Every command has --help.
            lines += group_lines([e for e in command.groups.get("Options", []) if not e[0].startswith("-h,--help")])
            if "Subcommands" in command.groups:
                lines += self.commands(program, command, *path, name)
        return lines


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: man_pages.py BIN_FOLDER OUTPUT_FOLDER")
    writer, output = Writer(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
    for program, section in SECTIONS.items():
        folder = output / f"man{section}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{program}.{section}").write_text(writer.page(program))


if __name__ == "__main__":
    main()
