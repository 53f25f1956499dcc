#!/usr/bin/env python3
"""Writes pairs of sentences, English and another language, out of the manuals of Debian's package gnome-user-docs.

usage: translate_data.py TO [--language LANGUAGE] [--from FOLDER]

The files are TO/train.en, TO/train.LANGUAGE, TO/test.en and TO/test.LANGUAGE, with a sentence or paragraph a line. Long
paragraphs are left out. All translations of one English text are in the same part, in every language. LANGUAGE is de if
not said otherwise. FOLDER has a folder of pages for each language, and the English ones in C. Without FOLDER it is
/usr/share/help if the package is installed; else the package is downloaded with `apt-get download`, which needs no root.
The manuals' licence is CC-BY-SA-3.0.
"""
import argparse
import collections
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

PACKAGE = "gnome-user-docs"
INSTALLED = pathlib.Path("/usr/share/help")
SENTENCES = {"p", "title", "desc"}
TEST_SHARE = 20  # one text of so many is held out
MOST_CHARACTERS = 240  # of a text: so it fits the contexts of examples/translate.yaml


def texts_of(page):
    """The texts of a page in its order, without mark-up and with single spaces."""
    texts = []

    def walk(element):
        name = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "comment"
        if name == "comment":  # a note for writers, which no translation has
            return
        if name in SENTENCES:
            texts.append(" ".join("".join(element.itertext()).split()))
        for child in element:
            walk(child)

    walk(xml.parse(page).getroot())
    return texts


class Pairs:
    """Pairs of all pages of a language by position in the page, and what was left out."""

    def __init__(self, help_folder, language):
        self.pairs = {}  # of text and translation, in the order of the pages
        self.left_out = collections.Counter()
        english = help_folder / "C"
        for page in sorted((help_folder / language).rglob("*.page")):
            source = english / page.relative_to(help_folder / language)
            if source.exists():
                self.add(texts_of(source), texts_of(page))
            else:
                self.left_out["pages without an English one"] += 1

    def add(self, sources, targets):
        if len(sources) != len(targets):
            self.left_out["pages with another number of texts"] += 1
            return
        for pair in zip(sources, targets):
            if not all(pair):
                self.left_out["empty"] += 1
            elif pair[0] == pair[1]:
                self.left_out["not translated"] += 1
            elif max(map(len, pair)) > MOST_CHARACTERS:
                self.left_out[f"of more than {MOST_CHARACTERS} characters"] += 1
            elif pair in self.pairs:
                self.left_out["repeated"] += 1
            else:
                self.pairs[pair] = None


def is_test(source):
    """By the text alone: it is in the same part for every language, and for every version of the manuals."""
    return int.from_bytes(hashlib.sha256(source.encode()).digest()[:8], "big") % TEST_SHARE == 0


def write(to, language, pairs):
    """Returns the number of pairs of each part."""
    to.mkdir(parents=True, exist_ok=True)
    counts = {}
    for part, test in (("train", False), ("test", True)):
        chosen = [pair for pair in pairs if is_test(pair[0]) == test]
        for side, name in enumerate(("en", language)):
            (to / f"{part}.{name}").write_text("".join(pair[side] + "\n" for pair in chosen), encoding="utf-8")
        counts[part] = len(chosen)
    return counts


def languages_in(help_folder):
    return sorted(folder.name for folder in help_folder.iterdir() if folder.name != "C" and next(folder.rglob("*.page"), None))


def downloaded(folder):
    """The manuals of the package, which it unpacks in the folder."""
    for command in (["apt-get", "download", PACKAGE], ["dpkg-deb", "-x"]):
        packages = sorted(folder.glob("*.deb"))
        try:
            subprocess.run([*command, *packages, *(["."] if packages else [])], cwd=folder, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            sys.exit(f"{command[0]}: not found; on other systems than Debian's give the help folder of {PACKAGE} with --from")
        except subprocess.CalledProcessError as error:
            sys.exit(f"{' '.join(command)}: {error.stderr.strip()}\n(`apt-get update` may be due; or give --from)")
    return folder / "usr" / "share" / "help"


def convert(to, language, help_folder):
    languages = languages_in(help_folder) if (help_folder / "C").is_dir() else []
    if language not in languages:
        sys.exit(f"{help_folder}: has no pages of language {language!r} beside English ones in C; has {', '.join(languages) or 'none'}")
    found = Pairs(help_folder, language)
    counts = write(to, language, found.pairs)
    print(f"{counts['train']} pairs to train on, {counts['test']} to test with: {to}/{{train,test}}.{{en,{language}}}")
    print("left out: " + (", ".join(f"{count} {what}" for what, count in found.left_out.items()) or "none"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("to", type=pathlib.Path)
    parser.add_argument("--language", default="de")
    parser.add_argument("--from", dest="source", type=pathlib.Path)
    options = parser.parse_args()
    installed = INSTALLED / "C" / "gnome-help"
    if options.source or installed.is_dir():
        convert(options.to, options.language, options.source or INSTALLED)
        return
    with tempfile.TemporaryDirectory() as folder:
        convert(options.to, options.language, downloaded(pathlib.Path(folder)))


if __name__ == "__main__":
    main()
