"""Seeded changes of bytes and of JSON: what bad luck, a bad disk or a stranger does to a file."""

from __future__ import annotations

import copy
import random
from typing import Any

NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    1000,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**53,
    2**62,
    2**63 - 1,
    -(2**31),
    -(2**63),
)
TOKENS = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-1e999",
    b"1e-320",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"[[[[",
    b"\\ud800",
    b"\xff\xfe",
    b"\x00",
    b"-",
    b"1" * 400,
    b"1" * 5000,
    b",",
    b'"',
    b"\r\n",
    b"99999999999999999999",
    b"\\u0000",
    b"0x10",
    b"'",
    b"=",
    b" ",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    1000,
    2**31 - 1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63),
    10**40,
    10**400,
    1.5,
    -1.5,
    1e308,
    -1e308,
    1e-320,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "x",
    "0",
    "nan",
    "\0",
    "\ud800",
    "\u202e",
    "a" * 300,
    "\n=1",
    [],
    [[]],
    {},
    [None],
    ["x"],
    {"a": 1},
    [0, 0],
    [1.5],
    [[0, 1]],
    "../../x",
    "/dev/zero",
)
DEEP = 20_000  # brackets: far beyond what a reader that calls itself can take


def draw(seed: int, number: int) -> random.Random:
    """The dice of one try."""
    return random.Random(f"{seed}/{number}")


def mutate_bytes(raw: bytes, dice: random.Random) -> bytes:
    """The bytes after one to three changes; never the same bytes."""
    changed = raw
    while changed == raw:
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            changed = _change_bytes(changed, dice)
    return changed


def _change_bytes(raw: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(raw) + 1)
    size = min(dice.choice((1, 2, 4, 8, dice.randrange(1, 64))), len(raw) - at)
    what = dice.randrange(11)
    if what <= 1 and at < len(raw):  # one bit
        return raw[:at] + bytes([raw[at] ^ 1 << dice.randrange(8)]) + raw[at + 1 :]
    if what == 2:
        return raw[:at] + dice.randbytes(size) + raw[at + size :]
    if what == 3:
        return raw[:at] + raw[at + size :]
    if what == 4:
        return raw[:at] + dice.randbytes(dice.randrange(1, 9)) + raw[at:]
    if what == 5:  # a piece twice
        return raw[: at + size] + raw[at:]
    if what == 6:  # a number
        width, order = dice.choice((1, 2, 4, 8)), dice.choice(("little", "big"))
        number = dice.choice(NUMBERS) % 2 ** (8 * width)
        return raw[:at] + number.to_bytes(width, order) + raw[at + width :]  # type: ignore[arg-type]
    if what == 7:
        token = dice.choice(TOKENS)
        return raw[:at] + token + raw[at + dice.choice((0, len(token))) :]
    if what == 8:  # cut short
        return raw[:at]
    if what == 9:  # a piece from elsewhere
        other = dice.randrange(len(raw) + 1)
        return raw[:at] + raw[other : other + size] + raw[at + size :]
    return raw[:at] + bytes(size) + raw[at + size :]


def mutate_json(value: Any, dice: random.Random) -> Any:
    """A copy of a JSON value after one to three changes, which may undo each other."""
    root = [copy.deepcopy(value)]
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        _change_json(root, dice)
    return root[0]


def _change_json(root: list[Any], dice: random.Random) -> None:
    home, key = dice.choice(_places(root))
    old, what = home[key], dice.randrange(10)
    if what <= 3:
        home[key] = copy.deepcopy(dice.choice(VALUES))
    elif what == 4 and isinstance(old, int | float) and not isinstance(old, bool):
        near = old if abs(old) < 2**1000 else 1.0  # beyond that Python itself refuses a float
        home[key] = dice.choice((old + 1, old - 1, -old, old * 2, float(near), str(near), [old]))
    elif what == 5 and isinstance(old, str):
        home[key] = dice.choice((old + "x", old[:-1], old.upper(), old * 2, old + "\n", old + "\0"))
    elif what == 6 and isinstance(old, list):
        dice.choice((old.reverse, old.clear, lambda: old.extend(copy.deepcopy(old[:5]))))()
    elif what == 7 and home is not root:
        del home[key]
    elif what == 8:
        other_home, other = dice.choice(_places(root))
        home[key] = copy.deepcopy(other_home[other])
    elif what == 9 and isinstance(old, dict):
        old[dice.choice(("surprise", "", "format", "\0"))] = copy.deepcopy(dice.choice(VALUES))
    elif what == 9 and isinstance(home, list) and home is not root:
        home.insert(dice.randrange(len(home) + 1), copy.deepcopy(old))


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    """Every value of a tree, as who holds it and where; long lists by a few of their items."""
    places: list[tuple[Any, Any]] = [(root, 0)]
    for home, key in places:
        value = home[key]
        if isinstance(value, dict):
            places += [(value, each) for each in value]
        elif isinstance(value, list):
            places += [(value, at) for at in range(min(len(value), 20))]
    return places


def nest(text: bytes, dice: random.Random) -> bytes:
    """Brackets upon brackets, put into a text."""
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice((b"[", b'{"a":')) * DEEP + text[at:]
