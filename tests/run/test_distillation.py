"""weft distill: a teacher's translations become a student, whatever stops it on the way."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.data.corpus import SourceText
from weft.engine import bindings
from weft.errors import DataError, FolderError, UsageError, WeftError
from weft.folder import durable
from weft.folder.model_folder import CARD, WEIGHTS, RunFolder
from weft.kernels import native, torch_machine
from weft.predict.prediction import Prediction
from weft.predict.translator import Translator
from weft.recipes.file import load_recipe
from weft.run.distillation import distill
from weft.run.record import Verdict, read_verdict
from weft.run.request import Request
from weft.ship.quantization import quantize
from weft.training.log import Log
from weft.training.trainer import Trainer

Distill = Callable[..., Verdict]
STEPS = (
    "training.max_steps=12",
    "training.save_every=4",
    "training.eval_every=6",
    "training.num_samples=1",
)


class KilledError(BaseException):
    """Ends a start at once, as nothing that is caught does."""


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Else each start measures anew how many threads are worth while."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch_machine, "_useful_threads", lambda device: 1)
        yield


@pytest.fixture(scope="module")
def text(write_pairs: Callable[[int], str]) -> str:
    return write_pairs(216)


@pytest.fixture(scope="module")
def call(tiny_folder: Path, text: str, tiny_settings: tuple[str, ...]) -> Distill:
    """Distill the tiny teacher into a student of 12 steps, unless told otherwise."""

    def start(
        out: Path,
        *settings: str,
        teacher: Path = tiny_folder,
        data: Sequence[str] = (text,),
        beam_size: int | None = 2,
        recipe: str | None = None,
        progress: Any = None,
        **asked: Any,
    ) -> Verdict:
        values = (
            (*([] if recipe else tiny_settings), *STEPS, *settings)
            if recipe != "classify-fast"
            else ()
        )
        request = Request(load_recipe(recipe, values), out, **asked)
        shown = {"progress": progress} if progress else {}
        return distill(
            request,
            teacher,
            data,
            beam_size,
            Log(RunFolder(out).metrics, quiet=True),
            **shown,
        )

    return start


@pytest.fixture(scope="module")
def student(call: Distill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that nothing disturbed. Tests must not change it; copy it first."""
    out = tmp_path_factory.mktemp("student") / "out"
    assert call(out).outcome == "done"
    return out


@pytest.fixture
def copied(student: Path, tmp_path: Path) -> Path:
    shutil.copytree(student, tmp_path / "out")
    return tmp_path / "out"


def stopping(after: int) -> Callable[[int, int], Any]:
    """A bar that kills its start when so many sentences are written."""

    @contextmanager
    def bar(count: int, done: int) -> Iterator[Callable[[], None]]:
        numbers = iter(range(done + 1, count + 1))

        def advance() -> None:
            if next(numbers) == after:
                raise KilledError

        yield advance

    return bar


def weights(out: Path) -> bytes:
    return (out / WEIGHTS).read_bytes()


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


# What a student is


def test_the_student_learns_what_the_teacher_wrote(
    student: Path, tiny_folder: Path, text: str
) -> None:
    files = RunFolder(student)
    sources = [line.split("\t")[0] for line in lines(Path(text))]
    teacher = weft.load(tiny_folder).translate(sources, beam_size=2)
    assert lines(files.distilled_src) == sources
    assert lines(files.distilled_tgt) == [found.text for found in teacher]
    assert len(weft.load(student).translate("cat sees dog.")) == 1
    recipe = durable.read_json(files.recipe)
    assert (
        recipe["recipe"]["data"]["src_lang"],
        recipe["recipe"]["data"]["tgt_lang"],
    ) == ("en", "de")
    # a test set would be the teacher's too
    assert sorted(recipe["texts"]) == ["dev", "train"]


def test_manifest_and_card_name_the_teacher(student: Path, tiny_folder: Path) -> None:
    sha256 = durable.sha256_of(tiny_folder / durable.MANIFEST)
    facts = durable.read_manifest(student)["teacher"]
    assert (facts["teacher"], facts["beam_size"], facts["sentences"]) == (
        sha256,
        2,
        216,
    )
    card = (student / CARD).read_text("utf-8")
    assert (
        f"(its manifest's sha256 {sha256}) by beam search, beam size 2, of 216 source sentences"
        in card
    )
    assert (
        f"- the target side was written by the teacher in {tiny_folder.name}, beam size 2\n"
        in card
    )
    assert (
        "- what is held out for dev has the teacher's translations as references\n"
        in card
    )


