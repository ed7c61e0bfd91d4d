"""Files of scores, labels, features, weights and data sets, changed: bytes, or sealed anew."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attacks.child import Attempt, refused, try_in_child
from attacks.mutation import draw, mutate_bytes, mutate_json, nest
from attacks.outcome import Outcome

TITLE = "Readers of .npy, .npz, Parquet, CSV, ARFF, XML, JSON and text"
SLICE = 800
FULL = 50_000
N_ROWS, N_LABELS = 12, 4
DENSE = """@relation 'flags: -C 2'
@attribute area numeric
@attribute 'red stripes' {0,1}
@attribute zone {NE,SE,'S W'}
@attribute a {0,1}
@attribute b {0,1}
@data
1.5,0,NE,0,1
2.5,1,'S W',1,0
-3e2,0,SE,1,1
"""
SPARSE = """@relation s
@attribute area numeric
@attribute count numeric
@attribute a {0,1}
@attribute b {0,1}
@data
{0 1.5,2 1}
{1 2,3 1}
{}
"""
LABEL_LIST = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="a"></label>
<label name="b"><label name="c &amp; d"/></label>
</labels>
"""


class Reader(NamedTuple):
    """A good file, what reads it and looks at the result, and its share of the tries."""

    name: str
    raw: bytes
    use: Callable[[Path], Any]
    share: int


