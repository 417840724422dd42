"""What a run leaves open, chosen by its text and its time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.folder import durable
from weft.folder.model_folder import RunFolder
from weft.recipes.file import load_recipe
from weft.run import sizing
from weft.run.request import Request
from weft.run.sizing import (
    DROPOUT_OF_FEW,
    FEW_PAIRS,
    SIZES,
    choose_sizing,
    sizes,
    usual_minutes,
)


def asked(out: Path, *settings: str, name: str | None = None, **more: Any) -> Request:
    return Request.by_name(name, settings, out=out, **more)


def test_more_computing_is_worth_a_wider_model_and_few_pairs_more_dropout() -> None:
    widths = [size.d_model for size in SIZES]
    assert widths == sorted(set(widths))
    for size in SIZES:
        values = sizes(FEW_PAIRS, size.least_flop)
        assert values["model.d_model"] == size.d_model
        assert values["model.d_ff"] == 4 * size.d_model
        assert "model.dropout" not in values
    few = sizes(FEW_PAIRS - 1, 0.0)
    assert few["model.d_model"] == widths[0]
    assert few["model.dropout"] == DROPOUT_OF_FEW


def test_the_usual_time_grows_with_the_text_up_to_two_hours() -> None:
    minutes = [
        usual_minutes(pairs) for pairs in (0, 100, 5_000, 49_000, 440_000, 10**8)
    ]
    assert minutes == sorted(minutes)
    assert minutes[0] == 10
    assert minutes[2] == 20
    assert minutes[-1] == 120


def test_a_person_s_settings_stand_and_a_named_recipe_leaves_nothing_open(
    tmp_path: Path,
) -> None:
    chosen = choose_sizing(asked(tmp_path), 5_000, 1)
    assert chosen.minutes == 20
    assert chosen.notes == ("20 minutes for 5,000 pairs; --minutes says otherwise",)
    assert chosen.values["model.d_model"] == SIZES[1].d_model
    own = asked(tmp_path, "model.d_model=96", "batches.batch_size=8")
    values = choose_sizing(own, 5_000, 1).values
    assert [*values] == ["model.dropout"]
    heads = asked(tmp_path, "model.num_key_value_heads=4")
    of_width = SIZES[0].values().keys()
    assert not of_width & choose_sizing(heads, 5_000, 1).values.keys()
    noam = choose_sizing(asked(tmp_path, "training.schedule=noam"), 5_000, 1)
    assert "training.learning_rate" not in noam.values
    assert noam.values["model.d_model"] == SIZES[1].d_model
    recurrent = asked(tmp_path, "model.kind=recurrent")
    assert choose_sizing(recurrent, 5_000, 1) == sizing.NOTHING
    steps = choose_sizing(asked(tmp_path, "training.max_steps=9"), 5_000, 1)
    assert steps.minutes is None
    assert choose_sizing(asked(tmp_path, name="en-de"), 5_000, 1) == sizing.NOTHING
    other = asked(tmp_path, "task=classification")
    assert choose_sizing(other, 5_000, 1) == sizing.NOTHING


def test_the_speed_of_the_machine_counts_where_minutes_are_given(
    tmp_path: Path, monkeypatch: Any
) -> None:
    widths = []
    for peak in (1e9, 1e15):
        monkeypatch.setattr(sizing, "_peak", lambda recipe, peak=peak: peak)
        request = asked(tmp_path, minutes=30.0)
        widths.append(choose_sizing(request, 50_000, 1).values["model.d_model"])
        # all processes of a run must choose the same
        several = choose_sizing(request, 50_000, 2).values
        assert several == choose_sizing(request, 50_000, 2).values
    assert widths == [SIZES[0].d_model, SIZES[-1].d_model]


def test_a_run_goes_on_with_what_it_chose(
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    sized = ("model.dropout", "batches.tokens_per_batch")
    set_ones = [s for s in tiny_settings if not s.startswith(sized)]
    settings = (*set_ones, "training.max_steps=4", "training.save_every=2")
    train = write_pairs(216)
    weft.train(out=tmp_path, train=train, settings=settings, quiet=True)
    record = durable.read_json(RunFolder(tmp_path).recipe)
    assert record["chosen"]
    monkeypatch.setattr(sizing, "DROPOUT_OF_FEW", 0.5)
    monkeypatch.setattr(sizing, "TOKENS_PER_BATCH", 7)
    more = (*settings, "training.max_steps=6")
    weft.train(out=tmp_path, train=train, settings=more, quiet=True)
    again = durable.read_json(RunFolder(tmp_path).recipe)
    assert again["chosen"] == record["chosen"]
    before, now = record["recipe"], again["recipe"]
    assert (before["model"], before["batches"]) == (now["model"], now["batches"])
    request = Request(load_recipe(None, settings), tmp_path, own_keys=frozenset())
    assert choose_sizing(request, 216, 1).values == record["chosen"]


def test_text_of_a_machine_is_weighed_in_a_mixture_where_there_is_some(
    write_pairs: Callable[[int], str], tiny_settings: tuple[str, ...], tmp_path: Path
) -> None:
    mixtures = "data.mixtures=[{until=0.5}, {until=1.0, weights={made=0.0}}]"
    settings = (*tiny_settings, "training.max_steps=4", mixtures)
    pairs = write_pairs(216)
    with pytest.raises(weft.errors.UsageError, match="no text has the tag made"):
        weft.train(out=tmp_path / "a", train=pairs, settings=settings, quiet=True)
    made = tmp_path / "made.tsv"
    made.write_bytes(Path(pairs).read_bytes())
    both = [pairs, weft.TrainText(str(made), made=True)]
    weft.train(out=tmp_path / "b", train=both, settings=settings, quiet=True)
    card = (tmp_path / "b" / "README.md").read_text("utf-8")
    assert "made.tsv 0; an epoch reads" in card
