"""What is tried: a row is a function that tells what it saw and whether the promise held, under a title and what happened
before (at b2d5b39, the commit before the mends)."""
import dataclasses
import typing

HOLDS, PARTLY, OPEN = "holds", "in part", "open"


@dataclasses.dataclass
class Row:
    name: str
    title: str
    before: str
    run: typing.Callable  # (programs, messages) -> (verdict, what it saw)


ROWS = []


def row(name, title, before):
    def add(function):
        ROWS.append(Row(name, title, before, function))
        return function
    return add


def verdict(holds, saw):
    """Of one condition."""
    return (HOLDS if holds else OPEN), saw
