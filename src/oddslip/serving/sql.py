"""A repair as SQL: a table of the pieces of its maps, and a view that ranks scores in long form.

Scores are in a table with one line per row and label; a missing line, or one whose score is NULL,
is no candidate. Names of labels, tables and columns are untrusted text and always quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from oddslip.core.arguments import check_k
from oddslip.core.types import FilePath, Floats
from oddslip.decisions.list_rule import ListRule
from oddslip.errors import InvalidInput
from oddslip.io.paths import check_path
from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.repairs.map_forms import CLIP, LOWEST
from oddslip.repairs.row_aware import reject_stage
from oddslip.serving.export import Export, describe_repair, names_of, simplify, write_export
from oddslip.serving.map_pieces import FORMS, Piece, cut_pieces

BATCH = 500  # lines of an INSERT
MAX_EXPONENT = 700  # exp(-x) of a larger x is about 0, and an error in PostgreSQL
RANKED = ("place", "slot", "value", "probability")  # columns of the view, beside row and label
NUMBERS = ("low", "high", "x", "y", "slope", "roof", "a", "b", "c")


def _double_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _back_quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _escaped_text(value: str) -> str:
    """Spark replaces ${variables} before it parses a text, so other characters are escaped."""

    def escaped(c: str) -> str:
        if c.isascii() and (c.isalnum() or c in " _-."):
            return c
        return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"

    return f"'{''.join(map(escaped, value))}'"


class Dialect(NamedTuple):
    """The SQL of a database."""

    name: Callable[[str], str]
    text: Callable[[str], str]
    number: str  # the type of a double
    string: str  # the type of a text
    suffix: str  # of a double literal
    join: str  # joins the piece that contains a score
    begin: str  # first statements, which may drop the results of an earlier run
    create_table: str
    create_view: str
    end: str


DIALECTS = {
    "duckdb": Dialect(
        name=_double_quoted,
        text=_text,
        number="DOUBLE",
        string="VARCHAR",
        suffix="",
        join="ASOF JOIN {pieces} AS piece\n"
        "        ON piece.label = given.label AND given.score >= piece.low",
        begin="BEGIN TRANSACTION;\n",
        create_table="CREATE OR REPLACE TABLE",
        create_view="CREATE OR REPLACE VIEW",
        end="COMMIT;\n",
    ),
    "postgres": Dialect(
        name=_double_quoted,
        text=_text,
        number="double precision",
        string="text",
        suffix="",
        join="JOIN LATERAL (\n"
        "        SELECT * FROM {pieces} AS each\n"
        "        WHERE each.label = given.label AND each.low <= given.score\n"
        "        ORDER BY each.low DESC LIMIT 1\n"
        "    ) AS piece ON TRUE",
        begin="SET standard_conforming_strings = on;\nBEGIN;\n"
        "SET LOCAL client_min_messages = warning;\n"
        "DROP VIEW IF EXISTS {ranking};\nDROP TABLE IF EXISTS {pieces};\n",
        create_table="CREATE TABLE",
        create_view="CREATE VIEW",
        end="COMMIT;\n",
    ),
    "spark": Dialect(
        name=_back_quoted,
        text=_escaped_text,
        number="DOUBLE",
        string="STRING",
        suffix="D",
        join="JOIN {pieces} AS piece\n"
        "        ON piece.label = given.label\n"
        "        AND given.score >= piece.low AND given.score < piece.high",
        begin="",
        create_table="CREATE OR REPLACE TEMPORARY VIEW",  # a table would need a warehouse
        create_view="CREATE OR REPLACE TEMPORARY VIEW",
        end="",
    ),
}


def export_sql(
    repair: FittedRepair,
    path: FilePath,
    *,
    dialect: str,
    k: int | None = None,
    name: str = "oddslip",
    table: str = "scores",
    columns: tuple[str, str, str] = ("row", "label", "score"),
    rule: ListRule | None = None,
) -> Export:
    """Write a repair, or its lists by a rule, as SQL, atomically.

    See `oddslip.FittedRepair.to_sql` and `oddslip.FittedDecision.to_sql`.
    """
    check_path("path", path)
    thresholds = None
    if rule is not None:
        k, thresholds = simplify(rule, "SQL")
    parts = write_sql(
        repair,
        dialect=dialect,
        k=k,
        name=name,
        table=table,
        columns=columns,
        thresholds=thresholds,
    )
    return write_export(path, "SQL", "".join(parts).encode())


def write_sql(
    repair: FittedRepair,
    *,
    dialect: str,
    k: int | None = None,
    name: str = "oddslip",
    table: str = "scores",
    columns: tuple[str, str, str] = ("row", "label", "score"),
    thresholds: Floats | None = None,
) -> Iterator[str]:
    """The statements, in parts; the arguments are those of `export_sql`."""
    reject_stage(repair.maps, "SQL")
    if dialect not in DIALECTS:
        raise InvalidInput(f"dialect must be one of {', '.join(DIALECTS)}, got {dialect!r:.60}.")
    if k is not None:
        k = check_k(k, repair.maps.n_labels)
    if isinstance(columns, str) or len(columns) != 3:
        raise InvalidInput(f"columns must name row, label and score, got {columns!r:.60}.")
    column_names = [str(each).lower() for each in (*columns[:2], *RANKED)]
    if len(set(column_names)) < len(column_names):
        raise InvalidInput(
            f"columns must differ from one another and from {', '.join(RANKED)}, which are added, "
            f"got {columns[0]!r:.60} and {columns[1]!r:.60}."
        )
    for text in (name, table, *columns, *names_of(repair)):
        if not isinstance(text, str) or not text or "\0" in text:
            raise InvalidInput(f"SQL cannot name {text!r:.60}: names must be text without NUL.")
    sql = DIALECTS[dialect]
    script = _Script(
        repair,
        dialect,
        pieces=sql.name(f"{name}_pieces"),
        ranking=sql.name(f"{name}_ranking"),
        # Each part of a qualified table name is quoted separately.
        source=".".join(map(sql.name, table.split("."))),
        row=sql.name(columns[0]),
        label=sql.name(columns[1]),
        score=sql.name(columns[2]),
    )
    pieces = cut_pieces(repair.maps)
    yield _head(script)
    yield sql.begin.format(pieces=script.pieces, ranking=script.ranking)
    yield from _table(script, pieces, thresholds)
    forms = {piece.form for piece in pieces}
    yield _view(script, forms, k, only_shown=thresholds is not None)


class _Script(NamedTuple):
    """What all statements refer to; names of tables and columns are quoted."""

    repair: FittedRepair
    dialect: str
    pieces: str
    ranking: str
    source: str
    row: str
    label: str
    score: str

    @property
    def sql(self) -> Dialect:
        return DIALECTS[self.dialect]

    @property
    def label_type(self) -> str:
        return "integer" if self.repair.label_names is None else self.sql.string


def _head(script: _Script) -> str:
    """Comments that describe the script, its input and its output."""
    repair, row, label = script.repair, script.row, script.label
    origin = describe_repair(repair)
    output_columns = ", ".join((row, label, *RANKED))
    margin = repair.maps.kind == "margin"
    lines = [
        f"{origin['written_by']}, {origin['calibrator']} of {origin['n_labels']} labels, "
        f"fitted on {origin['n_calibration_rows']} rows. Dialect: {script.dialect}.",
        f"Reads {script.source}, one line per row and label, with the columns",
        f"    {row}: any type that can be grouped by",
        f"    {label}: {script.label_type}, "
        + ("the place of the label, from 0" if repair.label_names is None else "its name"),
        f"    {script.score}: {script.sql.number} or what casts to it, "
        + ("a margin (log-odds)" if margin else "a probability")
        + "; NULL where the label is no candidate",
        f"Makes {script.pieces}, the pieces of the maps, and the view {script.ranking} of",
        f"    {output_columns}",
        "Both are replaced where they are there, so it can be run again.",
    ]
    return "".join(f"-- {_comment(line)}\n" for line in lines)


def _table(script: _Script, pieces: list[Piece], thresholds: Floats | None) -> Iterator[str]:
    """The table of pieces."""
    repair, sql, name = script.repair, script.sql, script.pieces
    columns = NUMBERS if thresholds is None else (*NUMBERS, "threshold")
    numbers = ", ".join(f"{column} {sql.number}" for column in columns)
    names = names_of(repair)

    def line(piece: Piece) -> str:
        label = names[piece.place] if repair.label_names is None else sql.text(names[piece.place])
        cells = [_number(sql, getattr(piece, column)) for column in NUMBERS]
        if thresholds is not None:
            cells.append(_number(sql, float(thresholds[piece.place])))
        return f"({label}, {piece.place}, '{piece.form}', {', '.join(cells)})"

    if script.dialect == "spark":
        values = ",\n".join(map(line, pieces))
        heads = ", ".join(("label", "place", "form", *columns))
        yield (
            f"{sql.create_table} {name} AS SELECT * FROM VALUES\n{values}\nAS pieces({heads});\n"
        )
        return
    yield (
        f"{sql.create_table} {name} (label {script.label_type}, place integer, "
        f"form {sql.string}, {numbers}, PRIMARY KEY (label, low));\n"
    )
    for first in range(0, len(pieces), BATCH):
        values = ",\n".join(map(line, pieces[first : first + BATCH]))
        yield f"INSERT INTO {name} VALUES\n{values};\n"


def _view(script: _Script, forms: set[str], k: int | None, *, only_shown: bool) -> str:
    """The view that maps and ranks: all labels, or those that reach their threshold."""
    _, _, pieces, ranking, source, row, label, score = script
    sql, end = script.sql, script.sql.end
    value, probability = _expressions(script.repair, sql, forms)
    condition = "" if k is None else f"\nWHERE slot <= {k}"
    likely = f"""SELECT row_id, label, place, score, value,
        {probability} AS probability"""
    slot = "ROW_NUMBER() OVER (PARTITION BY row_id ORDER BY value DESC, place) AS slot"
    if only_shown:
        threshold = ", piece.threshold"
        ranked = f"""likely AS (
    {likely}, threshold
    FROM valued
), ranked AS (
    SELECT likely.*,
        {slot}
    FROM likely WHERE probability >= threshold
)"""
    else:
        threshold = ""
        ranked = f"""ranked AS (
    {likely},
        {slot}
    FROM valued
)"""
    return f"""{sql.create_view} {ranking} AS
