"""The translator that the package carries, for `weft serve --demo`."""

from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
import sacrebleu

import weft
from tiny_server import Running
from weft import DEMO
from weft.data import builtin
from weft.data.builtin.examples import EXAMPLES
from weft.folder.model_folder import open_model_folder
from weft.serve.catalogue import Named, open_model
from weft.serve.examples import examples_for

MOST_BYTES = 2 * 2**20
SENTENCE = "My friend wants to lend his father an old novel."


def test_it_is_small_and_holds_no_run() -> None:
    files = {path.name: path.stat().st_size for path in DEMO.rglob("*")}
    assert sum(files.values()) <= MOST_BYTES
    assert "run" not in files
    config = open_model_folder(DEMO).config
    assert (config.task, config.weights) == ("translation", "int8")


def test_it_translates_sentences_that_it_was_not_trained_on() -> None:
    pairs = builtin.pairs("everyday", "en", "zh").test[:80]
    found = weft.load(DEMO).translate([source for source, _ in pairs])
    score = sacrebleu.corpus_bleu(
        [one.text for one in found], [[target for _, target in pairs]], tokenize="zh"
    )
    assert score.score > 97


def test_the_page_has_examples_for_it_which_it_translates_well(
    tiny_folder: Path,
) -> None:
    card = open_model(Named("demo", DEMO)).card
    assert card["examples"] == [example["en"] for example in EXAMPLES]
    found = weft.load(DEMO).translate(card["examples"])
    assert [one.text for one in found] == [example["zh"] for example in EXAMPLES]
    assert "examples" not in open_model(Named("own", tiny_folder)).card
    assert examples_for(DEMO, "fr") == []


def test_examples_are_of_the_corpus_and_no_model_was_trained_on_them() -> None:
    for src, tgt in (("en", "zh"), ("zh", "de"), ("de", "en")):
        test = set(builtin.pairs("everyday", src, tgt).test)
        assert {(example[src], example[tgt]) for example in EXAMPLES} <= test


@pytest.mark.long
def test_the_script_makes_one_as_good(tmp_path: Path) -> None:
    import demo_model  # tools/demo_model.py

    folder = tmp_path / "demo"
    demo_model.main(folder)
    pairs = builtin.pairs("everyday", "en", "zh").test[:80]
    both = [
        [one.text for one in weft.load(made).translate([s for s, _ in pairs])]
        for made in (DEMO, folder)
    ]
    same = sum(a == b for a, b in zip(*both, strict=True))
    assert same >= 0.9 * len(pairs)


def test_one_command_serves_it(launch: Callable[..., Running]) -> None:
    server = launch("--demo", names=())
    asked = {"q": SENTENCE, "source": "en", "target": "zh"}
    served = server.asked("/translate", asked)["translatedText"]
    assert served == weft.load(DEMO).translate(SENTENCE)[0].text
    with urlopen(f"{server.url}/") as page:
        assert b"<title>Weft</title>" in page.read()
