"""Our reader of a folder for each class (data.image_folder) beside torchvision's ImageFolder."""

import importlib.metadata
import importlib.util
import os
import pathlib
import sys
import types
import typing

import beside

if __name__ == "__main__":
    beside.enter_packages()


def torchvision_folders():
    """torchvision's own file with ImageFolder. It needs one class of PyTorch to inherit from, and no PyTorch."""

    def module(name, **names):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(names)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, sys.modules[name])

    where = importlib.util.find_spec("torchvision").submodule_search_locations[0]
    for name in ("torch", "torch.utils"):
        module(name, __path__=[])
    module("torch.utils.data", Dataset=types.new_class("Dataset", (typing.Generic[typing.TypeVar("T")],)))
    module("torchvision", __path__=[where])
    module("torchvision.datasets", __path__=[os.path.join(where, "datasets")])
    module("torchvision.utils", _log_api_usage_once=lambda what: None)
    return importlib.import_module("torchvision.datasets.folder")


class Link(str):
    """What a name leads to."""


def theirs(folders, root, **options):
    """In the form of ours."""

    def read():
        dataset = folders.ImageFolder(str(root), loader=lambda path: pathlib.Path(path).read_bytes(), **options)
        paths = [os.fsencode(os.path.relpath(path, root)).hex() for path, _ in dataset.samples]
        return {
            "classes": [os.fsencode(name).hex() for name in dataset.classes],
            "samples": [
                [path, label, content.hex()]
                for path, (content, label) in zip(paths, (dataset[i] for i in range(len(paths))))
            ],
        }

    return beside.attempt(read, OSError)


def make(root, tree):
    """Of {path: content, None for a folder, or Link}."""
    root.mkdir(parents=True)
    for name, content in tree.items():
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        elif isinstance(content, Link):
            path.symlink_to(content)
        else:
            path.write_bytes(content)
    return root


def flat(generator, classes, endings=("jpg", "PNG"), count=4):
    return {
        f"{name}/{''.join(generator.choices('aAbB019 _-ä', k=5))}{i}.{generator.choice(endings)}": generator.randbytes(
            20
        )
        for name in classes
        for i in range(count)
    }


def accepted(generator):
    """Trees with files in the folders of the classes alone: the same order too."""
    yield "classes in any case and script", flat(
        generator, ("b", "A", "a", "10", "9", "ä", "Z z", "a b", "a-b", "a.b", "_", "中", "😀", "a\nb")
    )
    for ending in ("jpg", "jpeg", "png", "tif", "tiff", "webp", "JPG", "JPEG", "Png", "tIf", "TIFF", "WebP"):
        yield f".{ending}", flat(generator, ("a", "b"), (ending,))
    yield "other files", {
        **flat(generator, ("a", "b")),
        "a/readme": b"-",
        "a/jpg": b"-",
        "a/x.jpg.txt": b"-",
        "a/x.xml": b"-",
        "b/Thumbs.db": b"-",
    }
    yield "files at the root", {**flat(generator, ("a", "b")), "x.jpg": b"-", "classes.txt": b"-", "LICENSE": b"-"}
    yield "names with several dots", {"a/x.y.jpg": b"1", "a/x..png": b"2", "a/x.png.jpg": b"3", "b/ .jpg": b"4"}
    yield "bytes that are no UTF-8", {b"a/\xff\xfe.jpg": b"1", b"a/x.jpg": b"2", b"b\xff/x.jpg": b"3", b"b/x.jpg": b"4"}
    yield "an empty picture", {"a/x.jpg": b"", "b/x.jpg": b"1"}
    yield "links to pictures", {
        **flat(generator, ("a", "b")),
        "a/link.jpg": Link("../b/y.jpg"),
        "b/y.jpg": b"1",
        "b/same.png": Link("y.jpg"),
    }
    yield "links at the root", {
        **flat(generator, ("a", "b")),
        "link.jpg": Link("b/y.jpg"),
        "b/y.jpg": b"1",
        "gone": Link("nowhere"),
        "c": Link("b/y.jpg"),
    }
    yield "one class", flat(generator, ("a",))
    yield "many classes", flat(generator, [str(i) for i in range(120)], count=2)
    yield "a folder with a picture's name", {"a/x.jpg/1.png": b"1", "a/x.jpg/2.png": b"2", "b.png/1.jpg": b"3"}
    for i in range(30):
        names = {
            "".join(generator.choices("aAbBcC012 ._-äß中", k=generator.randrange(1, 9))).strip(".") or "x"
            for _ in range(8)
        }
        yield f"random {i}", {
            **flat(generator, names, ("jpg", "JPEG", "png", "Tif", "webp", "txt", "xml"), 6),
            **flat(generator, names, count=1),
        }


def nested(generator):
    yield "files and folders", {
        "a/b.jpg": b"1",
        "a/a/x.jpg": b"2",
        "a/c/x.jpg": b"3",
        "a/c-d/x.jpg": b"4",
        "a/c/d/x.jpg": b"5",
        "b/b/b/b/x.jpg": b"6",
    }
    for i in range(30):
        tree = {}
        for _ in range(30):
            folders = generator.choices("abcd-e ", k=generator.randrange(1, 5))
            tree[
                "/".join(["c" + folders[0]] + [f"f{name}" for name in folders[1:]])
                + f"/{generator.randrange(1000)}.png"
            ] = generator.randbytes(9)
        yield f"random {i}, nested", tree


