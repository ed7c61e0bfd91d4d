"""The maps as JSON, read by the JavaScript of the examples under Node."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oddslip.cli.app import main
from oddslip.io.json import verify_checksum
from oddslip.serving.json import describe_maps

sys.path.insert(0, str(Path(__file__).parent))
from repair_worlds import draw_repair, draw_row_aware

ROOT = Path(__file__).parents[2]
READER = ROOT / "examples" / "read_maps.js"
SCRIPT = """
const { readMaps } = require(process.argv[1]);
const worlds = JSON.parse(require("fs").readFileSync(process.argv[2]));
const answers = worlds.map(({ text, rows, k }) => {
  const maps = readMaps(text);
  return { mapped: rows.map((row) => maps.transform(row)), ranked: rows.map((row) => maps.rank(row, k)) };
});
process.stdout.write(JSON.stringify(answers));
"""


def run_node(worlds, folder):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js. Debian: apt install nodejs")
    (folder / "worlds.json").write_text(json.dumps(worlds))
    command = [node, "-e", SCRIPT, READER, folder / "worlds.json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_javascript_maps_and_ranks_as_we_do(tmp_path):
    repairs = [draw_repair(seed) for seed in range(200)]
    worlds = [
        {"text": json.dumps(describe_maps(repair)), "rows": scores.astype(float).tolist(), "k": k}
        for repair, scores, k in repairs
    ]
    exact = 0
    for (repair, scores, k), result in zip(repairs, run_node(worlds, tmp_path), strict=True):
        ranking = repair.rank(scores, k=k, threads=1)
        np.testing.assert_array_equal(result["ranked"], ranking)
        mapped = np.array(result["mapped"])
        wide = repair.transform(scores, dtype=np.float64, threads=1)
        if repair.maps.scale == "probability" and repair.maps.kind == "probability":
            exact += 1
            np.testing.assert_array_equal(mapped, wide)
        else:
            np.testing.assert_allclose(mapped, wide, rtol=1e-13, atol=1e-300)
    assert exact > 20


def test_a_null_is_no_candidate_in_javascript(tmp_path):
    repair, scores, _ = draw_repair(9)
    rows = scores[:1].astype(float).tolist()
    rows[0][0] = None
    world = {"text": json.dumps(describe_maps(repair)), "rows": rows, "k": scores.shape[1]}
    (result,) = run_node([world], tmp_path)
    everything = repair.rank(scores[:1], k=scores.shape[1])[0]
    assert result["ranked"][0] == [label for label in everything.tolist() if label != 0]


def test_the_reader_is_as_short_as_promised():
    assert len(READER.read_text().splitlines()) <= 60


def test_every_field_of_the_document_is_in_the_schema_and_the_other_way_round(tmp_path):
    schema = json.loads((ROOT / "docs" / "maps.schema.json").read_text())
    fields, label_fields = set(), set()
    for seed in range(30):
        repair, _, _ = draw_repair(seed)
        repair.save(tmp_path / "repair.oddslip")
        out = tmp_path / "maps.json"
        command = ["export", str(tmp_path / "repair.oddslip"), "--to", "json", "-o", str(out)]
        assert main(command) == 0
        document = json.loads(out.read_text())
        verify_checksum(document)
        conform(document, schema, schema)
        fields |= document.keys()
        for label in document["labels"]:
            label_fields |= label.keys()
    repair, _ = draw_row_aware(0)
    document = json.loads(json.dumps(describe_maps(repair) | {"sha256": "0" * 64}))
    conform(document, schema, schema)
    assert document.keys() == schema["properties"].keys() == fields | {"stage"}
    assert fields == set(schema["required"])
    assert label_fields == schema["$defs"]["label"]["properties"].keys()


TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "integer": int,
    "null": type(None),
}


def conform(value, schema, whole):
    """The part of JSON Schema that ours uses, checked in a few lines."""
    if "$ref" in schema:
        return conform(value, whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    types = schema.get("type", [])
    kinds = [TYPES[name] for name in ([types] if isinstance(types, str) else types)]
    assert not kinds or any(isinstance(value, kind) for kind in kinds), (value, types)
    assert value == schema.get("const", value)
    assert value in schema.get("enum", [value])
    assert set(schema.get("required", ())) <= (value.keys() if isinstance(value, dict) else set())
    if isinstance(value, dict) and "properties" in schema:
        assert value.keys() <= schema["properties"].keys() or schema.get(
            "additionalProperties", True
        )
        for name, inner in schema["properties"].items():
            if name in value:
                conform(value[name], inner, whole)
    if isinstance(value, list) and "items" in schema:
        for each in value:
            conform(each, schema["items"], whole)
    if isinstance(value, str) and "pattern" in schema:
        assert re.search(schema["pattern"], value)
    return None
