"""The SQL of a repair, run by DuckDB and by a PostgreSQL of its own, against our own ranking."""

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import oddslip
from oddslip.calibrators import Beta, Isotonic
from oddslip.cli.app import main
from oddslip.errors import InvalidInput
from oddslip.repairs.maps import LabelMaps
from oddslip.serving.map_pieces import cut_pieces
from oddslip.serving.sql import DIALECTS, write_sql

sys.path.insert(0, str(Path(__file__).parent))
from repair_worlds import as_repair, draw_repair

HOSTILE = (
    "it's",
    '"; DROP TABLE scores; --',
    "back\\slash",
    "back\\'quote",
    "`tick`",
    "$1 $$ $tag$",
    "%s {x}",
    "-- comment",
    "/* open",
    "new\nline",
    "tab\t",
    "ünï\u202ecode",
    "NULL",
    "'' OR 1=1",
    "\\",
)
pytestmark = pytest.mark.filterwarnings("ignore:labels of .* are matched by position:UserWarning")
ROWS, LABELS, K = 1000, 100, 7  # 100,000 long rows


# ------------------------------------------------------------------------------- the data bases


class DuckDB:
    dialect = "duckdb"

    def __init__(self):
        self.connection = duckdb.connect(config={"threads": 1})

    def load(self, table, frame):
        self.connection.register("loaded", frame)
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM loaded")

    def run(self, text):
        self.connection.execute(text)

    def abandon(self):
        """End a transaction that failed, as closing a connection would."""
        self.connection.rollback()

    def read(self, query):
        return [list(line) for line in self.connection.execute(query).fetchall()]