def test_plain_text_will_do(
    call: Distill, student: Path, text: str, tmp_path: Path
) -> None:
    plain = tmp_path / "sentences.en"
    plain.write_text(
        "\n\n".join(line.split("\t")[0] for line in lines(Path(text))) + "\n", "utf-8"
    )
    verdict = call(tmp_path / "out", data=[str(plain)])
    assert weights(tmp_path / "out") == weights(student)
    assert "left out: 215 lines of the source (empty line)" in verdict.notes


def test_a_teacher_in_int8(
    call: Distill, tiny_folder: Path, write_pairs: Callable[[int], str], tmp_path: Path
) -> None:
    try:
        bindings.library()
    except native.UnavailableError as error:
        pytest.skip(f"no engine here: {error}")
    teacher, pairs, files = (
        tmp_path / "int8",
        write_pairs(31),
        RunFolder(tmp_path / "out"),
    )
    quantize(
        tiny_folder,
        [pairs],
        teacher,
        max_bleu_loss=100,
    )
    call(tmp_path / "out", teacher=teacher, data=[pairs])
    found = weft.load(teacher).translate(
        [line.split("\t")[0] for line in lines(Path(pairs))], beam_size=2
    )
    assert [json.loads(line)["text"] for line in lines(files.translations)] == [
        p.text for p in found
    ]
    assert durable.read_json(files.teacher)["teacher"] == durable.sha256_of(
        teacher / durable.MANIFEST
    )


def test_dev_and_test_of_ones_own(call: Distill, text: str, tmp_path: Path) -> None:
    others = tmp_path / "others.en-de.tsv"
    others.write_text("a horse\tein Pferd\ntwo mice\tzwei Mäuse\n", "utf-8")
    verdict = call(
        tmp_path / "out", dev=str(others), test=str(others), allow_bad_data=True
    )
    assert verdict.test["num_sentences"] == 2
    assert not [note for note in verdict.notes if "as references" in note]


# Whatever stops it


