"""The checks of a certificate, on a form that is made up: what passes, and what is found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import random_models
from weft.console import stages
from weft.ship.certificate.checks import check_ids, check_logits
from weft.ship.certificate.reference import Reference
from weft.ship.certificate.trial import Trial, trial_of
from weft.ship.exporting import tolerance_of
from weft.ship.opened import Floats, Opened, Row
from weft.ship.source import open_source
from weft.ship.tensors import Array
from weft.ship.tokenizers.ids import IdMap
from weft.ship.written import Written

ROW = Row((2, 5, 6))


class Same(Reference):
    """Logits that are 0 but for one."""

    def logits(self, row: Row) -> Floats:
        logits = np.zeros((len(row.ids), 10), np.float32)
        logits[:, 7] = 1
        return logits


class Form(Opened):
    """A form with the ids of `texts` and with logits that are off by `offset`."""

    def __init__(self, texts: Mapping[str, list[int]], offset: float = 0) -> None:
        self.texts = texts
        self.offset = offset

    @property
    def versions(self) -> Mapping[str, str]:
        return {}

    def arrays(self) -> Iterator[tuple[str, Array]]:
        yield from ()

    def encode(self, text: str) -> list[int]:
        return self.texts[text]

    def reads_otherwise(self, text: str) -> str:
        return "long numbers" if "1234" in text else ""

    def decode(self, ids: Sequence[int]) -> str:
        return "text"

    def logits(self, row: Row) -> Floats:
        return Same().logits(row) + np.float32(self.offset)


def written(**options: Any) -> Written:
    ids = np.arange(10)
    return Written("made up", (), IdMap(ids, ids, 10), before=(2,), **options)


def trial(texts: Mapping[str, Sequence[int]]) -> Trial:
    return Trial(texts, {(9,): "text"}, (ROW,), (), (), (), ())


def test_ids_differ_only_where_the_program_is_known_to_read_otherwise() -> None:
    texts = {"a 1234": [5], "a 1234 b": [5, 6], "a": [7]}
    form = Form({"a 1234": [2, 8], "a 1234 b": [2, 5, 6], "a": [2, 7]})
    check = check_ids(written(), form, trial(texts))
    assert (check.compared, check.equal, check.is_passed) == (4, 3, True)
    assert check.about == "1 differ for long numbers"
    form = Form({"a": [2, 8]})
    check = check_ids(written(), form, trial({"a": [7]}))
    assert not check.is_passed
    assert "'a' has the ids [2, 8], not [2, 7]" in check.first


@pytest.mark.parametrize("offset", [0.5, float("nan"), float("inf")])
def test_logits_that_are_only_measured_are_numbers(offset: float) -> None:
    form = written(approximate="it rounds")
    assert not form.is_exact
    opened = Form({}, offset)
    check = check_logits(form, opened, trial({}), Same(), str, tolerance=None)
    assert check.is_passed == (offset == 0.5)
    assert check.about.startswith("it rounds, the same best token at")
    if offset == 0.5:
        assert check.largest == 0.5


def test_ids_in_the_numbers_of_a_form_are_numbers_of_pythons() -> None:
    row = written().to_target(Row((2, 5), (2, 6)))
    kinds = {type(number) for number in (*row.ids, *row.tgt_in)}
    assert kinds == {int}


@pytest.mark.parametrize(
    ("positions", "max_len", "wanted"),
    [("rotary", 2048, 2e-4), ("rotary", 64, 1e-4), ("learned", 2048, 1e-4)],
)
def test_logits_far_out_are_rounded_more_where_angles_are_computed(
    positions: str, max_len: int, wanted: float, tmp_path: Path
) -> None:
    settings = (f'model.positions="{positions}"', f"model.max_len={max_len}")
    folder = random_models.write_folder("causal-lm", tmp_path / "model", *settings)
    dev = random_models.write_dev("language-modelling", tmp_path)
    source = open_source(folder)
    trial = trial_of(source, source.task.read([dev]))
    assert tolerance_of(source, written(), trial) == pytest.approx(wanted)


def test_it_is_shown_how_many_rows_were_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[Any, ...]] = []
    monkeypatch.setattr(stages, "count", lambda *said: told.append(said[:3]))
    three = replace(trial({}), rows=(ROW, ROW), probes=(ROW,))
    check_logits(written(), Form({}), three, Same(), str, tolerance=1e-4)
    assert told == [(1, "rows", 3), (2, "rows", 3), (3, "rows", 3)]
