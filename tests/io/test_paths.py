"""Where files are: patterns, lists, folders and addresses, and who is the stranger among them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oddslip
from oddslip import open_source
from oddslip.cli.app import main
from oddslip.errors import OddslipError
from oddslip.io import paths


def put(path, scores, names="ab"):
    pq.write_table(pa.table(dict(zip(names, np.transpose(scores), strict=True))), path)


def first_column(source):
    return [value for block in source.blocks() for value in block.scores[:, 0].tolist()]


def refusal(*given):
    with pytest.raises(OddslipError) as refused:
        open_source(*given)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture
def parts(tmp_path):
    for number in (10, 2, 1):
        put(tmp_path / f"part-{number}.parquet", [[number / 16, 0.5]])
    return tmp_path


def test_files_of_a_pattern_and_a_folder_come_in_natural_order(parts):
    wanted = [1 / 16, 2 / 16, 10 / 16]
    assert first_column(open_source(str(parts / "part-*.parquet"))) == wanted
    assert first_column(open_source(parts)) == wanted
    assert first_column(open_source(parts.as_uri())) == wanted
    assert first_column(open_source(f"{parts.as_uri()}/part-*.parquet")) == wanted


def test_a_list_keeps_its_order(parts):
    files = [parts / "part-10.parquet", str(parts / "part-1.parquet")]
    assert first_column(open_source(files)) == [10 / 16, 1 / 16]


def test_the_first_stranger_is_named(parts):
    put(parts / "part-3.parquet", [[0.5, 0.5]], "ac")
    assert "part-3.parquet differs" in refusal(str(parts / "*.parquet"))
    for number, width in enumerate((2, 3)):
        np.save(parts / f"s-{number}.npy", np.full((2, width), 0.5))
    assert "s-1.npy has 3 and " in refusal([parts / "s-0.npy", parts / "s-1.npy"])
    np.save(parts / "s-1.npy", np.full((2, 2), 0.5, np.float32))
    assert "s-1.npy has float32" in refusal(str(parts / "s-?.npy"))
    assert "of one form" in refusal([parts / "s-0.npy", parts / "part-1.parquet"])
    assert "files of one form" in refusal(str(parts / "*-1.*"))
    assert "but none does" in refusal(str(parts / "nothing-*.npy"))


def test_a_file_whose_name_is_a_pattern_is_that_file(tmp_path):
    np.save(tmp_path / "s[1].npy", np.full((2, 2), 0.25))
    np.save(tmp_path / "s1.npy", np.full((3, 2), 0.75))
    assert open_source(str(tmp_path / "s[1].npy")).n_rows == 2


def test_labels_of_several_files_stand_below_one_another(tmp_path):
    rng = np.random.default_rng(0)
    scores, labels = rng.random((7, 3)), rng.random((7, 3)) < 0.5
    np.save(tmp_path / "s-1.npy", scores[:4])
    np.savez(tmp_path / "s-2.npz", scores[4:])
    np.save(tmp_path / "y-1.npy", labels[:2])
    np.save(tmp_path / "y-2.npy", labels[2:].astype(np.int8))
    found = oddslip.evaluate(
        [tmp_path / "s-1.npy", tmp_path / "s-2.npz"], str(tmp_path / "y-*.npy"), k=2, seed=1
    )
    wanted = oddslip.evaluate(scores, labels, k=2, seed=1)
    assert found.to_dict() == wanted.to_dict()


def test_any_store_of_fsspec_can_be_read():
    import fsspec

    there = fsspec.filesystem("memory")
    with there.open("/bucket/scores.parquet", "wb") as file:
        put(file, [[0.25, 0.5]])
    assert first_column(open_source("memory://bucket/scores.parquet")) == [0.25]
    assert "does not exist" in refusal("memory://bucket/none.parquet")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://bucket/s.parquet?endpoint_override=127.0.0.1:1&scheme=http&region=x", "reached"),
        ("s3://bucket/s.parquet?secret_key=x", "Keys come from the environment"),
        ("nobody://bucket/s.parquet", "cannot be reached"),
        ("file:///nowhere/s.parquet", "does not exist"),
        ("file:///nowhere/*.parquet", "cannot be reached"),
    ],
)
def test_an_address_where_nothing_is_gives_one_line_and_soon(address, said, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setattr(paths, "MAX_ATTEMPTS", 1)
    assert said in refusal(address)


def test_other_files_than_parquet_are_to_be_copied_here(tmp_path):
    np.save(tmp_path / "s.npy", np.full((2, 2), 0.5))
    assert "must be Parquet to be read at an address" in refusal((tmp_path / "s.npy").as_uri())


def test_the_command_line_takes_patterns_and_addresses(parts, capsys):
    np.save(parts / "y.npy", np.eye(3, 2))
    for scores in (parts / "part-*.parquet", parts.as_uri()):
        assert main(["evaluate", str(scores), str(parts / "y.npy"), "-k", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["n_rows"] == 3