@pytest.mark.parametrize("after", [1, 100])
def test_stopped_in_translating_it_goes_on_to_the_same_student(
    call: Distill,
    student: Path,
    tmp_path: Path,
    after: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, files = tmp_path / "out", RunFolder(tmp_path / "out")
    with pytest.raises(KilledError):
        call(out, progress=stopping(after))
    assert durable.read_json(files.verdict)["stage"] == "translating"
    with pytest.raises(FolderError, match="run the same `weft distill` again"):
        weft.load(out)
    asked: list[str] = []
    translate = Translator.translate_stream

    def watched(self: Translator, texts: Any, **settings: Any) -> Iterator[Prediction]:
        asked.extend(texts := list(texts))
        return translate(self, texts, **settings)

    monkeypatch.setattr(Translator, "translate_stream", watched)
    call(out)
    assert len(asked) == 216 - after
    assert weights(out) == weights(student)
    assert (
        files.translations.read_bytes() == RunFolder(student).translations.read_bytes()
    )


KILLED = """
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
from weft.run.distillation import distill
from weft.recipes.file import load_recipe
from weft.run.request import Request

@contextmanager
def bar(count, done):
    left = iter(range(200))
    yield lambda: next(left, None) is None and os.kill(os.getpid(), signal.SIGKILL)

out, teacher, data, *settings = sys.argv[1:]
distill(Request(load_recipe(None, settings), Path(out)), Path(teacher), [data], 2, progress=bar)
"""


@pytest.mark.long
def test_killed_with_a_line_half_written_it_goes_on_to_the_same_student(
    call: Distill,
    student: Path,
    tiny_folder: Path,
    text: str,
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
) -> None:
    out, environment = tmp_path / "out", {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-c",
        KILLED,
        str(out),
        str(tiny_folder),
        text,
        *tiny_settings,
        *STEPS,
    ]
    done = subprocess.run(
        command, capture_output=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    partial = RunFolder(out).distilled / "translations.jsonl.partial"
    assert 0 < len(lines(partial)) < 200
    with partial.open("ab") as file:  # as a disk may have it
        file.write(b'{"text": "Kat')
    verdict = read_verdict(RunFolder(out).verdict)
    assert verdict is not None
    assert (verdict.outcome, verdict.stage) == ("running", "translating")
    call(out)
    assert weights(out) == weights(student)


def test_stopped_in_training_it_goes_on_to_the_same_student(
    call: Distill, student: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_step = Trainer._take_step

    def taking(self: Any) -> None:
        if self.progress.step + 1 == 7:
            raise KilledError
        take_step(self)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_take_step", taking)
        with pytest.raises(KilledError):
            call(tmp_path / "out")
    monkeypatch.delattr(Translator, "translate_stream")  # dev is scored without it
    verdict = call(tmp_path / "out")
    assert verdict.step == 12
    assert weights(tmp_path / "out") == weights(student)


def test_a_finished_student_is_left_as_it_is(call: Distill, copied: Path) -> None:
    before = {
        path: path.stat().st_mtime_ns
        for path in (copied / WEIGHTS, RunFolder(copied).verdict)
    }
    call(copied)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert call(copied, "training.max_steps=13").step == 13


# What is refused


def test_another_teacher_text_or_beam_size_is_refused_with_the_difference(
    call: Distill,
    copied: Path,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_folder, other)
    manifest = durable.read_json(other / durable.MANIFEST)
    durable.write_json(other / durable.MANIFEST, {**manifest, "steps": 121})
    old, new = (
        durable.sha256_of(folder / durable.MANIFEST)[:16]
        for folder in (tiny_folder, other)
    )
    before = weights(copied)
    for asked, shown in (
        (
            {"teacher": other},
            f"the teacher (sha256 of its manifest) was {old}, is {new}; continue",
        ),
        ({"beam_size": 3}, "the beam size was 2, is 3; continue"),
        ({"beam_size": None}, "the beam size was 2, is 5; continue"),
        (
            {"data": [write_pairs(215)]},
            "the number of sentences was 216, is 215; continue",
        ),
    ):
        with pytest.raises(UsageError) as caught:
            call(copied, **asked)
        assert shown in str(caught.value)
        assert caught.value.exit_code == 2
    assert weights(copied) == before
    renamed = tmp_path / "renamed"
    shutil.copytree(tiny_folder, renamed)
    assert call(copied, teacher=renamed).outcome == "done"  # the same, wherever it lies


def test_translations_in_the_making_bind_once_there_are_some(
    call: Distill, student: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KilledError):
        call(out, beam_size=1, progress=stopping(1))
    with pytest.raises(UsageError, match="the beam size was 1, is 2"):
        call(out)
    partial = RunFolder(out).distilled / "translations.jsonl.partial"
    partial.write_bytes(b"")
    call(out)
    assert weights(out) == weights(student)


def test_training_changes_are_refused_as_ever(call: Distill, copied: Path) -> None:
    with pytest.raises(UsageError, match=r"training\.seed was 1, is 2"):
        call(copied, "training.seed=2")


def test_a_student_is_not_trained_on_without_its_teacher(
    copied: Path, tiny_settings: tuple[str, ...]
) -> None:
    files = RunFolder(copied)
    settings = (
        *tiny_settings,
        *STEPS,
        "data.src_lang=en",
        "data.tgt_lang=de",
        "data.test_size=0",
    )
    with pytest.raises(
        UsageError,
        match=r"the teacher was [0-9a-f]{64}, is none; continue with the same",
    ):
        weft.train(
            out=copied,
            train=f"{files.distilled_src},{files.distilled_tgt}",
            settings=settings,
            quiet=True,
        )


def test_what_a_teacher_has_begun_is_not_trained_on_otherwise(
    copied: Path, tmp_path: Path
) -> None:
    out = tmp_path / "begun"
    shutil.copytree(RunFolder(copied).distilled, RunFolder(out).distilled)
    with pytest.raises(
        UsageError,
        match="holds a teacher's translations; continue with weft distill, or give another",
    ):
        weft.train(
            out=out,
            train=f"{RunFolder(copied).distilled_src},{RunFolder(copied).distilled_tgt}",
            quiet=True,
        )
    assert RunFolder(out).translations.is_file()


def test_a_folder_of_another_run_is_refused(
    call: Distill, tiny_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_folder, tmp_path / "out")
    with pytest.raises(
        UsageError, match="holds a run that has no teacher; give another --output"
    ):
        call(tmp_path / "out")
    assert not RunFolder(tmp_path / "out").distilled.exists()
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").touch()
    with pytest.raises(UsageError, match="is not empty and holds no run"):
        call(tmp_path / "letters")


def test_only_a_translator_teaches(call: Distill, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a cat\na dog\na bird\n" * 20, "utf-8")
    settings = (
        "task=language-modelling",
        "data.documents=line",
        "data.dev_share=0.0",
        "model.d_model=16",
        "model.d_ff=24",
        "model.num_heads=2",
        "training.max_steps=1",
        "training.precision=float32",
        "training.kernels=torch",
        "training.threads=1",
    )
    weft.train(
        out=tmp_path / "lm",
        train=str(tmp_path / "text.txt"),
        settings=settings,
        quiet=True,
    )
    with pytest.raises(
        UsageError,
        match="holds a model for language-modelling, which cannot teach a translator",
    ):
        call(tmp_path / "out", teacher=tmp_path / "lm")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"recipe": "classify-fast"}, UsageError, "the recipe is for classification"),
        (
            {"recipe": "demo"},
            UsageError,
            r"brings its own text \(everyday\); add --set data.builtin=none",
        ),
        (
            {"recipe": "en-zh"},
            UsageError,
            "data.tgt_lang is zh, and the teacher in .* add --set data.tgt_lang=de",
        ),
        ({"dev": "no-such.tsv"}, DataError, "no-such.tsv: no such file"),
        ({"data": ["no-such.tsv"]}, DataError, "no-such.tsv: no such file"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_before_anything_is_translated(
    call: Distill,
    tmp_path: Path,
    asked: dict[str, Any],
    error: type[WeftError],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        call(tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()


def test_torchrun_is_refused(
    call: Distill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="weft distill is for one process"):
        call(tmp_path / "out")


# What is left out


def flagging(
    flags: dict[int, dict[str, Any]] | None,
) -> Callable[..., Iterator[Prediction]]:
    """The translator with faults at these places; with None every translation is empty."""
    translate = Translator.translate_stream

    def stream(self: Translator, texts: Any, **settings: Any) -> Iterator[Prediction]:
        for i, found in enumerate(translate(self, texts, **settings)):
            yield replace(
                found, **({"text": " "} if flags is None else flags.get(i, {}))
            )

    return stream


def test_flagged_translations_are_left_out_and_counted(
    call: Distill, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {
        2: {"source_cut": True},
        3: {"repetition": True},
        5: {"text": ""},
        7: {"output_limit": "decoding.max_len_ratio"},
    }
    monkeypatch.setattr(Translator, "translate_stream", flagging(flags))
    verdict = call(tmp_path / "out")
    files, sources = (
        RunFolder(tmp_path / "out"),
        [line.split("\t")[0] for line in lines(Path(text))],
    )
    kept = [source for i, source in enumerate(sources) if i not in flags]
    assert lines(files.distilled_src) == kept
    assert len(lines(files.distilled_tgt)) == len(kept) == 212
    written = [json.loads(line) for line in lines(files.translations)]
    assert [i for i, found in enumerate(written) if found["truncated"]] == [2, 7]
    card = (tmp_path / "out" / CARD).read_text("utf-8")
    for note in (
        "left out: 1 of 216 sentences (its translation is empty)",
        "left out: 1 of 216 sentences (its translation repeats itself)",
        "left out: 2 of 216 sentences (its translation is cut)",
    ):
        assert note in verdict.notes
        assert f"- {note}\n" in card


def test_half_a_character_of_a_source_is_written_as_the_tokenizer_reads_it(
    call: Distill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UTF-8 cannot hold it; no file is read that has one, but a reader of JSON may give it."""
    odd = ["the cat \ud800 sees", "\udfff", *(f"the dog {n}" for n in range(2, 216))]
    monkeypatch.setattr(
        "weft.run.distillation.read_sources", lambda *_: SourceText(odd, {}, [])
    )
    whole = {"output_limit": None, "repetition": False}
    flags = {i: {"text": f"der Hund {i}", **whole} for i in range(len(odd))}
    monkeypatch.setattr(Translator, "translate_stream", flagging(flags))
    assert call(tmp_path / "out").outcome == "done"
    written = lines(RunFolder(tmp_path / "out").distilled_src)
    assert written == ["the cat \ufffd sees", "\ufffd", *odd[2:]]


def test_with_nothing_left_to_learn_it_ends(
    call: Distill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "translate_stream", flagging(None))
    with pytest.raises(
        DataError,
        match=r"nothing to train on: left out: 216 of 216 sentences \(its translation is empty",
    ):
        call(tmp_path / "out")
    verdict = read_verdict(RunFolder(tmp_path / "out").verdict)
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == ("failed", 3)


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"[1\n"])
def test_damaged_translations_are_named(
    call: Distill, copied: Path, student: Path, damage: bytes
) -> None:
    translations = RunFolder(copied).translations
    content = translations.read_bytes().split(b"\n", 1)[1]
    translations.write_bytes(damage + content)
    with pytest.raises(
        FolderError, match=r"translations\.jsonl.* damaged, remove|:1: damaged; remove"
    ):
        call(copied, "training.max_steps=13")
    translations.unlink()
    call(copied, "training.max_steps=13")
    assert translations.read_bytes() == RunFolder(student).translations.read_bytes()
