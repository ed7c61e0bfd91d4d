"""ARFF files are read whole and right, or refused in one line that names the place."""

import hashlib
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.io import arff as scipy_arff
from scipy.sparse import issparse

from experiments.datasets.mulan import arff as reader
from experiments.datasets.mulan.arff import read_arff
from oddslip.errors import InvalidInput, MissingDependency, UnreadableFile

few = settings(max_examples=60, deadline=None)
HEAD = "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@attribute c real\n@data\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arff")


def write(folder, text):
    path = folder / "some.arff"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def dense(arff):
    return arff.cells.toarray() if issparse(arff.cells) else arff.cells


# What is read


def test_a_dense_file_gives_names_numbers_and_positions_of_nominal_values(folder):
    arff = read_arff(write(folder, HEAD + "1,x,2.5\n-3e2,y,.5\n"))
    assert arff.relation == "r"
    assert arff.names == ("a", "b", "c")
    assert arff.nominal == {"b": ("x", "y")}
    assert_array_equal(arff.cells, [[1, 0, 2.5], [-300, 1, 0.5]])


def test_a_sparse_row_leaves_out_zeros_and_first_values(folder):
    arff = read_arff(write(folder, HEAD + "{1 y, 2 4}\n{}\n{ 0 7 }\n{2 1,0 2}\n{1 x}\n"))
    assert_array_equal(dense(arff), [[0, 1, 4], [0, 0, 0], [7, 0, 0], [2, 0, 1], [0, 0, 0]])
    assert arff.cells.nnz == 5, "a zero that was written is not stored"


def test_carriage_returns_comments_blank_lines_marks_and_cases_of_keywords_do_not_matter(folder):
    plain = read_arff(write(folder, HEAD + "1,x,2\n3,y,4\n"))
    odd = (
        "\ufeff% made by hand\r\n\r\n@RELATION r\r\n\t@Attribute 'a'  INTEGER % count\r\n"
        "@ATTRIBUTE \"b\"{ x , 'y' } % two\r\n@attribute\tc\tReal\r\n@Data\r\n% rows\r\n"
        " 1 , 'x' ,2 % first\r\n\r\n3,y,4"
    )
    again = read_arff(write(folder, odd))
    assert again.names == plain.names
    assert again.nominal == plain.nominal
    assert_array_equal(again.cells, plain.cells)


def test_escapes_are_read_inside_quotes_only_and_kept_in_the_literal_name(folder):
    text = "@relation 'a b'\n@attribute 'Swainson\\'s Thrush' {0,1}\n@attribute m\\'usica {'a\\\\\\tb',\"c'\"}\n@data\n1,\"c'\"\n"
    arff = read_arff(write(folder, text))
    assert arff.relation == "a b"
    assert arff.names == ("Swainson's Thrush", "m\\'usica")
    assert [each.literal for each in arff.attributes] == ["Swainson\\'s Thrush", "m\\'usica"]
    assert arff.nominal["m\\'usica"] == ("a\\\tb", "c'")
    assert_array_equal(arff.cells, [[1, 1]])


def test_an_integer_attribute_keeps_fractions(folder):
    arff = read_arff(write(folder, HEAD.replace("numeric", "integer") + "1.5,x,2\n"))
    assert arff.cells[0, 0] == 1.5


def test_an_empty_value_is_not_a_missing_one(folder):
    for row in ("1,,2", ",x,2", "1,?,", "1,'x', "):
        with pytest.raises(UnreadableFile, match="must not be empty"):
            read_arff(write(folder, HEAD + row + "\n"), missing="nan")


def test_commas_braces_and_percent_signs_in_quotes_belong_to_the_value(folder):
    head = "@relation r\n@attribute a {'x, %y','{z}'}\n@attribute b real\n@data\n"
    assert_array_equal(
        read_arff(write(folder, head + "'{z}',1 % end\n'x, %y',2\n")).cells, [[1, 1], [0, 2]]
    )
    assert_array_equal(dense(read_arff(write(folder, head + "{0 '{z}', 1 4} % end\n"))), [[1, 4]])


def test_without_liac_arff_the_advice_is_the_extra_that_brings_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "arff", None)
    with pytest.raises(
        MissingDependency,
        match=r"needs liac-arff\. Run: pip install -r experiments/requirements.txt",
    ):
        read_arff(write(folder, HEAD))


