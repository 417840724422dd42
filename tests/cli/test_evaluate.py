"""weft evaluate: sacreBLEU's own values, contamination said, exit codes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import weft

Command = Callable[..., Any]
NEW = [
    ("horse wants horse", "Pferd will Pferd und Hase"),
    ("mouse", "Maus Maus Maus Maus"),
]


def write(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_bytes("".join(f"{a}\t{b}\n" for a, b in pairs).encode())
    return path


def trained_on(
    folder: Path, write_pairs: Callable[[int], str]
) -> list[tuple[str, str]]:
    """The pairs of the training text that are in training."""
    from weft.data.corpus import read_pairs
    from weft.data.overlap import TextHashes
    from weft.folder.model_folder import RunFolder

    text = read_pairs(write_pairs(216))
    hashes = TextHashes.load(RunFolder(folder).train_hashes)
    pairs = list(zip(text.src, text.tgt, strict=True))
    return [pairs[i] for i in hashes.shared(pairs)]


def test_values_are_sacrebleus(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    data = write(tmp_path / "test.tsv", NEW)
    ended = command("evaluate", tiny_folder, data, "--json")
    assert (ended.code, ended.messages) == (0, [])
    (line,) = ended.lines
    found = json.loads(line)
    hypotheses = [
        p.text for p in weft.load(tiny_folder).translate([src for src, _ in NEW])
    ]
    references = [[tgt for _, tgt in NEW]]
    bleu, chrf = BLEU(tokenize="13a"), CHRF()
    assert found["bleu"] == bleu.corpus_score(hypotheses, references).score
    assert found["chrf"] == chrf.corpus_score(hypotheses, references).score
    assert found["bleu_signature"] == str(bleu.get_signature())
    assert found["num_sentences"] == 2


def test_for_a_person(command: Command, tiny_folder: Path, tmp_path: Path) -> None:
    ended = command(
        "evaluate", tiny_folder, write(tmp_path / "test.tsv", NEW), "--beam-size", 1
    )
    assert (ended.code, ended.messages) == (0, [])
    assert [line.split(" ")[0] for line in ended.lines[:4]] == [
        "BLEU",
        "BLEU",
        "chrF",
        "2",
    ]
    assert "13a" in ended.lines[0]
    assert not any("contaminated" in line for line in ended.lines)


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--mbr", 4, "--utility", "bleu"], {"mbr": 4, "utility": "bleu"}),
        (
            ["--length-penalty", 0, "--beam-size", 3],
            {"length_penalty": 0.0, "beam_size": 3},
        ),
        (["--ensemble", "itself"], {}),
    ],
    ids=str,
)
def test_scores_are_of_what_is_translated_so(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    options: list[object],
    settings: dict[str, Any],
) -> None:
    data = write(tmp_path / "test.tsv", NEW)
    ended = command(
        "evaluate",
        tiny_folder,
        data,
        "--json",
        *(tiny_folder if o == "itself" else o for o in options),
    )
    assert (ended.code, ended.messages) == (0, [])
    hypotheses = [
        p.text
        for p in weft.load(tiny_folder).translate([src for src, _ in NEW], **settings)
    ]
    expected = CHRF().corpus_score(hypotheses, [[tgt for _, tgt in NEW]]).score
    assert json.loads(ended.lines[0])["chrf"] == expected


def test_two_aligned_files(command: Command, tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.en").write_bytes(b"mouse\n\nhorse\n")
    (tmp_path / "t.de").write_bytes(b"Maus\n\nPferd\n")
    ended = command(
        "evaluate", tiny_folder, f"{tmp_path / 't.en'},{tmp_path / 't.de'}", "--json"
    )
    found = json.loads(ended.lines[0])
    assert found["num_sentences"] == 2
    assert any(note.startswith("left out: 1 pair ") for note in found["notes"])


def test_what_was_cut_is_counted(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = write(tmp_path / "test.tsv", [("x" * 300, "Maus"), NEW[0], NEW[1]])
    source = (
        "1 of 3 sources have a sentence longer than the model reads, whose end was not translated; "
        "make it several sentences, or train with a larger data.max_len"
    )
    output = (
        "3 of 3 translations came to no end and were cut at their limit; "
        "weft train --from with a larger decoding.max_len_ratio or max_len_extra raises it"
    )

    def notes() -> list[str]:
        asked = ("evaluate", tiny_folder, data, "--beam-size", 1)
        found: list[str] = json.loads(command(*asked, "--json").lines[0])["notes"]
        printed = [line for line in command(*asked).lines if line.startswith("note: ")]
        assert printed == [f"note: {note}" for note in found]
        return [note for note in found if " of 3 " in note]

    assert notes() == [source]
    monkeypatch.setattr("weft.predict.rows.most_tokens", lambda *_: 1)
    assert notes() == [source, output]
    # no larger limit helps what repeats itself
    monkeypatch.setattr("weft.predict.translator.repeats", lambda ids: True)
    again = (
        "3 of 3 translations say the same again and again; "
        "train longer or on more text; until then weft translate --no-repeat-ngrams 3"
    )
    assert notes() == [source, again]


@pytest.mark.parametrize(("side", "name"), [(0, "sources"), (1, "targets")])
def test_a_table_of_labels_is_doubted(
    command: Command, tiny_folder: Path, tmp_path: Path, side: int, name: str
) -> None:
    rows = [(f"{NEW[0][0]} {i}", str(i % 2)) for i in range(30)]
    data = write(tmp_path / "labels.tsv", [row if side else row[::-1] for row in rows])
    notes = json.loads(command("evaluate", tiny_folder, data, "--json").lines[0])[
        "notes"
    ]
    assert [note for note in notes if "labels" in note] == [
        f"30 {name} are but 2 different texts: are they labels?"
    ]


def test_contamination_is_marked(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    write_pairs: Callable[[int], str],
) -> None:
    """Also where case, spaces and punctuation differ."""
    (src, tgt), *_ = trained_on(tiny_folder, write_pairs)
    data = write(
        tmp_path / "test.tsv", [*NEW, (src.upper().replace(".", " !"), tgt.lower())]
    )
    ended = command("evaluate", tiny_folder, data)
    assert ended.code == 0
    (note,) = [line for line in ended.lines if "contaminated" in line]
    assert "1 of 3 pairs" in note
    assert ended.messages == [f"weft: {note}"]
    assert f"{data}:3" in note


def test_a_pipe_hears_at_once_what_is_done_and_before_the_work_what_was_trained_on(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.console.stages.SLOW", 0.0)
    data = write(
        tmp_path / "test.tsv", [*NEW, *trained_on(tiny_folder, write_pairs)[:1]]
    )
    ended = command("evaluate", tiny_folder, data)
    lines = ended.err.split("\n")
    assert lines[0].startswith("loading the model ...")
    (warning,) = [
        i for i, line in enumerate(lines) if "contaminated: 1 of 3 pairs" in line
    ]
    assert any(line.startswith("scoring 3 pairs ...") for line in lines[warning:])


def test_held_out_pairs_are_not_contaminated(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    write_pairs: Callable[[int], str],
) -> None:
    seen = set(trained_on(tiny_folder, write_pairs))
    lines = Path(write_pairs(216)).read_bytes().decode().split("\n")[:-1]
    held = [
        (a, b) for a, b in (line.split("\t") for line in lines) if (a, b) not in seen
    ]
    assert len(held) == 40
    ended = command(
        "evaluate", tiny_folder, write(tmp_path / "t.tsv", held[:8]), "--beam-size", 1
    )
    assert not any("contaminated" in line for line in ended.lines)


def test_without_hashes_it_says_so(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(
        tiny_folder, tmp_path / "m", ignore=shutil.ignore_patterns("run")
    )
    ended = command(
        "evaluate", folder, write(tmp_path / "t.tsv", NEW), "--beam-size", 1
    )
    assert any("not checked for overlap with training" in line for line in ended.lines)


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, 3), (b"", 3), (b"a\tb\n\xff\tc\n", 3), (b"no tab here\n", 3)],
    ids=str,
)
def test_wrong_data(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    content: bytes | None,
    code: int,
) -> None:
    path = tmp_path / "t.tsv"
    if content is not None:
        path.write_bytes(content)
    ended = command("evaluate", tiny_folder, path)
    assert (ended.code, ended.out) == (code, b"")
    assert len(ended.messages) == 1
    assert str(path) in ended.err


def test_a_folder_that_is_no_model(command: Command, tmp_path: Path) -> None:
    ended = command("evaluate", tmp_path / "none", write(tmp_path / "t.tsv", NEW))
    assert (ended.code, ended.out) == (5, b"")
    assert len(ended.messages) == 1


def test_without_text_what_the_run_held_out_is_scored(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command("evaluate", tiny_folder, "--json")
    assert (ended.code, ended.messages) == (0, [])
    found = json.loads(ended.lines[0])
    verdict = json.loads((tiny_folder / "run" / "verdict.json").read_bytes())
    assert found["bleu"] == verdict["test"]["bleu"]
    assert found["notes"][0] == "no text was given: this is the run's own test text"
    alone = shutil.copytree(
        tiny_folder, tmp_path / "m", ignore=shutil.ignore_patterns("run")
    )
    ended = command("evaluate", alone)
    assert (ended.code, ended.out, len(ended.messages)) == (2, b"", 1)
    assert (
        "holds no run whose held-out text could be taken; give DATA"
        in ended.messages[0]
    )


def test_references_are_compared_in_the_form_that_the_model_writes(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    decomposed: Callable[[int], str],
) -> None:
    """`ö` is one code point or two, and looks the same."""
    composed, other = (
        json.loads(command("evaluate", tiny_folder, data, "--json").lines[0])
        for data in (write_pairs(90), decomposed(90))
    )
    lines = Path(write_pairs(90)).read_text("utf-8").split("\n")
    changed = sum("hört" in line for line in lines)
    assert not any("brought to" in note for note in composed["notes"])
    (note,) = [note for note in other["notes"] if "brought to" in note]
    assert note == (
        f"{changed} of 90 references were brought to NFC, as the translations are written, "
        "before they were compared"
    )
    for key in ("bleu", "chrf", "bleu_lc", "references_sha256"):
        assert composed[key] == other[key]


def glossary_and_pairs(folder: Path) -> tuple[Path, Path]:
    """A glossary for the demo's model, and pairs of which two have a term each."""
    terms = folder / "terms.tsv"
    terms.write_text("bicycle\t单车\nteacher\t教员\n", "utf-8")
    pairs = [
        ("My brother bought a new bicycle yesterday.", "我弟弟昨天买了一辆新单车。"),
        ("The teacher reads a book in the garden.", "教员在花园里看书。"),
        ("The teacher bought a book.", "他买了一本书。"),
        ("Anna drinks tea in the library.", "安娜在图书馆喝茶。"),
    ]
    return terms, write(folder / "test.tsv", pairs)