def attack(count: int, seed: int) -> Outcome:
    """Read what was changed; it is refused in one line, or what is read is whole and finite."""
    return try_in_child("attacks.readers", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """A reader is drawn by its share; those that take long come less often."""
    readers = make_readers(folder)
    shares = [reader.share for reader in readers]

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        (reader,) = dice.choices(readers, shares)
        path = folder / reader.name
        path.write_bytes(_change(reader, dice))
        try:
            return "refused" if refused(lambda: reader.use(path)) else "read"
        except Exception as error:
            error.args = (f"{reader.name}: {error}",)
            raise
        finally:
            path.write_bytes(reader.raw)

    return attempt


def _change(reader: Reader, dice: random.Random) -> bytes:
    if reader.name.endswith(".npz") and dice.random() < 0.6:
        return reseal_archive(reader.raw, dice)
    if reader.name.endswith(".json") and dice.random() < 0.6:
        if dice.random() < 0.02:
            return nest(reader.raw, dice)
        return json.dumps(mutate_json(json.loads(reader.raw), dice)).encode()
    return mutate_bytes(reader.raw, dice)


def reseal_archive(raw: bytes, dice: random.Random) -> bytes:
    """The archive with one member changed, and its sums and sizes right again."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = dice.choice(sorted(members))
    if dice.random() < 0.1:
        members[dice.choice(("indices.npy", "data.npy", "shape.npy", "x.npy", "../x"))] = (
            members.pop(name)
        )
    else:
        members[name] = mutate_bytes(members[name], dice)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as new:
        for each, body in members.items():
            new.writestr(each, body)
    return file.getvalue()


# --- Good files -----------------------------------------------------------------------------------


def make_readers(folder: Path) -> list[Reader]:
    """Every kind of file that is read, small."""
    rng = np.random.default_rng(0)
    scores = rng.random((N_ROWS, N_LABELS))
    labels = rng.random((N_ROWS, N_LABELS)) < scores
    return [
        *_score_readers(scores),
        *_label_readers(scores, labels),
        *_parquet_readers(scores, labels),
        *_csv_readers(scores, labels),
        *_feature_readers(scores),
        *_list_readers(),
        *_data_set_readers(folder),
    ]


def _saved(save: Callable[..., Any], *values: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    save(file, *values, **named)
    return file.getvalue()


def _rank(path: Path) -> None:
    import oddslip

    ranking = oddslip.rank(path, k=1, threads=1)
    source = oddslip.open_source(path)
    if len(ranking) != source.n_rows or (ranking < 0).any() or (ranking >= source.n_labels).any():
        raise AssertionError("a ranking must hold labels that there are")


def _score_readers(scores: Any) -> list[Reader]:
    return [
        Reader("scores.npy", _saved(np.save, scores), _rank, 6),
        Reader("single.npy", _saved(np.save, scores.astype("f4").T.copy().T), _rank, 4),
        Reader("scores.npz", _saved(np.savez, scores=scores), _rank, 6),
        Reader("packed.npz", _saved(np.savez_compressed, scores=scores), _rank, 4),
    ]


def _label_readers(scores: Any, labels: Any) -> list[Reader]:
    import scipy.sparse as sp

    import oddslip

    def evaluate(path: Path) -> None:
        found = oddslip.evaluate(scores, path, k=2, n_replicates=0, threads=1)
        if not 0 <= found["map"].value <= 1:
            raise AssertionError(f"MAP must be between 0 and 1, got {found['map'].value}")

    matrix = sp.csr_matrix(labels.astype(np.int8))
    saved = {kind: _saved(sp.save_npz, matrix.asformat(kind)) for kind in ("csr", "csc", "coo")}
    return [
        Reader("labels.npy", _saved(np.save, labels), evaluate, 3),
        Reader("labels.npz", _saved(np.savez, labels=labels.astype(np.uint8)), evaluate, 3),
        *(Reader(f"{kind}.npz", raw, evaluate, 4) for kind, raw in saved.items()),
        *(
            Reader(f"{name}.parquet", raw, evaluate, 2)
            for name, raw in _label_tables(labels).items()
        ),
    ]


def _label_tables(labels: Any) -> dict[str, bytes]:
    import pyarrow as pa

    rows, columns = np.nonzero(labels)
    names = list("abcd")
    metadata = {"oddslip.label_names": json.dumps(names)}
    lists = [np.flatnonzero(row).tolist() for row in labels]
    return {
        "wide-labels": _parquet(pa.table(dict(zip(names, labels.T, strict=True)))),
        "list-labels": _parquet(pa.table({"labels": lists})),
        "named-labels": _parquet(
            pa.table(
                {"labels": [[names[j] for j in row] for row in lists]}
            ).replace_schema_metadata(metadata)
        ),
        "pair-labels": _parquet(pa.table({"row": rows, "label": columns})),
    }


def _parquet(table: Any) -> bytes:
    import pyarrow.parquet as pq

    return _saved(lambda file: pq.write_table(table, file, compression="zstd"))


def _parquet_readers(scores: Any, labels: Any) -> list[Reader]:
    import pyarrow as pa

    names = list("abcd")
    wide = pa.table({"row_id": list(range(N_ROWS)), **dict(zip(names, scores.T, strict=True))})
    listed = pa.table({"scores": scores.tolist(), "labels": labels.astype(int).tolist()})
    listed = listed.replace_schema_metadata({"oddslip.label_names": json.dumps(names)})
    long = pa.table(
        {
            "row": np.repeat(np.arange(N_ROWS), N_LABELS),
            "label": names * N_ROWS,
            "score": scores.ravel(),
        }
    )
    lists = [[names[j] for j in np.flatnonzero(row)] for row in labels]
    beside = pa.table({"scores": scores.tolist(), "labels": lists})
    beside = beside.replace_schema_metadata({"oddslip.label_names": json.dumps(names)})
    tables = {
        "wide": wide,
        "list": listed,
        "long": long,
        "beside": beside,
        "scattered": long.take(np.random.default_rng(1).permutation(long.num_rows)),
    }
    return [Reader(f"{name}.parquet", _parquet(table), _rank, 3) for name, table in tables.items()]


def _csv_readers(scores: Any, labels: Any) -> list[Reader]:
    import oddslip

    def evaluate(path: Path) -> None:
        found = oddslip.evaluate(scores, path, k=2, n_replicates=0, threads=1)
        if not 0 <= found["map"].value <= 1:
            raise AssertionError(f"MAP must be between 0 and 1, got {found['map'].value}")

    def lines(*columns: Any) -> bytes:
        return "".join(
            ",".join(map(str, line)) + "\n" for line in zip(*columns, strict=True)
        ).encode()

    rows, places = np.divmod(np.random.default_rng(2).permutation(scores.size), N_LABELS)
    cells = lines(rows, places, scores[rows, places])
    pairs = np.nonzero(labels)
    return [
        Reader("wide.csv", b"user_id,=a,b,c,d\n" + lines(range(N_ROWS), *scores.T), _rank, 6),
        Reader("long.csv", b"row,label,score\n" + cells, _rank, 3),
        Reader("labels.csv", b"a,b,c,d\n" + lines(*labels.T), evaluate, 4),
        Reader("pairs.csv", b"row,label\n" + lines(*pairs), evaluate, 3),
    ]


def _feature_readers(scores: Any) -> list[Reader]:
    import scipy.sparse as sp

    from oddslip.adapters.features import hash_features, read_features

    def read(path: Path) -> None:
        features = read_features(path)
        hash_features(features)
        if hasattr(features, "tocsr") and features.shape[0] * features.shape[1] < 10**6:
            features.toarray()

    matrix = sp.csr_matrix(np.where(scores > 0.5, scores, 0))
    kinds = ("csr", "csc", "coo", "dia", "bsr")
    return [
        Reader("X.npy", _saved(np.save, scores), read, 2),
        *(
            Reader(f"X-{kind}.npz", _saved(sp.save_npz, matrix.asformat(kind)), read, 3)
            for kind in kinds
        ),
    ]


def _list_readers() -> list[Reader]:
    from oddslip.cli.inputs import read_names, read_numbers

    def numbers(path: Path) -> None:
        import oddslip

        oddslip.plan(
            [[1, 0], [0, 1], [0, 0]],
            rounds=5,
            learning_rate=0.1,
            weights=read_numbers(path),
            threads=1,
        )

    def names(path: Path) -> None:
        from oddslip import Panel

        Panel(np.full((1, 2), 0.5), label_names=read_names(path))

    return [
        Reader("weights.txt", b"1.5\n2e3\n", numbers, 2),
        Reader("weights.npy", _saved(np.save, np.array([1.5, 2.0])), numbers, 2),
        Reader("weights.npz", _saved(np.savez, np.array([1.5, 2.0])), numbers, 2),
        Reader("names.txt", "Girokonto\nプール\n".encode(), names, 2),
    ]


def _data_set_readers(folder: Path) -> list[Reader]:
    from experiments.datasets.baskets.table import read_baskets
    from experiments.datasets.baskets.tafeng import parse_tafeng
    from experiments.datasets.generators import generate_baskets
    from experiments.datasets.mulan.arff import read_arff
    from experiments.datasets.mulan.labels import read_label_list

    def arff(path: Path) -> None:
        found = read_arff(path, missing="nan")
        if found.cells.shape[1] != len(found.attributes):
            raise AssertionError("a table must have a column for each attribute")

    def tafeng(path: Path) -> None:
        parse_tafeng(path.read_bytes(), path.name)

    histories = {str(user): [[1, 2], [2, 3, user], [4], [1]] for user in range(5)}
    made = folder / "made"
    purchases = generate_baskets(made, n_users=40, seed=0, n_products=200)

    def baskets(path: Path) -> None:
        import shutil

        try:
            rows = read_baskets(path, 5, cache=folder / "cache")
        finally:
            shutil.rmtree(folder / "cache", ignore_errors=True)
        if not np.isfinite(rows.train.X.data).all():
            raise AssertionError("features must be finite")

    return [
        Reader("dense.arff", DENSE.encode(), arff, 6),
        Reader("sparse.arff", SPARSE.encode(), arff, 6),
        Reader("labels.xml", LABEL_LIST.encode(), read_label_list, 6),
        Reader("tafeng.json", json.dumps(histories).encode(), tafeng, 4),
        Reader("purchases.parquet", purchases.read_bytes(), baskets, 1),
    ]