def test_a_missing_value_is_an_error_or_nan_as_told_but_a_quoted_question_mark_is_a_value(folder):
    text = "@relation r\n@attribute a real\n@attribute b {x,'?'}\n@data\n?,'?'\n1,?\n"
    with pytest.raises(UnreadableFile, match=r"line 5: attribute 'a' has a missing value"):
        read_arff(write(folder, text))
    path = write(folder, text)
    assert_array_equal(read_arff(path, missing="nan").cells, [[np.nan, 1], [1, np.nan]])
    sparse = write(folder, text.replace("?,'?'\n1,?", "{0 ?,1 '?'}\n{0 1,1 ?}"))
    assert_array_equal(dense(read_arff(sparse, missing="nan")), [[np.nan, 1], [1, np.nan]])


def test_the_hash_is_that_of_the_file(folder):
    path = write(folder, HEAD + "1,x,2\r\n% end")
    assert read_arff(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_without_rows_has_none(folder):
    assert read_arff(write(folder, HEAD)).cells.shape == (0, 3)


def test_rows_that_are_all_empty_are_rows(folder):
    assert read_arff(write(folder, HEAD + "{}\n{}\n")).cells.shape == (2, 3)


def test_another_encoding_can_be_named(folder):
    path = write(folder, "@relation r\n@attribute señal real\n@data\n1\n".encode("latin-1"))
    with pytest.raises(UnreadableFile, match=r"line 2: the file must be text in utf-8"):
        read_arff(path)
    assert read_arff(path, encoding="latin-1").names == ("señal",)
    with pytest.raises(InvalidInput, match="encoding"):
        read_arff(path, encoding="no-such")


def test_missing_must_be_error_or_nan(folder):
    with pytest.raises(InvalidInput, match="missing must be"):
        read_arff(write(folder, HEAD), missing="drop")


# Against others


@pytest.mark.parametrize("name", ["emotions", "flags", "birds", "genbase", "yeast"])
def test_dense_real_files_agree_with_scipy(name, genuine):
    path = genuine("mulan") / name / f"{name}-test.arff"
    rows, declared = scipy_arff.loadarff(path)
    arff = read_arff(path)
    theirs = np.empty((len(rows), len(declared.names())))
    for column, each in enumerate(declared.names()):
        kind, values = declared[each]
        cells = rows[each]
        if kind == "nominal":
            cells = [list(values).index(cell.decode()) for cell in cells]
        theirs[:, column] = cells
    assert_array_equal(arff.cells, theirs)


@pytest.mark.parametrize("name", ["corel5k/Corel5k-test-sparse", "medical/medical-test"])
def test_sparse_real_files_agree_with_a_reading_by_hand(name, genuine):
    path = genuine("mulan") / f"{name}.arff"
    lines = path.read_text().splitlines()
    at = lines.index("@data")
    columns = sum(line.startswith("@attribute") for line in lines[:at])
    rows = [line for line in lines[at + 1 :] if line]
    theirs = np.zeros((len(rows), columns))
    for row, line in enumerate(rows):
        for pair in line.strip("{}").split(","):
            index, value = pair.split()
            theirs[row, int(index)] = float(value)  # every attribute is declared {0,1}
    assert_array_equal(dense(read_arff(path)), theirs)


words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")),
    min_size=1,
    max_size=6,
).filter(lambda word: word.splitlines() == [word])
numbers = st.floats(allow_nan=False, allow_infinity=False)


def quoted(word, mark):
    return mark + word.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark


@st.composite
def tables(draw):
    names = draw(st.lists(words, min_size=1, max_size=5, unique=True))
    kinds = [draw(st.none() | st.lists(words, min_size=1, max_size=4, unique=True)) for _ in names]
    cell = [numbers if kind is None else st.integers(0, len(kind) - 1) for kind in kinds]
    rows = draw(st.lists(st.tuples(*cell), max_size=6))
    return names, kinds, rows


@few
@given(table=tables(), mark=st.sampled_from("'\""))
def test_what_is_written_dense_or_sparse_with_any_names_is_read_back(folder, table, mark):
    names, kinds, rows = table
    head = ["@relation r"]
    for name, kind in zip(names, kinds, strict=True):
        values = kind and "{" + ",".join(quoted(value, mark) for value in kind) + "}"
        head.append(f"@attribute {quoted(name, mark)} {values or 'numeric'}")
    texts = [
        [
            repr(v) if kind is None else quoted(kind[v], mark)
            for v, kind in zip(row, kinds, strict=True)
        ]
        for row in rows
    ]
    flat = "\n".join([*head, "@data", *(",".join(row) for row in texts)])
    braced = [
        ", ".join(f"{at} {text}" for at, text in enumerate(row) if values[at] != 0)
        for row, values in zip(texts, rows, strict=True)
    ]
    thin = "\n".join([*head, "@data", *("{" + row + "}" for row in braced)])
    expected = np.array(rows, float).reshape(len(rows), len(names))
    for text in (flat, thin):
        arff = read_arff(write(folder, text))
        assert arff.names == tuple(names)
        assert [each.values for each in arff.attributes] == [k and tuple(k) for k in kinds]
        assert_array_equal(dense(arff), expected)