def test_a_glossarys_terms_are_judged_without_and_with_it(
    command: Command, tmp_path: Path
) -> None:
    terms, data = glossary_and_pairs(tmp_path)
    ended = command("evaluate", weft.DEMO, data, "--glossary", terms, "--json")
    assert ended.code == 0
    found = json.loads(ended.lines[0])
    free, bound = (found["terms"][name] for name in ("without", "with"))
    for each in (free, bound):
        assert each["counts"]["num_terms"] == each["counts"]["num_sentences"] == 2
        assert each["counts"]["not_in_reference"] == 1
    assert (free["exact_match"], bound["exact_match"]) == (0.0, 1.0)
    assert bound["bleu"] > free["bleu"]
    assert found["computed"]["glossary"]
    plain = command("evaluate", weft.DEMO, data, "--json")
    assert "terms" not in json.loads(plain.lines[0])
    assert found["bleu"] > json.loads(plain.lines[0])["bleu"]


def test_a_table_of_terms_for_a_person(command: Command, tmp_path: Path) -> None:
    terms, data = glossary_and_pairs(tmp_path)
    ended = command("evaluate", weft.DEMO, data, "--glossary", terms)
    lines = [line.strip() for line in ended.lines]
    assert "terms 2 of 3 in the sources are in the references and count" in lines
    assert lines[lines.index("without       with") + 1].startswith("as often as it")
    (exact,) = [line.split()[2:] for line in lines if line.startswith("exact match")]
    assert exact == ["0.0", "%", "100.0", "%"]
    assert not any("not right" in line for line in lines)
    terms.write_text(
        "source\ttarget\tavoid\nbicycle\t单车\nteacher\t教员\nbook\t书籍\t书\ntea\t\n",
        "utf-8",
    )
    write(
        data,
        [("The teacher bought a bicycle and drinks tea.", "教员买了单车, 喝tea。")]
        * 11,
    )
    ended = command("evaluate", weft.DEMO, data, "--glossary", terms, "--json")
    found = json.loads(ended.lines[0])["terms"]
    faults = found["without"]["faults"]
    where = f"{data}:1"
    missing = {"where": where, "status": "missing", "source": "tea", "words": ["tea"]}
    assert missing in faults
    assert len(faults) == 33 - found["without"]["counts"]["right"]


def test_only_a_beam_of_a_translator_has_a_glossary(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    terms, data = glossary_and_pairs(tmp_path)
    ended = command("evaluate", tiny_folder, data, "--glossary", terms, "--mbr", 2)
    assert (ended.code, len(ended.messages)) == (2, 1)
    assert "a glossary is for a beam" in ended.err