WITH given AS (
    SELECT {row} AS row_id, {label} AS label, CAST({score} AS {sql.number}) AS score
    FROM {source} WHERE {score} IS NOT NULL
), placed AS (
    SELECT given.row_id, given.label, given.score, piece.place, piece.form, piece.x, piece.y,
        piece.slope, piece.roof, piece.a, piece.b, piece.c{threshold}
    FROM given
    {sql.join.format(pieces=pieces)}
), valued AS (
    SELECT placed.*,
        {value} AS value
    FROM placed
), {ranked}
SELECT row_id AS {row}, label AS {label}, place, slot, value, probability FROM ranked{condition};
{end}-- Labels that the scores have and this repair does not know take no part. This must be empty:
-- SELECT DISTINCT {_comment(label)} FROM {_comment(source)}
-- EXCEPT SELECT label FROM {_comment(pieces)};
"""


def _comment(text: str) -> str:
    """Text that cannot end its comment."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _expressions(repair: FittedRepair, sql: Dialect, forms: set[str]) -> tuple[str, str]:
    """SQL of the value to compare and of the probability."""
    margin, odds = repair.maps.kind == "margin", repair.maps.scale == "log_odds"

    def number(value: float) -> str:
        return _number(sql, value)

    inside = f"LEAST(GREATEST(score, {number(CLIP)}), {number(1.0 - CLIP)})"
    log_odds = "score" if margin else f"LN({inside} / ({number(1.0)} - {inside}))"
    line = "slope * (GREATEST(score, x) - x) + y"
    if margin:
        tail = _log1p(number, _exp(number, "score"))
        zero = number(0.0)
        beta = (
            f"b * (GREATEST(score, {zero}) + {tail}) - a * (GREATEST(-score, {zero}) + {tail}) + c"
        )
    else:
        beta = f"a * LN({inside}) - b * {_log1p(number, f'(-{inside})')} + c"
    identity = log_odds if odds else (_sigmoid(number, "score") if margin else "score")

    def bounded(expression: str) -> str:
        return f"GREATEST({expression}, {number(LOWEST)})"

    values = {
        "knots": f"CASE WHEN {line} >= y THEN LEAST({line}, roof) ELSE y END",
        "affine": bounded(f"a * {log_odds} + b"),
        "beta": bounded(beta),
        "constant": "b",
        "identity": bounded(identity) if odds else identity,
        "excluded": number(-np.inf),
    }
    mapped = _sigmoid(number, "value") if odds else "value"
    probabilities = {
        "knots": "value",
        "affine": mapped,
        "beta": mapped,
        "constant": "a",
        "identity": mapped if margin else "score",
        "excluded": number(0.0),
    }
    return _by_form(values, forms), _by_form(probabilities, forms)