bits = st.sampled_from(
    [
        "1",
        "x",
        "y",
        "?",
        " ",
        "'",
        '"',
        ",",
        "{",
        "}",
        "%",
        "_",
        "0 1",
        "nan",
        "1e999",
        "-",
        "0",
        "٣",
        "\\",
    ]
)


@few
@given(rows=st.lists(st.lists(bits, max_size=9).map("".join), min_size=1, max_size=3))
def test_the_fast_way_and_the_careful_way_agree_on_every_row(folder, rows):
    path = write(folder, HEAD + "\n".join(rows))

    def outcome():
        try:
            return dense(read_arff(path, missing="nan")).tolist().__repr__()
        except UnreadableFile as error:
            return str(error)

    fast = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_is_plain", lambda line: False)
        assert outcome() == fast


# Hostile input

HOSTILE = {
    "an unclosed quote in a name": (
        "@relation r\n@attribute 'a numeric\n@data\n1\n",
        2,
        "a quote must be closed",
    ),
    "an unclosed quote in a row": (HEAD + "1,x,2\n1,'x,2\n", 7, "a quote must be closed"),
    "an unclosed quote in a sparse row": (HEAD + "{1 'x}\n", 6, "a quote must be closed"),
    "an escaped last quote": (HEAD + "1,'x\\',2\n", 6, "a quote must be closed"),
    "an unclosed list": (
        "@relation r\n@attribute a {x,y\n@data\n",
        2,
        "separated by commas up to a brace, got 'y'",
    ),
    "an unclosed list of many": (
        "@relation r\n@attribute a {" + ",".join("v" * n for n in range(1, 60)) + "\n@data\n",
        2,
        "up to a brace",
    ),
    "an empty list": ("@relation r\n@attribute a {}\n@data\n", 2, "must not be empty"),
    "a value twice": ("@relation r\n@attribute a {x,x}\n@data\n", 2, "'x' twice"),
    "too few values": (HEAD + "1,x\n", 6, "each of the 3 attributes, got 2"),
    "too many values": (HEAD + "1,x,2,3\n", 6, "each of the 3 attributes, got 4"),
    "an empty value": (HEAD + "1,,2\n", 6, "must not be empty"),
    "a comma at the end": (HEAD + "1,x,2,\n", 6, "each of the 3 attributes, got 4"),
    "text behind a quote": (
        HEAD + "1,'x'y,2\n",
        6,
        "separated by commas, those with spaces quoted, got",
    ),
    "an unknown value": (HEAD + "1,z,2\n", 6, "attribute 'b' must be one of '{x, y}', got 'z'"),
    "a value in another case": (HEAD + "1,X,2\n", 6, "must be one of"),
    "no number": (HEAD + "one,x,2\n", 6, "attribute 'a' must be a finite number, got 'one'"),
    "an infinite number": (HEAD + "1e999,x,2\n", 6, "must be a finite number"),
    "a NaN": (HEAD + "nan,x,2\n", 6, "must be a finite number"),
    "a number of Python": (HEAD + "1_0,x,2\n", 6, "must be a finite number"),
    "a number in another script": (HEAD + "٣,x,2\n", 6, "must be a finite number"),
    "a huge index": (
        HEAD + "{99999999999 1}\n",
        6,
        "below the number of attributes, 3, got 99999999999",
    ),
    "an endless index": (HEAD + "{" + "9" * 9000 + " 1}\n", 6, "below the number of attributes"),
    "an index one too high": (HEAD + "{3 1}\n", 6, "below the number of attributes, 3, got 3"),
    "a negative index": (HEAD + "{-1 1}\n", 6, "must hold pairs, {index value, ...}"),
    "an index twice": (HEAD + "{0 1,0 2}\n", 6, "got 0 twice"),
    "an index twice, written in two ways": (HEAD + "{0 1,00 2}\n", 6, "got 00 twice"),
    "an index twice beside a comma in quotes": (
        "@relation r\n@attribute a {x,'1,2'}\n@attribute b real\n@data\n{0 '1,2',1 3,1 4}\n",
        5,
        "got 1 twice",
    ),
    "an index in another script": (HEAD + "{\u0661 y}\n", 6, "must hold pairs"),
    "a value with spaces and no quotes": (HEAD + "1,x y,2\n", 6, "those with spaces quoted"),
    "an escape that means nothing": (HEAD + "1,'\\q',2\n", 6, "values must be"),
    "an enormous number": (HEAD + "1,x," + "2" * 200_000 + "\n", 6, " must be "),
    "an infinite integer": (
        HEAD.replace("numeric", "integer") + "1e999,x,2\n",
        6,
        "must be a finite number",
    ),
    "an index without value": (HEAD + "{0}\n", 6, "must hold pairs"),
    "three in a pair": (HEAD + "{0 1 2}\n", 6, "must hold pairs"),
    "a sparse row cut short": (
        HEAD + "{0 1,2 3",
        6,
        "must hold pairs, {index value, ...}, got '{0 1,2 3'",
    ),
    "a sparse row cut behind a comma": (HEAD + "{0 1,", 6, "must hold pairs"),
    "a lone brace": (HEAD + "{", 6, "must hold pairs"),
    "text behind a sparse row": (HEAD + "{0 1} 5\n", 6, "must hold pairs"),
    "a sparse row among dense": (HEAD + "1,x,2\n{0 1}\n", 7, "all dense or all sparse"),
    "a dense row among sparse": (HEAD + "{0 1}\n1,x,2\n", 7, "all dense or all sparse"),
    "an attribute twice": (
        "@relation r\n@attribute a real\n@attribute 'a' real\n@data\n",
        3,
        "'a' twice",
    ),
    "an attribute without kind": (
        "@relation r\n@attribute a\n@data\n",
        2,
        "must be numeric, real, integer",
    ),
    "a text attribute": ("@relation r\n@attribute a string\n@data\n", 2, "got 'string'"),
    "a kind with more behind": (
        "@relation r\n@attribute a real 5\n@data\n",
        2,
        "must end here, got '5'",
    ),
    "no attribute": ("@relation r\n@data\n1\n", 2, "at least one @attribute"),
    "no @data": ("@relation r\n@attribute a real\n", 2, "must have a line @data"),
    "rows without @data": (
        "@relation r\n@attribute a real\n1\n",
        3,
        "must be @relation or @attribute, got '1'",
    ),
    "an empty file": ("", 1, "must have a line @data"),
    "zero bytes": (b"@relation r\n\0\0\0", 2, "must be text, got a zero byte"),
    "bytes of a picture": (bytes.fromhex("89504e470d0a1a0a"), 1, "must be text in utf-8"),
}


