"""The graph of sentence rules finds what Weft's own splitter finds."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data.segment import sentence_rules, split_sentences
from weft.ship.argos.sentence_rules import write_rules
from weft.ship.argos.sentences import Sentences

pytest.importorskip("onnx", reason="onnx writes the graph")
pytest.importorskip("onnxruntime", reason="onnxruntime computes the graph")
CASES = Path(__file__).parents[1] / "data" / "sentences.txt"


def cases() -> Iterator[tuple[str, str]]:
    """The texts of the file, each with the language of its heading."""
    language = ""
    for line in CASES.read_text("utf-8").split("\n"):
        if line.startswith("# "):
            language = line[2:]
        elif line:
            yield language, line.replace("‖", "")


class Graphs:
    """The graph of each language; languages with the same rules share one."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.known: dict[str, Sentences] = {}

    def __getitem__(self, language: str) -> Sentences:
        rules = json.dumps(sentence_rules(language))
        if rules not in self.known:
            path = self.place / f"{language}.onnx"
            write_rules(path, language)
            self.known[rules] = Sentences(path.read_bytes())
        return self.known[rules]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    return Graphs(tmp_path_factory.mktemp("graphs"))


def by_weft(text: str, language: str) -> list[str]:
    pieces = (piece.strip() for piece in split_sentences(text, language))
    return [piece for piece in pieces if piece]


def test_texts_in_19_languages_are_cut_alike(graphs: Graphs) -> None:
    different = [
        (language, text)
        for language, text in cases()
        if graphs[language].split(text) != by_weft(text, language)
    ]
    assert different == []


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", "Dr. Who went. He did!", ["Dr. Who went.", "He did!"]),
        ("en", "  At 9 a.m.  It ran. ", ["At 9 a.m.", "It ran."]),
        ("en", "1. Go. 2. Come.", ["1. Go.", "2. Come."]),
        ("de", "Am 3. Mai. Er ist 12. Das gilt.", ["Am 3. Mai.", "Er ist 12.", "Das gilt."]),
        ("fr", "« Oui. » Non. « Oui ? » dit-il", ["« Oui. »", "Non.", "« Oui ? » dit-il"]),
        ("zh", "你好。我很好！“是吗？”他说。", ["你好。", "我很好！", "“是吗？”", "他说。"]),
        ("ja", "「はい。」と言った。1. 彼。", ["「はい。」と言った。", "1. 彼。"]),
        ("el", "Πού; Εδώ", ["Πού;", "Εδώ"]),
        ("en", "One.\u00a0Two.\u3000Three\t!  Four", ["One.", "Two.", "Three\t!", "Four"]),
        ("en", "a. " * 3 + "!" * 80, ["a. a. a. " + "!" * 80]),
        ("en", "no end", ["no end"]),
        ("en", ".", ["."]),
        ("en", " \t ", []),
        ("en", "", []),
    ],
)  # fmt: skip
def test_sentences(
    language: str, text: str, sentences: list[str], graphs: Graphs
) -> None:
    assert graphs[language].split(text) == sentences


some_text = st.text(
    st.one_of(st.sampled_from(" .!?。\"'」»aB3…—"), st.characters()), max_size=60
).map(lambda text: text.replace("\n", " ").replace("\r", " "))


@settings(max_examples=200, deadline=None)
@given(text=some_text)
def test_of_any_text_nothing_but_white_space_is_lost(graphs: Graphs, text: str) -> None:
    sentences = graphs["de"].split(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(one == one.strip() != "" for one in sentences)


def test_what_reads_networks_of_sentences_finds_its_settings(graphs: Graphs) -> None:
    session = graphs["en"].session
    assert [port.name for port in session.get_inputs()] == ["units", "features"]
    facts = session.get_modelmeta().custom_metadata_map
    config = json.loads(facts["config"])
    assert config["feat_funcs"] == []
    ids = json.loads(facts["vocab"])["_unit2id"]
    assert (ids["<PAD>"], ids["<UNK>"]) == (0, 1)
    # a letter without case is not listed, one in a word that the rules know has an id of its own
    assert "ㄱ" not in ids
    assert ids["d"] != ids["r"] != ids["q"]


def test_the_same_rules_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_rules(tmp_path / name, "pl")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
