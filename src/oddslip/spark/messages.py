"""Messages to and from Spark tasks: a container with a tree of values and plain arrays.

Nothing of ours is pickled. Classes and functions travel by name, as `kinds`, beside the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oddslip.core.types import Array
from oddslip.io.container import container_pieces, read_container
from oddslip.io.files import disk_full_message

_TREE = "tree"
Kinds = tuple[Callable[..., Any], ...]  # importable classes and functions


class Message(NamedTuple):
    """Bytes that refer to importable classes and functions by their position in ``kinds``."""

    kinds: Kinds
    data: bytes | memoryview


def pack(tree: object) -> Message:
    """Pack numbers, text, lists, dicts, arrays, and objects that have a `spec`.

    An object that occurs twice is one object again when it is unpacked.

    Parameters
    ----------
    tree : any of these, nested

    Returns
    -------
    Message

    Examples
    --------
    >>> unpack(pack({"a": (1, 2.5, None), "b": np.arange(3)}))
    {'a': (1, 2.5, None), 'b': array([0, 1, 2])}
    """
    kinds, pieces = _pack(tree, digests=False)
    return Message(kinds, b"".join(pieces))


def write_message(folder: str | Path, tree: object) -> tuple[Path, Kinds]:
    """Write a message to a file named by its content, without copying an array.

    Parameters
    ----------
    folder : path
    tree : see `pack`

    Returns
    -------
    path : Path
        Of the file; `unpack` takes a memory map of it as it takes bytes.
    kinds : tuple
    """
    kinds, pieces = _pack(tree, digests=True)
    head = next(pieces)
    path = Path(folder, f"oddslip-{head[-32:].hex()[:32]}")  # the digest that covers all others
    with disk_full_message(path), path.open("wb") as file:
        file.write(head)
        file.writelines(pieces)
    return path, kinds


def _pack(tree: object, *, digests: bool) -> tuple[Kinds, Iterator[bytes | memoryview]]:
    packer = _Packer()
    text = json.dumps(packer.describe(tree)).encode()
    arrays = {str(number): array for number, array in enumerate(packer.arrays)}
    pieces = container_pieces("message", {}, {_TREE: text, **arrays}, digests=digests)
    return tuple(packer.kinds), pieces


def unpack(message: Message) -> Any:
    """Unpack a message. Arrays are read-only views of its bytes."""
    container = read_container(message.data, "message", verify=False)
    arrays = list(container.arrays.values())
    return _Unpacker(message.kinds, arrays).build(json.loads(container.blobs[_TREE]))


class _Packer:
    def __init__(self) -> None:
        self.kinds: list[Callable[..., Any]] = []
        self.arrays: list[Array] = []
        self._objects: list[object] = []  # alive, so that no other object gets their address
        self._positions: dict[int, int] = {}

    def describe(self, thing: object) -> Any:
        if isinstance(thing, np.generic):
            return self.describe(thing.item())
        if thing is None or isinstance(thing, str | bool | int | float):
            return thing
        if isinstance(thing, list):
            return [self.describe(each) for each in thing]
        if isinstance(thing, dict):
            return {"dict": [[self.describe(k), self.describe(v)] for k, v in thing.items()]}
        if type(thing) is tuple:
            return {"tuple": [self.describe(each) for each in thing]}
        if isinstance(thing, np.dtype):
            return {"dtype": thing.str}
        if isinstance(thing, type) or callable(thing):
            return {"kind": self._kind(thing)}
        if id(thing) in self._positions:
            return {"again": self._positions[id(thing)]}
        if isinstance(thing, np.ndarray):
            self.arrays.append(thing)
            description: dict[str, object] = {"array": len(self.arrays) - 1}
        else:
            spec = [[name, self.describe(value)] for name, value in arguments_of(thing).items()]
            description = {"object": self._kind(type(thing)), "spec": spec}
        self._positions[id(thing)] = len(self._objects)
        self._objects.append(thing)
        return description

    def _kind(self, kind: Callable[..., Any]) -> int:
        if kind not in self.kinds:
            self.kinds.append(kind)
        return self.kinds.index(kind)


def arguments_of(thing: Any) -> dict[str, Any]:
    """The arguments that construct an equal object."""
    if hasattr(thing, "spec"):
        spec: dict[str, Any] = thing.spec()
        return spec
    if hasattr(thing, "_asdict"):
        return dict(thing._asdict())
    if is_dataclass(thing):
        return {each.name: getattr(thing, each.name) for each in fields(thing) if each.init}
    raise TypeError(f"{type(thing).__name__} does not say what it is made of")


class _Unpacker:
    def __init__(self, kinds: Kinds, arrays: list[Array]) -> None:
        self.kinds, self.arrays = kinds, arrays
        self._objects: list[object] = []

    def build(self, description: Any) -> Any:
        if isinstance(description, list):
            return [self.build(each) for each in description]
        if not isinstance(description, dict):
            return description
        if "dict" in description:
            return {self.build(key): self.build(value) for key, value in description["dict"]}
        if "tuple" in description:
            return tuple(self.build(each) for each in description["tuple"])
        if "dtype" in description:
            return np.dtype(description["dtype"])
        if "kind" in description:
            return self.kinds[description["kind"]]
        if "again" in description:
            return self._objects[description["again"]]
        if "array" in description:
            item = self.arrays[description["array"]]
        else:
            spec = {name: self.build(value) for name, value in description["spec"]}
            item = self.kinds[description["object"]](**spec)
        self._objects.append(item)
        return item