@pytest.mark.parametrize(("text", "line", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_one_line_with_file_and_line_number(
    folder, text, line, reason
):
    path = write(folder, text)
    with pytest.raises(UnreadableFile) as caught:
        read_arff(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    assert reason in message
    assert len(message.splitlines()) == 1
    assert len(message) < len(str(path)) + 250


def test_an_enormous_line_is_refused_before_it_is_read_whole(folder, monkeypatch):
    monkeypatch.setattr(reader, "_MAX_LINE_BYTES", 1000)
    path = write(folder, HEAD + "1,x," + "2" * 100_000)
    with pytest.raises(UnreadableFile, match=r"line 6: a line must be at most 1000 bytes"):
        read_arff(path)


def test_a_long_quoted_value_costs_no_stack_and_little_time(folder):
    value = "\\'" * 500_000
    with pytest.raises(UnreadableFile, match="must be one of"):
        read_arff(write(folder, HEAD + f"1,'{value}',2\n"))
    with pytest.raises(UnreadableFile, match="a quote must be closed"):
        read_arff(write(folder, HEAD + f"1,'{value},2\n"))


def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path):
    for path in (tmp_path / "none.arff", tmp_path):
        with pytest.raises(UnreadableFile, match=r"can ?not be read \("):
            read_arff(path)


GOOD = [(HEAD + rows).encode() for rows in ("1,x,2\n3,'y',4\n", "{0 1,1 y}\n{}\n{2 5}\n")]


@few
@given(
    good=st.sampled_from(GOOD),
    noise=st.binary(max_size=12),
    at=st.integers(0, 90),
    length=st.integers(0, 30),
    stop=st.integers(0, 120),
)
def test_no_mutation_raises_anything_but_the_one_error_with_a_line_number(
    folder, good, noise, at, length, stop
):
    path = write(folder, (good[:at] + noise + good[at + length :])[:stop])
    message = None
    try:
        arff = read_arff(path)
    except UnreadableFile as error:
        message = str(error)
    if message is None:
        assert np.isfinite(dense(arff)).all()
        assert arff.cells.shape[1] == len(arff.names)
    else:
        assert message.startswith(f"{path}, line ")
        assert len(message.splitlines()) == 1