class PostgreSQL:
    dialect = "postgres"

    def __init__(self, folder):
        self.folder = folder
        self.database = f"d{next(NUMBERS)}"
        self.psql("postgres", f'CREATE DATABASE "{self.database}" TEMPLATE template0 ENCODING UTF8')

    def psql(self, database, text):
        command = [tool("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.folder]
        command += ["-U", "oddslip", "-d", database, "-f", "-"]
        ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def load(self, table, frame):
        whole = pd.api.types.is_integer_dtype(frame.iloc[:, 1])
        types = ("integer", "integer" if whole else "text", "double precision")
        columns = ", ".join(
            f'"{name}" {kind}' for name, kind in zip(frame.columns, types, strict=True)
        )
        cells = frame.to_csv(index=False, header=False, float_format="%.17g", lineterminator="\n")
        self.psql(
            self.database,
            f"CREATE TABLE {table} ({columns});\nCOPY {table} FROM STDIN WITH (FORMAT csv);\n"
            f"{cells}\\.\n",
        )

    def run(self, text):
        self.psql(self.database, text)

    def abandon(self):
        """Each run has a connection of its own."""

    def read(self, query):
        text = self.psql(self.database, f"COPY ({query}) TO STDOUT WITH (FORMAT csv)")
        return list(csv.reader(io.StringIO(text)))


class Spark:
    """Spark's own shell: everything that was run, once more in each process, then the query."""

    dialect = "spark"

    def __init__(self, folder):
        self.folder, self.statements = folder, []

    def load(self, table, frame):
        path = self.folder / f"{table}.parquet"
        frame.to_parquet(path)
        self.run(f"CREATE OR REPLACE TEMPORARY VIEW {table} AS SELECT * FROM parquet.`{path}`;\n")

    def run(self, text):
        self.statements.append(text)

    def read(self, query):
        pyspark = pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("needs Java")
        path = self.folder / "statements.sql"
        path.write_text("".join(self.statements) + query.replace('"', "`") + ";\n")
        settings = {
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": self.folder / "warehouse",
            "spark.sql.shuffle.partitions": 1,
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-sql"), "--master", "local[1]"]
        command += [
            word for name, value in settings.items() for word in ("--conf", f"{name}={value}")
        ]
        ran = subprocess.run(
            [*command, "-f", str(path)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )
        assert ran.returncode == 0, ran.stderr[-2000:]
        return [line.split("\t") for line in ran.stdout.splitlines()]


NUMBERS = iter(range(10**6))


@cache
def tool(name):
    """A program of PostgreSQL's, on the path or where Debian keeps it."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = shutil.which(name, path=os.pathsep.join([*map(str, places), os.environ["PATH"]]))
    if path is None:
        pytest.skip(f"needs PostgreSQL's {name}. Debian: apt install postgresql")
    return path


@pytest.fixture(scope="module")
def server():
    """The folder of a private server's socket; it listens to no address."""
    tool("initdb"), tool("psql")
    # Its folder may not lie in pytest's, which nobody else may enter: the server is never root's.
    folder = tempfile.mkdtemp(prefix="oddslip-postgres-")
    someone = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        someone = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = f"{folder}/data"
    make = [tool("initdb"), "-D", data, "-U", "oddslip", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(
        [*someone, *make, "--locale=C"], cwd=folder, check=True, capture_output=True, text=True
    )
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c autovacuum=off"
    start = [tool("pg_ctl"), "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start"]
    subprocess.run([*someone, *start], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    try:
        yield folder
    finally:
        stop = [tool("pg_ctl"), "-D", data, "-m", "immediate", "stop"]
        subprocess.run([*someone, *stop], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(folder)


def start(request):
    if request.param == "duckdb":
        return DuckDB()
    if request.param == "spark":
        return Spark(request.getfixturevalue("tmp_path"))
    return PostgreSQL(request.getfixturevalue("server"))


@pytest.fixture(params=["duckdb", "postgres"])
def base(request):
    return start(request)


@pytest.fixture(params=DIALECTS)
def any_base(request):
    return start(request)


# ----------------------------------------------------------------------------------------- laws


def long(repair, scores, columns=("row", "label", "score")):
    n_rows, n_labels = scores.shape
    names = np.arange(n_labels) if repair.label_names is None else repair.label_names
    return pd.DataFrame(
        {
            columns[0]: np.repeat(np.arange(n_rows), n_labels),
            columns[1]: np.tile(
                np.array(names, None if repair.label_names is None else object), n_rows
            ),
            columns[2]: scores.astype(np.float64).ravel(),
        }
    )


def ranked(base, name="oddslip", row="row"):
    lines = base.read(
        f'SELECT "{row}", place, probability FROM "{name}_ranking" ORDER BY "{row}", slot'
    )
    cells = np.array(lines, dtype=np.float64)
    return cells[:, 1].astype(np.int64), cells[:, 2]


def fitted(calibrator, seed=0, n_labels=LABELS):
    """A repair of 100 labels, some dead, and 1,000 other rows with ties and saturated cells."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.3, 2.0, (2 * ROWS, n_labels)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.1] = 1.0
    scores[:, ::3] = scores[:, ::3].round(2)
    truth = rng.random(scores.shape) < 0.3 * scores * np.linspace(0, 1, n_labels)
    names = [f"label {j}" for j in rng.permutation(n_labels)]
    repair = calibrator.fit(scores[:ROWS], truth[:ROWS], label_names=names).fitted_
    return repair, scores[ROWS:]


@pytest.mark.parametrize(
    "calibrator", [Isotonic(tau=1), Beta(dead="exclude")], ids=["isotonic", "beta"]
)
def test_a_hundred_thousand_long_rows_rank_as_ours(base, calibrator):
    repair, scores = fitted(calibrator)
    base.load("scores", long(repair, scores))
    base.run("".join(write_sql(repair, dialect=base.dialect, k=K)))
    ranking = repair.rank(scores, k=K)
    places, probabilities = ranked(base)
    np.testing.assert_array_equal(places.reshape(ROWS, K), ranking)
    wide = repair.transform(scores, dtype=np.float64)
    ours = np.take_along_axis(wide, ranking.astype(np.int64), axis=1)
    np.testing.assert_allclose(probabilities.reshape(ROWS, K), ours, rtol=1e-13)


def test_maps_of_every_form_rank_as_ours_in_one_go(base):
    for seed in range(25 if base.dialect == "duckdb" else 10):
        repair, scores, k = draw_repair(seed)
        scores = np.clip(scores.astype(np.float64), -1e6, 1e6)  # PostgreSQL refuses to overflow
        name, table = f"repair {seed}", f"scores_{seed}"
        base.load(table, long(repair, scores))
        base.run("".join(write_sql(repair, dialect=base.dialect, k=k, name=name, table=table)))
        places, probabilities = ranked(base, name)
        ranking = repair.rank(scores, k=k, threads=1)
        np.testing.assert_array_equal(places.reshape(ranking.shape), ranking, err_msg=str(seed))
        wide = repair.transform(scores, threads=1)
        ours = np.take_along_axis(wide, ranking.astype(np.int64), axis=1)
        np.testing.assert_allclose(probabilities.reshape(ours.shape), ours, rtol=1e-12, atol=1e-300)


def test_a_script_that_is_run_again_replaces_what_it_made(any_base):
    """Another repair first, whose labels are numbers, then one of named labels twice."""
    repair, scores = fitted(Isotonic(tau=1), n_labels=10)
    scores = scores[:50]
    numbered = replace(fitted(Beta(), seed=1, n_labels=10)[0], label_names=None)
    any_base.load("numbered", long(numbered, scores))
    any_base.load("scores", long(repair, scores))
    first = write_sql(numbered, dialect=any_base.dialect, k=K, table="numbered")
    again = "".join(write_sql(repair, dialect=any_base.dialect, k=K))
    for script in ("".join(first), again, again):
        any_base.run(script)
    places, _ = ranked(any_base)
    np.testing.assert_array_equal(places.reshape(len(scores), K), repair.rank(scores, k=K))


def test_a_script_that_fails_leaves_what_was_there(base):
    repair, scores = fitted(Isotonic(tau=1))
    base.load("scores", long(repair, scores[:50]))
    base.run("".join(write_sql(repair, dialect=base.dialect, k=K)))
    other = fitted(Beta(), seed=1)[0]
    # The table it reads is missing, so the view cannot be made after the pieces were.
    with pytest.raises((duckdb.Error, AssertionError)):
        base.run("".join(write_sql(other, dialect=base.dialect, k=K, table="nowhere")))
    base.abandon()
    places, _ = ranked(base)
    np.testing.assert_array_equal(places.reshape(50, K), repair.rank(scores[:50], k=K))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("has_names", [True, False])
def test_the_head_says_what_the_script_reads_and_in_which_dialect(dialect, has_names):
    repair = replace(fitted(Isotonic())[0], **({} if has_names else {"label_names": None}))
    columns = ("customer", "product", "log odds")
    script = "".join(
        write_sql(repair, dialect=dialect, table="lake.served", columns=columns, name="mine")
    )
    head = script[: re.search(r"^[^-]", script, re.MULTILINE).start()]
    sql = DIALECTS[dialect]
    table, row, label, score = map(sql.name, ("served", *columns))
    assert re.search(rf"^-- .*\b{dialect}\b", head, re.MULTILINE | re.IGNORECASE)
    assert f"{sql.name('lake')}.{table}" in head
    for column, kind in (
        (row, "any type"),
        (label, sql.string if has_names else "integer"),
        (score, sql.number),
    ):
        assert re.search(rf"^-- +{re.escape(column)}: {kind}", head, re.MULTILINE)
    for target in ("mine_pieces", "mine_ranking"):
        assert sql.name(target) in head


def test_names_that_want_to_be_code_stay_names(base):
    n = len(HOSTILE)
    zeros = np.zeros(n)
    maps = LabelMaps(
        "probability",
        "log_odds",
        np.ones(n),
        np.linspace(1, 2, n),
        zeros,
        zeros,
        zeros,
        zeros,
        [],
        [],
    )
    repair = as_repair(maps, HOSTILE)
    scores = np.random.default_rng(0).random((5, n))
    columns = ("row; --", 'la"bel', "sco're")
    frame = long(repair, scores)
    base.load("plain", frame)
    base.run(
        'CREATE TABLE "a ""table""; --" AS SELECT "row" AS "row; --", "label" AS "la""bel", '
        '"score" AS "sco\'re" FROM plain'
    )
    base.run(
        "".join(
            write_sql(
                repair,
                dialect=base.dialect,
                k=3,
                name='it\'s "mine"; --',
                table='a "table"; --',
                columns=columns,
            )
        )
    )
    lines = base.read(
        'SELECT "row; --", "la""bel", place FROM "it\'s ""mine""; --_ranking" ORDER BY 1, slot'
    )
    assert [line[1] for line in lines] == [HOSTILE[int(line[2])] for line in lines]
    ranking = repair.rank(scores, k=3)
    assert [int(line[2]) for line in lines] == ranking.ravel().tolist()
    assert len(base.read("SELECT * FROM plain")) == 5 * n


def test_a_calibrator_that_wants_to_be_code_stays_in_its_comment(base):
    repair = replace(fitted(Isotonic())[0], calibrator="Isotonic\nDROP TABLE scores;\u2028")
    base.load("scores", long(repair, np.zeros((2, LABELS))))
    base.run("".join(write_sql(repair, dialect=base.dialect, k=1)))
    assert len(base.read('SELECT * FROM "oddslip_ranking"')) == 2


def test_a_missing_or_empty_score_is_no_candidate(base):
    repair, scores = fitted(Isotonic())
    frame = long(repair, scores[:20])
    frame.loc[::5, "score"] = None
    base.load("scores", frame.drop(index=frame.index[1::7]))
    base.run("".join(write_sql(repair, dialect=base.dialect, k=K)))
    absent = np.zeros(20 * LABELS, np.bool_)
    absent[::5] = absent[1::7] = True
    values = repair.maps.evaluate(np.ascontiguousarray(scores[:20]))
    values[absent.reshape(20, LABELS)] = -np.inf
    best = np.argsort(-values, axis=1, kind="stable")[:, :K]
    np.testing.assert_array_equal(ranked(base)[0].reshape(20, K), best)


def test_pieces_cover_the_scale_once_and_a_cliff_is_two_of_them():
    tiny = 5e-324
    maps = LabelMaps(
        "probability",
        "probability",
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 4],
        [4, 5],
        [0.2, 0.2, 0.5, 0.5 + 1e-16, 0.3],
        [0.0, 0.1, 0.4, 0.9, 0.5],
    )
    cliff = LabelMaps(
        "margin", "probability", [0], [0], [0], [0], [0], [2], [0.0, tiny], [0.1, 0.9]
    )
    for each in (maps, cliff):
        pieces = cut_pieces(each)
        for label in range(each.n_labels):
            ours = [piece for piece in pieces if piece.place == label]
            assert ours[0].low == -np.inf
            assert ours[-1].high == np.inf
            assert [piece.high for piece in ours[:-1]] == [piece.low for piece in ours[1:]]
            assert all(np.isfinite(piece.slope) for piece in ours)
    repair = as_repair(cliff)
    scores = np.array([[-1.0], [0.0], [tiny], [2 * tiny], [1.0]])
    base = DuckDB()
    base.load("scores", long(repair, scores))
    base.run("".join(write_sql(repair, dialect="duckdb")))
    np.testing.assert_array_equal(ranked(base)[1], repair.transform(scores)[:, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dialect": "oracle"}, "dialect must be one of duckdb, postgres, spark"),
        ({"dialect": "duckdb", "k": 10**6}, "k must be between 1"),
        ({"dialect": "duckdb", "name": ""}, "SQL cannot name ''"),
        ({"dialect": "duckdb", "table": "a\0b"}, "names must be text without NUL"),
        ({"dialect": "duckdb", "columns": ("a", "b")}, "columns must name row, label and score"),
        ({"dialect": "duckdb", "columns": ("a", "A", "s")}, "columns must differ"),
        ({"dialect": "duckdb", "columns": ("Slot", "label", "s")}, "columns must differ"),
    ],
)
def test_invalid_options_are_rejected_and_leave_no_file(options, message, tmp_path):
    repair, _, _ = draw_repair(1)
    with pytest.raises(InvalidInput, match=message):
        repair.to_sql(tmp_path / "repair.sql", **options)
    assert list(tmp_path.iterdir()) == []


def test_text_for_spark_holds_nothing_that_it_would_fill_in_or_read_as_code():
    for name in (*HOSTILE, "${env:HOME} $1", "\U0001f600"):
        text = DIALECTS["spark"].text(name)
        assert re.fullmatch(r"'([A-Za-z0-9 _.-]|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*'", text)
        assert text[1:-1].encode().decode("unicode_escape") == name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_command_writes_what_python_writes(dialect, tmp_path, capsys):
    repair, _ = fitted(Isotonic())
    repair.save(tmp_path / "repair.oddslip")
    out = tmp_path / "repair.sql"
    command = ["export", str(tmp_path / "repair.oddslip"), "--to", "sql", "--dialect", dialect]
    assert main([*command, "-k", "7", "--table", "lake.scores", "-o", str(out)]) == 0
    assert f"Wrote SQL to {out}" in capsys.readouterr().out.replace("\n", " ")
    loaded = oddslip.load_repair(tmp_path / "repair.oddslip")
    text = "".join(write_sql(loaded, dialect=dialect, k=7, table="lake.scores"))
    assert out.read_text() == text


def test_sql_without_a_dialect_is_refused_in_one_line(tmp_path, capsys):
    repair, _, _ = draw_repair(1)
    repair.save(tmp_path / "repair.oddslip")
    command = ["export", str(tmp_path / "repair.oddslip"), "-o", str(tmp_path / "out")]
    for more in (["--to", "sql"], ["--to", "excel"]):
        assert main([*command, *more]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()
