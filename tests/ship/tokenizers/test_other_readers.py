"""Other readers of the same tokenizer files: transformers 4 and transformers.js, as programs of
their own.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from weft.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from weft.predict.text import one_line
from weft.ship.tokenizers.hub import Files, language_model_files, translator_files
from weft.ship.tokenizers.ids import joined, same
from weft.ship.tokenizers.odd_texts import ODD_TEXTS

pytestmark = pytest.mark.long

KINDS = (
    *("word", "whitespace", "character", "bpe", "bpe-bare"),
    *("bpe-lower", "unigram", "byte"),
)
ODD = [odd.text for odd in ODD_TEXTS]
# Each prints a row of [name of the case, text, what it gave] for all that it read otherwise.
PYTHON = """
import json, sys
from pathlib import Path
from transformers import AutoTokenizer, __version__
assert __version__.startswith("4."), __version__
wrong = []
for case in json.loads(Path(sys.argv[1]).read_text("utf-8")):
    tokenizer = AutoTokenizer.from_pretrained(case["folder"])
    for text, ids, output, decoded in case["rows"]:
        found = tokenizer(text)["input_ids"]
        if found != ids:
            wrong.append([case["name"], text, found])
        found = tokenizer.decode(output, skip_special_tokens=True)
        if found != decoded:
            wrong.append([case["name"], decoded, found])
print(json.dumps(wrong))
"""
JAVASCRIPT = """
const fs = require("fs");
const { Tokenizer } = require(process.argv[2] + "/@huggingface/tokenizers");
const wrong = [];
const parsed = (name) => JSON.parse(fs.readFileSync(name, "utf-8"));
for (const { name, folder, rows } of parsed(process.argv[3])) {
  const files = [folder + "/tokenizer.json", folder + "/tokenizer_config.json"];
  const tokenizer = new Tokenizer(...files.map(parsed));
  for (const [text, ids, output, decoded] of rows) {
    const found = Array.from(tokenizer.encode(text).ids);
    if (found.join() !== ids.join()) wrong.push([name, text, found]);
    const written = tokenizer.decode(output, { skip_special_tokens: true });
    if (written !== decoded) wrong.push([name, decoded, written]);
  }
}
console.log(JSON.stringify(wrong));
"""

Trained = Callable[[str], Tokenizer]
Row = tuple[str, list[int], list[int], str]


@dataclass(frozen=True)
class Case:
    """A folder with a tokenizer, and rows of a text with its ids, and of an output with its
    text.
    """

    name: str
    folder: str
    rows: list[Row]


def saved(files: Files, folder: Path) -> str:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "config.json").write_text('{"model_type": "marian"}', "utf-8")
    return str(folder)


def cases(trained: Trained, place: Path) -> Iterator[Case]:
    for kind in KINDS:
        one = trained(kind)
        rows: list[Row] = []
        for text in ODD:
            ids = one.encode(text)
            spelled = one.spell(ids, begins=False).decode("utf-8", "replace")
            rows.append((text, [BOS_ID, *ids], [BOS_ID, *ids, EOS_ID], spelled))
        files = language_model_files(one, BOS_ID, 512)
        yield Case(f"writes {kind}", saved(files, place / f"writes-{kind}"), rows)
        for target in ("same", "character", "bpe"):
            yield translation(one, target, trained, place / f"{kind}-{target}")


def translation(one: Tokenizer, target: str, trained: Trained, folder: Path) -> Case:
    tgt = one if target == "same" else trained(target)
    ids = same(one) if tgt is one else joined(one, tgt, own_eos=True)
    rows: list[Row] = []
    for text in ODD:
        source = [*one.encode(one_line(text)), EOS_ID]
        output = [BOS_ID, *tgt.encode(text), EOS_ID]
        there = ids.to("src", source).tolist(), ids.to("tgt", output).tolist()
        rows.append((text, *there, tgt.normalize(text)))
    files = translator_files(one, tgt, ids, 512)
    return Case(folder.name, saved(files, folder), rows)


def differences(command: list[str], trained: Trained, place: Path) -> Any:
    named = place / "cases.json"
    found = list(map(asdict, cases(trained, place)))
    assert len(found) == 4 * len(KINDS)
    named.write_text(json.dumps(found), "utf-8")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    done = subprocess.run(
        [*command, str(named)],
        capture_output=True,
        check=True,
        env=environment,
        text=True,
        timeout=600,
    )
    return json.loads(done.stdout.strip().split("\n")[-1])


def test_transformers_4_reads_the_same(trained: Trained, tmp_path: Path) -> None:
    python = os.environ.get("WEFT_TRANSFORMERS4", "")
    if not Path(python).is_file():
        pytest.skip("WEFT_TRANSFORMERS4 names no Python that has transformers 4")
    assert differences([python, "-c", PYTHON], trained, tmp_path) == []


def test_transformers_js_reads_the_same(trained: Trained, tmp_path: Path) -> None:
    modules = os.environ.get("WEFT_TRANSFORMERS_JS", "")
    node = shutil.which("node")
    if node is None or not Path(modules, "@huggingface", "tokenizers").is_dir():
        pytest.skip("WEFT_TRANSFORMERS_JS names no node_modules with transformers.js")
    script = tmp_path / "read.cjs"
    script.write_text(JAVASCRIPT, "utf-8")
    wrong = differences([node, str(script), modules], trained, tmp_path)
    # what it decodes by bytes has no byte order mark
    assert all("\ufeff" in text for _, text, _ in wrong), wrong