def _by_form(expressions: dict[str, str], forms: set[str]) -> str:
    present = [form for form in FORMS.values() if form in forms]
    cases = "\n            ".join(f"WHEN '{form}' THEN {expressions[form]}" for form in present)
    return f"CASE form\n            {cases}\n        END"


def _exp(number: Callable[[float], str], expression: str) -> str:
    """exp(-|x|)."""
    return (
        f"(CASE WHEN ABS({expression}) > {number(float(MAX_EXPONENT))} THEN {number(0.0)} "
        f"ELSE EXP(-ABS({expression})) END)"
    )


def _sigmoid(number: Callable[[float], str], expression: str) -> str:
    small, one = _exp(number, expression), number(1.0)
    return (
        f"(CASE WHEN {expression} >= {number(0.0)} THEN {one} ELSE {small} END / ({one} + {small}))"
    )


def _log1p(number: Callable[[float], str], expression: str) -> str:
    """ln(1 + x) as ln(u) x / (u - 1), with u = 1 + x rounded."""
    one = number(1.0)
    return (
        f"(CASE WHEN {one} + {expression} = {one} THEN {expression} "
        f"ELSE LN({one} + {expression}) * {expression} / ({one} + {expression} - {one}) END)"
    )


def _number(sql: Dialect, value: float) -> str:
    """A double literal that is exact to the bit."""
    if not np.isfinite(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS {sql.number})"
    digits = repr(float(value) + 0.0)
    return f"CAST({digits if 'e' in digits else f'{digits}e0'}{sql.suffix} AS {sql.number})"
