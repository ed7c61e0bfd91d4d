"""Parcels: what a task is told and sends back, as one JSON header and plain arrays.

Nothing of ours is pickled. Classes and kernels travel by name, as `kinds`, beside the bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.io.files import disk_full_message

ALIGNED = 64


class Message(NamedTuple):
    """Importable classes and functions, and bytes that refer to them by their place."""

    kinds: tuple[Any, ...]
    data: bytes | memoryview


def pack(tree: Any) -> Message:
    """Numbers, text, lists, dicts, arrays, and objects that say their `spec`, as a parcel.

    An object that occurs twice is one object again when it is unpacked.

    Examples
    --------
    >>> unpack(pack({"a": (1, 2.5, None), "b": np.arange(3)}))
    {'a': (1, 2.5, None), 'b': array([0, 1, 2])}
    """
    packer = _Packer()
    described = packer.describe(tree)
    return Message(tuple(packer.kinds), b"".join(_pieces(packer, described)))


def write_parcel(folder: str | Path, tree: Any) -> tuple[Path, tuple[Any, ...]]:
    """A parcel as a file that goes by its content, and its kinds. No array is copied.

    `unpack` takes a map of the file as it takes bytes.
    """
    packer = _Packer()
    described = packer.describe(tree)
    digest, unnamed = hashlib.sha256(), Path(folder, "parcel")
    with disk_full_message(unnamed), unnamed.open("wb") as file:
        for piece in _pieces(packer, described):
            digest.update(piece)
            file.write(piece)
    return unnamed.rename(Path(folder, f"oddslip-{digest.hexdigest()[:32]}")), tuple(packer.kinds)


def _pieces(packer: _Packer, described: Any) -> Iterator[Any]:
    offset, places = 0, []
    for array in packer.arrays:
        places.append([array.dtype.str, list(array.shape), offset])
        offset += -(-array.nbytes // ALIGNED) * ALIGNED
    header = json.dumps({"arrays": places, "tree": described}).encode()
    start = -(-(8 + len(header)) // ALIGNED) * ALIGNED
    yield len(header).to_bytes(8, "little")
    yield header.ljust(start - 8)
    for array in packer.arrays:
        yield array.reshape(-1).view(np.uint8).data
        yield bytes(-array.nbytes % ALIGNED)


def unpack(parcel: Message) -> Any:
    """What was packed. Arrays are read-only views of the bytes."""
    view = memoryview(parcel.data)
    length = int.from_bytes(view[:8], "little")
    header = json.loads(bytes(view[8 : 8 + length]))
    start = -(-(8 + length) // ALIGNED) * ALIGNED
    arrays = [
        np.frombuffer(view, dtype, int(np.prod(shape)), start + offset).reshape(shape)
        for dtype, shape, offset in header["arrays"]
    ]
    return _Unpacker(parcel.kinds, arrays).make(header["tree"])


class _Packer:
    def __init__(self) -> None:
        self.kinds: list[Any] = []
        self.arrays: list[NDArray[Any]] = []
        self._kept: list[Any] = []  # alive, so that no other object gets their address
        self._seen: dict[int, int] = {}

    def describe(self, thing: Any) -> Any:
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
        if id(thing) in self._seen:
            return {"again": self._seen[id(thing)]}
        if isinstance(thing, np.ndarray):
            self.arrays.append(np.ascontiguousarray(thing).reshape(thing.shape))
            described: dict[str, Any] = {"array": len(self.arrays) - 1}
        else:
            made = [[name, self.describe(value)] for name, value in arguments_of(thing).items()]
            described = {"object": self._kind(type(thing)), "spec": made}
        self._seen[id(thing)] = len(self._kept)
        self._kept.append(thing)
        return described

    def _kind(self, kind: Any) -> int:
        if kind not in self.kinds:
            self.kinds.append(kind)
        return self.kinds.index(kind)


def arguments_of(thing: Any) -> dict[str, Any]:
    """The arguments that make such an object anew."""
    if hasattr(thing, "spec"):
        spec: dict[str, Any] = thing.spec()
        return spec
    if hasattr(thing, "_asdict"):
        return dict(thing._asdict())
    if is_dataclass(thing):
        return {each.name: getattr(thing, each.name) for each in fields(thing) if each.init}
    raise TypeError(f"{type(thing).__name__} does not say what it is made of")


class _Unpacker:
    def __init__(self, kinds: tuple[Any, ...], arrays: list[NDArray[Any]]) -> None:
        self.kinds, self.arrays = kinds, arrays
        self._made: list[Any] = []

    def make(self, told: Any) -> Any:
        if isinstance(told, list):
            return [self.make(each) for each in told]
        if not isinstance(told, dict):
            return told
        if "dict" in told:
            return {self.make(key): self.make(value) for key, value in told["dict"]}
        if "tuple" in told:
            return tuple(self.make(each) for each in told["tuple"])
        if "dtype" in told:
            return np.dtype(told["dtype"])
        if "kind" in told:
            return self.kinds[told["kind"]]
        if "again" in told:
            return self._made[told["again"]]
        if "array" in told:
            made = self.arrays[told["array"]]
        else:
            spec = {name: self.make(value) for name, value in told["spec"]}
            made = self.kinds[told["object"]](**spec)
        self._made.append(made)
        return made