def refused():
    good = {"a/x.jpg": b"1", "b/x.jpg": b"2"}
    yield "an empty class", {
        **good,
        "c": None,
    }, ", c: a class with no JPEG, PNG, TIFF or WebP files; put some there or take the folder away"
    yield "a class of empty folders", {**good, "c/d/e": None}, ", c: a class with no JPEG, PNG, TIFF or WebP files"
    yield "a class of other files", {
        **good,
        "c/x.txt": b"-",
        "c/x.ppm": b"-",
    }, ", c: a class with no JPEG", "but 1 .ppm, a format that is not read: write PNG; 1 .txt"
    yield "a class of hidden files", {
        **good,
        "c/.x.jpg": b"-",
    }, ", c: a class with no JPEG", "but 1 with a dot in front"
    yield "no folders", {
        "x.jpg": b"1"
    }, ": has no folders, but 1 .jpg", "give a folder that has a folder for each class"
    yield "nothing", {}, ": has no folders; give a folder that has a folder for each class"
    yield "a link to a class", {**good, "c": Link("a")}, ", c: a link to a folder; put the folder itself there"
    yield "a link to a folder", {**good, "b/c": Link("../a")}, ", b/c: a link to a folder; put the folder itself there"
    yield "a circle", {**good, "b/c": Link("..")}, ", b/c: a link to a folder; put the folder itself there"
    yield "a link out of the root", {
        **good,
        "b/y.jpg": Link("../../outside.jpg"),
    }, ", b/y.jpg: a link out of the folder, to ", "put the file itself there"
    yield "a link to nothing", {**good, "b/y.jpg": Link("nowhere")}, ", b/y.jpg: a link to a file that is not there"
    yield "a picture of 257 MiB", {**good, "b/large.jpg": None}, "268435457 bytes; at most 268435456 are read"


def left_out():
    """What torchvision takes and ours does not, or the other way round, and how ours says so."""
    good = {"a/x.jpg": b"1", "b/x.jpg": b"2"}
    hidden = "1 with a dot in front"
    yield "a hidden class", {**good, ".c/x.jpg": b"-"}, [".c/x.jpg"], hidden
    yield "a hidden folder", {**good, "b/.c/x.jpg": b"-"}, ["b/.c/x.jpg"], hidden
    yield "a hidden file", {**good, "b/._x.jpg": b"-"}, ["b/._x.jpg"], hidden
    yield "an ending alone", {**good, "b/.png": b"-"}, ["b/.png"], hidden
    for ending in ("ppm", "bmp", "pgm", "BMP"):
        yield f".{ending}", {**good, f"b/x.{ending}": b"-"}, [
            f"b/x.{ending}"
        ], f"1 .{ending.lower()}, a format that is not read: write PNG"


def compare_sets(comparison, name, root, truth, tree):
    """Below a class, ours goes folder by folder in the order of their names, torchvision takes files before folders."""
    ours = comparison.ours(root)
    paths = sorted(tree, key=lambda path: path.encode().split(b"/"))
    if [sample[0] for sample in ours["samples"]] != [path.encode().hex() for path in paths]:
        comparison.fail(name, f"order {[bytes.fromhex(sample[0]) for sample in ours['samples']]}")
    in_order = {**truth, "samples": sorted(truth["samples"])}
    comparison.equal(name, in_order, {"classes": ours["classes"], "samples": sorted(ours["samples"])})


def compare_left_out(comparison, folders, name, root, paths, words):
    ours, truth = comparison.ours(root), theirs(folders, root)
    theirs_alone = [path for path, *_ in truth["samples"] if path not in {path for path, *_ in ours["samples"]}]
    if theirs_alone != [os.fsencode(path).hex() for path in paths]:
        comparison.fail(name, f"torchvision alone takes {theirs_alone}")
    comparison.refused(name, truth, [ours["left_out"]], words)


def main():
    comparison = beside.Comparison("folders", sys.argv[1])
    folders = torchvision_folders()
    for i, (name, tree) in enumerate(accepted(comparison.random)):
        root = make(comparison.folder / f"same-{i}", tree)
        ours = comparison.ours(root)
        comparison.equal(
            name, theirs(folders, root), ours if "error" in ours else {key: ours[key] for key in ("classes", "samples")}
        )
    for i, (name, tree) in enumerate(nested(comparison.random)):
        root = make(comparison.folder / f"nested-{i}", tree)
        compare_sets(comparison, name, root, theirs(folders, root), tree)
    comparison.write(b"outside", "outside.jpg")
    for i, (name, tree, *words) in enumerate(refused()):
        root = make(comparison.folder / f"refused-{i}", tree)
        if "257" in name:
            (root / "b/large.jpg").rmdir()
            (root / "b/large.jpg").write_bytes(b"")
            os.truncate(root / "b/large.jpg", (256 << 20) + 1)
        truth = beside.Refused("too large to ask") if "257" in name else theirs(folders, root, allow_empty=True)
        comparison.refused(name, truth, [comparison.ours(root).get("error", "")], *words)
    for i, (name, tree, paths, words) in enumerate(left_out()):
        compare_left_out(comparison, folders, name, make(comparison.folder / f"left-out-{i}", tree), paths, words)
    comparison.finish(f"torchvision {importlib.metadata.version('torchvision')}")


if __name__ == "__main__":
    main()
