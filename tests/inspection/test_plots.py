"""Every picture shows the project's own numbers, is written whole, and never shows a box for a
letter.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from weft.config import TrainingSection
from weft.errors import FolderError, UsageError
from weft.inspection import history
from weft.inspection.translation import TranslationInspection
from weft.model.positions import sinusoids
from weft.recipes.file import build_recipe, load_recipe
from weft.training.loss import smoothed_target
from weft.training.schedule import learning_rate
from weft.training.scores import rank

matplotlib = pytest.importorskip(
    "matplotlib", reason="matplotlib (the extra plot) is not installed"
)
plots = pytest.importorskip("weft.inspection.plots")
figures = pytest.importorskip("weft.inspection.figure")
pictures = pytest.importorskip("weft.inspection.pictures")
curves = pytest.importorskip("weft.inspection.curves")
mpl_figure = pytest.importorskip("matplotlib.figure")


def size_of(png: bytes) -> tuple[int, int]:
    """Width and height in the header of a PNG."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def texts_of(svg: bytes) -> list[str]:
    """What stands in the text elements of an SVG."""
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    return [
        "".join(element.itertext()).strip()
        for element in root.iter()
        if element.tag.endswith("}text")
    ]


def lines_of(axes: Any, gid: str) -> list[Any]:
    return [line for line in axes.get_lines() if line.get_gid() == gid]


def points(line: Any) -> list[tuple[float, float]]:
    return [
        (float(x), float(y))
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def write_run(folder: Path, lines: list[dict[str, Any]], tail: bytes = b"") -> Path:
    (folder / "run").mkdir(parents=True)
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (folder / "run" / "metrics.jsonl").write_bytes(content + tail)
    return folder


def steps(*losses: float, every: int = 50) -> list[dict[str, Any]]:
    return [
        {
            "step": every * number,
            "epoch": 0,
            "loss": loss,
            "learning_rate": 0.1,
            "tokens_per_second": 7,
        }
        for number, loss in enumerate(losses, start=1)
    ]


def evaluation(step: int, bleu: float, loss: float) -> dict[str, Any]:
    return {
        "step": step,
        "epoch": 1,
        "dev_bleu": bleu,
        "dev_loss": loss,
        "dev_perplexity": 2.0**loss,
    }


# --- what is drawn


def test_positions_are_the_models_table() -> None:
    figure = plots.draw_positions(d_model=20, max_len=100)
    above, below, *_ = figure.axes
    table = sinusoids(100, 20).numpy()
    np.testing.assert_array_equal(above.images[0].get_array(), table.T)
    labels = [line.get_label() for line in below.get_lines()]
    assert labels == [
        "dimension 4 (sine)",
        "dimension 5 (cosine)",
        "dimension 6 (sine)",
        "dimension 7 (cosine)",
    ]
    for line, dim in zip(below.get_lines(), (4, 5, 6, 7), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), table[:, dim])


def waves_of(d_model: int, max_len: int) -> list[int]:
    labels = [
        line.get_label()
        for line in plots.draw_positions(d_model, max_len).axes[1].get_lines()
    ]
    return [int(re.findall(r"\d+", label)[0]) for label in labels]


@pytest.mark.parametrize(("d_model", "max_len"), [(128, 100), (512, 1000), (256, 31)])
def test_waves_are_as_long_as_a_reader_can_follow(d_model: int, max_len: int) -> None:
    dims = waves_of(d_model, max_len)
    assert [dim % 2 for dim in dims] == [0, 1, 0, 1]
    lengths = [2 * np.pi * 10_000 ** (dim / d_model) for dim in (dims[0], dims[2])]
    assert lengths == pytest.approx([max_len / 2.5, max_len], rel=0.1)


@pytest.mark.parametrize(
    ("d_model", "max_len", "dims"),
    [(2, 3, [0, 1]), (6, 100, [2, 3]), (4, 10**6, [2, 3])],
)
def test_a_narrow_table_shows_no_wave_twice(
    d_model: int, max_len: int, dims: list[int]
) -> None:
    assert plots._wave_dims(d_model, max_len) == dims


def test_odd_width_is_refused() -> None:
    with pytest.raises(UsageError, match="even d_model, not 21"):
        plots.draw_positions(21)


def test_mask_lets_nobody_see_the_future() -> None:
    axes = plots.draw_mask(7).axes[0]
    np.testing.assert_array_equal(
        axes.images[0].get_array(), np.tril(np.ones((7, 7), dtype=bool))
    )
    see, hidden = axes.get_legend().get_patches()
    colors = axes.images[0].get_cmap()
    assert see.get_facecolor() == colors(1)
    assert hidden.get_facecolor() == colors(0)


def test_smoothing_is_the_losss_own_target() -> None:
    """With the 0.1 of the paper (section 5.4)."""
    axes = plots.draw_smoothing().axes[0]
    drawn = axes.images[0].get_array()
    np.testing.assert_array_equal(
        drawn, smoothed_target(torch.tensor([2, 1, 0, 3, 3]), 5, 0.1).numpy()
    )
    third = pytest.approx(0.1 / 3)
    assert drawn[0].tolist() == [0, third, pytest.approx(0.9), third, third]
    assert drawn[2].tolist() == [0] * 5
    assert drawn[:, 0].tolist() == [0] * 5
    written = [text.get_text() for text in axes.texts]
    assert written[:5] == ["0", "0.033", "0.9", "0.033", "0.033"]
    assert written[10:15] == ["0"] * 5


def test_schedules_are_the_trainers_own() -> None:
    axes = plots.draw_schedule(plots.paper_schedules()).axes[0]
    assert len(axes.get_lines()) == 3
    for line, (d_model, warmup) in zip(
        axes.get_lines(), ((512, 4000), (512, 8000), (256, 4000)), strict=True
    ):
        settings = TrainingSection(
            schedule="noam", learning_rate=1.0, warmup_steps=warmup
        )
        assert line.get_label() == f"d_model {d_model}, warm-up {warmup:,}"
        steps = range(1, 20_001)
        expected = [learning_rate(settings, d_model, step, 20_000) for step in steps]
        assert points(line) == list(zip(steps, expected, strict=True))
        assert max(line.get_ydata()) == pytest.approx((d_model * warmup) ** -0.5)


def test_schedule_of_a_recipe() -> None:
    recipe = load_recipe("demo")
    schedule, max_steps = plots.recipe_schedule(recipe, "demo")
    assert (max_steps, schedule.d_model) == (450, 128)
    (line,) = plots.draw_schedule([schedule], max_steps).axes[0].get_lines()
    assert line.get_label() == "demo: cosine, warm-up 100"
    expected = [
        learning_rate(recipe.training, 128, step, 450) for step in range(1, 451)
    ]
    assert points(line) == list(zip(range(1, 451), expected, strict=True))


@pytest.mark.parametrize(
    "task", ["translation", "language-modelling", "classification"]
)
def test_every_tasks_recipe_has_a_schedule(task: str) -> None:
    recipe = build_recipe(
        {"task": task, "training": {"max_steps": 7, "warmup_steps": 3}}
    )
    schedule, max_steps = plots.recipe_schedule(recipe, task)
    assert max_steps == 7
    assert (
        len(plots.draw_schedule([schedule], 7).axes[0].get_lines()[0].get_xdata()) == 7
    )


def test_recipe_without_a_length_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^mine: sets no training\.max_steps"):
        plots.recipe_schedule(build_recipe({}), "mine")


def test_very_long_schedule_keeps_its_peak() -> None:
    settings = TrainingSection(schedule="noam", learning_rate=1.0, warmup_steps=12_345)
    (line,) = (
        plots.draw_schedule([plots.Schedule("long", settings, 64)], 2_000_003)
        .axes[0]
        .get_lines()
    )
    assert len(line.get_xdata()) < 25_000
    assert line.get_xdata()[[*line.get_ydata()].index(max(line.get_ydata()))] == 12_345
    assert line.get_xdata()[-1] == 2_000_003


def test_attention_that_a_model_lacks_is_refused_in_a_line() -> None:
    for maps in (np.empty((0, 1, 0, 0)), np.ones((2, 3, 1, 1))[:1, 3:4]):
        with pytest.raises(
            UsageError, match=r"no such layer or head .* classify-modern"
        ):
            pictures.draw_maps(maps, ["a"], ["a"], "Layer 1")


# --- histories


def test_history_shows_what_was_logged(tmp_path: Path) -> None:
    lines = [*steps(5.0, 4.0), evaluation(100, 11.0, 3.5), *steps(3.0, 2.0)[1:]]
    lines = [
        *lines,
        {**steps(9.0)[0], "step": 150, "loss": 2.5},
        evaluation(150, 13.0, 3.0),
    ]
    figure = curves.draw_history(
        [history.read_history(write_run(tmp_path / "a", lines))]
    )
    losses, scores = figure.axes
    (raw,) = lines_of(losses, "training")
    assert points(raw) == [(50, 5.0), (100, 4.0), (100, 2.0), (150, 2.5)]
    assert points(lines_of(losses, "dev")[0]) == [(100, 3.5), (150, 3.0)]
    assert points(lines_of(scores, "score")[0]) == [(100, 11.0), (150, 13.0)]
    assert points(lines_of(scores, "best")[0]) == [(150, 13.0)]
    assert scores.get_ylabel() == "BLEU"
    # of the one legend, below: one in the panel would hide some of the scores
    assert scores.get_legend() is None
    (*_, star) = figure.legends[0].get_texts()
    assert star.get_text().endswith("a: best BLEU 13 at step 150")


@pytest.mark.parametrize(
    ("evaluations", "best"),
    [
        ([(1, 5.0, 2.0), (2, 9.0, 3.0), (3, 7.0, 1.0)], 2),
        # of equal scores the lower loss
        ([(1, 0.0, 2.0), (2, 0.0, 1.5), (3, 0.0, 1.7)], 2),
        # of equal evaluations the first, as the trainer keeps it
        ([(1, 4.0, 2.0), (2, 4.0, 2.0)], 1),
        # BLEU below 5 is chance: the loss decides
        ([(1, 4.9, 2.0), (2, 0.2, 1.5), (3, 0.0, 1.7)], 2),
        ([(1, 4.9, 1.0), (2, 5.1, 1.5)], 2),
    ],
)
def test_best_step_is_the_trainers(
    tmp_path: Path, evaluations: list[tuple[int, float, float]], best: int
) -> None:
    run = history.read_history(
        write_run(tmp_path / "a", [evaluation(*e) for e in evaluations])
    )
    assert run.best["step"] == best
    kept, scores = 0, {}
    for step, bleu, loss in evaluations:  # as the trainer keeps it
        now = {"dev_bleu": bleu, "dev_loss": loss}
        if not scores or rank(now) > rank(scores):
            kept, scores = step, now
    assert kept == best


def test_where_the_loss_decides_the_lowest_is_best(tmp_path: Path) -> None:
    keys = ("dev_loss", "dev_bits_per_byte")
    lines = [
        {"step": 7 * i, "epoch": 0, **dict(zip(keys, v, strict=True))}
        for i, v in enumerate([(3, 2), (1, 5), (2, 4)])
    ]
    run = history.read_history(write_run(tmp_path / "a", lines))
    assert (run.loss_key, run.score_key, run.best["step"]) == (*keys, 7)
    _, scores = curves.draw_history([run]).axes
    assert points(lines_of(scores, "best")[0]) == [(7, 5)]


@pytest.mark.parametrize(
    ("evaluations", "said"),
    [
        # the star stands below the highest BLEU
        (
            [(91, 0.474, 6.0), (100, 0.181, 5.9)],
            "BLEU 0.181 at step 100, chosen by loss",
        ),
        ([(91, 4.9, 6.0), (100, 5.1, 6.1)], "best BLEU 5.1 at step 100"),
    ],
)
def test_the_legend_says_what_chose_the_best_step(
    tmp_path: Path, evaluations: list[tuple[int, float, float]], said: str
) -> None:
    lines = [evaluation(*values) for values in evaluations]
    run = history.read_history(write_run(tmp_path / "a", lines))
    (*_, star) = curves.draw_history([run]).legends[0].get_texts()
    assert star.get_text().endswith(f"a: {said}")


def test_best_step_is_that_of_a_real_run(tiny_folder: Path) -> None:
    verdict = json.loads((tiny_folder / "run" / "verdict.json").read_bytes())
    run = history.read_history(tiny_folder)
    assert run.best["step"] == verdict["best_step"]
    assert run.best[run.score_key] == next(iter(verdict["dev"].values()))
    assert run.losses[-1][0] == verdict["step"] == 120


def test_several_runs_with_other_scores_share_one_picture(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [*steps(3.0, 2.0), evaluation(100, 20.0, 1.0)])
    accuracy = {"step": 100, "epoch": 1, "dev_accuracy": 0.75, "dev_loss": 0.5}
    second = write_run(tmp_path / "b", [*steps(1.0, 0.5), accuracy])
    bare = write_run(tmp_path / "_c", steps(7.0, 6.0, 5.0))
    figure = curves.draw_history(
        [history.read_history(folder) for folder in (first, second, bare)]
    )
    losses, bleu, other = figure.axes
    assert [axes.get_ylabel() for axes in (bleu, other)] == ["BLEU", "accuracy"]
    assert len(lines_of(losses, "training")) == 3
    assert len({line.get_color() for line in lines_of(losses, "training")}) == 3
    assert len(lines_of(losses, "dev")) == 2
    assert points(lines_of(other, "best")[0]) == [(100, 0.75)]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [name[-2:] for name in names[:3]] == ["/a", "/b", "_c"]


def test_score_that_the_best_step_lacks_is_drawn_without_a_mark(tmp_path: Path) -> None:
    lines = [
        {"step": 5, "dev_loss": 1.0},
        {"step": 9, "dev_loss": 2.0, "dev_bits_per_byte": 3.0},
    ]
    _, scores = curves.draw_history(
        [history.read_history(write_run(tmp_path / "a", lines))]
    ).axes
    assert points(lines_of(scores, "score")[0]) == [(9, 3.0)]
    assert lines_of(scores, "best") == []


def test_run_without_evaluations_has_one_panel(tmp_path: Path) -> None:
    figure = curves.draw_history(
        [history.read_history(write_run(tmp_path / "a", steps(2.0)))]
    )
    assert len(figure.axes) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()][1:] == [
        "training, as logged"
    ]


def test_the_legend_explains_what_is_drawn_and_hides_none_of_it(tmp_path: Path) -> None:
    lines = [*steps(*(9 - i % 7 for i in range(90))), evaluation(4500, 11.0, 3.5)]
    figure = curves.draw_history(
        [history.read_history(write_run(tmp_path / "a", lines))]
    )
    losses = figure.axes[0]
    assert (
        len(lines_of(losses, "training")) == len(lines_of(losses, "training-mean")) == 1
    )
    words = ["training, as logged", "training, moving mean", "dev", "best step on dev"]
    _, *said, star = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == words
    assert star.endswith("a: best BLEU 11 at step 4,500")
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.y1 <= min(axes.get_tightbbox().y0 for axes in figure.axes)
    assert figure.bbox.y0 <= box.y0
    assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    ("recipes", "title"),
    [
        ([None], "Loss"),
        (
            [
                {
                    "training": {"label_smoothing": 0.0},
                    "model": {"dropout": 0.0},
                    "batches": {},
                }
            ],
            "Loss",
        ),
        (
            [
                {
                    "training": {"label_smoothing": 0.1},
                    "model": {"dropout": 0.0},
                    "batches": {},
                }
            ],
            "Loss, in training with label smoothing, on dev without",
        ),
        (
            [
                {
                    "training": {"label_smoothing": 0.1},
                    "model": {"attention_dropout": 0.2},
                    "batches": {},
                }
            ],
            "Loss, in training with dropout and label smoothing, on dev without",
        ),
        (
            [
                {
                    "training": {"label_smoothing": 0.0},
                    "model": {"dropout": 0.1},
                    "batches": {},
                },
                {
                    "training": {"label_smoothing": 0.0},
                    "model": {"dropout": 0.0},
                    "batches": {},
                },
            ],
            "Loss, in training with dropout of some runs, on dev without",
        ),
    ],
)
def test_the_title_says_what_the_runs_had(
    tmp_path: Path, recipes: list[Any], title: str
) -> None:
    runs = []
    for number, recipe in enumerate(recipes):
        folder = write_run(
            tmp_path / str(number), [*steps(3.0, 2.0), evaluation(100, 20.0, 1.0)]
        )
        if recipe is not None:
            (folder / "run" / "recipe.json").write_text(
                json.dumps({"recipe": recipe}), "utf-8"
            )
        runs.append(history.read_history(folder))
    assert curves.draw_history(runs).axes[0].get_title(loc="left") == title


@pytest.mark.parametrize(
    "tail",
    [b'{"step": 150, "lo', b"[]\n", b"\xff\n", b'{"loss": 1}\n', b'{"step": null}\n'],
)
def test_damaged_last_line_is_left_out(tmp_path: Path, tail: bytes) -> None:
    run = history.read_history(write_run(tmp_path / "a", steps(5.0, 4.0), tail))
    assert run.losses == [(50, 5.0), (100, 4.0)]


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    lines = [
        *steps(5.0),
        {"step": 100, "loss": float("nan")},
        {"step": 150, "loss": "2"},
        {"step": 200, "loss": True},
    ]
    lines += [
        {**steps(float("inf"))[0], "step": 250},
        {"step": float("inf"), "loss": 1.0},
        {"step": 300, "loss": 10**400},
    ]
    run = history.read_history(write_run(tmp_path / "a", lines))
    assert (run.losses, run.evaluations) == ([(50, 5.0)], [])


def test_missing_and_empty_runs_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"nowhere: no such folder"):
        history.read_history(tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(FolderError, match=r"metrics\.jsonl: missing"):
        history.read_history(tmp_path / "bare")
    with pytest.raises(FolderError, match=r"metrics\.jsonl: no step is logged"):
        history.read_history(write_run(tmp_path / "empty", [], b'{"step": 5'))


def test_moving_mean_by_hand() -> None:
    assert curves.moving_mean([3.0, 1.0, 2.0]) == [3.0, 1.0, 2.0]
    values = [float(i * i) for i in range(83)]  # two neighbours on each side
    found = curves.moving_mean(values)
    assert len(found) == 83
    assert found[0] == 0
    assert found[1] == pytest.approx((0 + 1 + 4) / 3)
    assert found[40] == pytest.approx(sum(values[38:43]) / 5)
    assert found[81:] == [pytest.approx(sum(values[80:]) / 3), pytest.approx(82 * 82)]
    # a slope stays as it is
    assert curves.moving_mean(list(range(83))) == [pytest.approx(i) for i in range(83)]


# --- attention


def test_attention_has_a_panel_a_layer_with_its_mean(
    inspection: TranslationInspection,
) -> None:
    figure = pictures.draw_inspection(inspection)
    panels = [axes for axes in figure.axes if axes.images]
    assert [panel.get_title(loc="left") for panel in panels] == [
        "Layer 1",
        "Layer 2",
        "Layer 3",
        "Layer 4",
    ]
    for layer, panel in enumerate(panels):
        weights = inspection.cross[layer].mean(0)
        np.testing.assert_allclose(np.asarray(panel.images[0].get_array()), weights)
        assert [text.get_text() for text in panel.get_xticklabels()] == [
            figures.piece_label(piece) for piece in inspection.src_pieces
        ]
        assert [text.get_text() for text in panel.get_yticklabels()] == [
            figures.piece_label(piece) for piece in inspection.tgt_pieces
        ]
        # by the root, up to 1: half of the colour is a quarter
        norm = panel.images[0].norm
        assert [float(norm(weight)) for weight in (0, 0.25, 1)] == [0, 0.5, 1]
        assert panel.images[0].cmap(1.0)[:3] == pytest.approx(
            (35 / 255, 72 / 255, 140 / 255)
        )


def test_flat_heads_are_said_and_a_flat_layer_is_hatched() -> None:
    """As in a model that has learned its sentences without looking at the source."""
    flat = np.full((4, 5), 0.2)
    looking = np.eye(4, 5) * 0.9 + 0.02
    layers = np.stack([[flat, flat], [flat, looking], [looking, looking]])
    figure = pictures.draw_maps(layers, list("abcde"), list("wxyz"), "Looks")
    panels = [axes for axes in figure.axes if axes.images]
    titles = [panel.get_title(loc="left") for panel in panels]
    assert titles == ["Layer 1: flat", "Layer 2: 1 of 2 heads flat", "Layer 3"]
    assert [len(panel.patches) for panel in panels] == [1, 0, 0]
    assert panels[0].patches[0].get_hatch()
    alone = pictures.draw_maps(layers[:1], list("abcde"), list("wxyz"), "Looks")
    assert alone.axes[0].get_title(loc="left") == "flat"


def test_the_future_is_hatched() -> None:
    """And rows that see little are flat only where they see several keys alike."""
    even = np.tri(4) / np.arange(1, 5)[:, None]
    own = np.eye(4)
    maps = np.stack([[own]])
    figure = pictures.draw_maps(
        maps, list("abcd"), list("abcd"), "Looks", is_causal=True
    )
    (future,) = figure.axes[0].patches
    assert future.get_hatch()
    path = future.get_path()
    for row in range(4):
        for key in range(4):
            assert path.contains_point((key, row)) == (key > row)
    pale = pictures.draw_maps(
        np.stack([[even]]), list("abcd"), list("abcd"), "Looks", True
    )
    # the first query sees one key, and is not flat
    assert pale.axes[0].get_title(loc="left") == ""


def test_pieces_are_labelled_as_in_the_page() -> None:
    given = ["▁the", "▁", "<eos>", "<bos>", "\n", "\t", "a\r\nb", "\x00"]
    expected = ["the", "␣", "end", "start", "↵", "⇥", "a↵b", "\\u0000"]
    assert [figures.piece_label(piece) for piece in given] == expected


def test_attention_over_many_tokens_stays_within_its_bounds(
    inspection: TranslationInspection, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = replace(
        inspection,
        cross=np.random.default_rng(1).random((3, 2, 61, 67)),
        src_pieces=["ein"] * 67,
        tgt_pieces=["a"] * 61,
    )
    free = pictures.draw_inspection(many)
    monkeypatch.setattr(pictures, "PIXELS", 1_000_000)
    bound = pictures.draw_inspection(many)
    assert free.dpi == 150
    assert (bound.get_size_inches() == free.get_size_inches()).all()
    assert np.prod(bound.get_size_inches() * bound.dpi) == pytest.approx(1_000_000)
    assert len([axes for axes in bound.axes if axes.images]) == 3


# --- what every picture has


def stands_out(figure: Any) -> bool:
    """Whether anything is drawn beyond the edges that the figure was laid out for."""
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return (
        min(box.x0, box.y0) < -0.02 or box.x1 > width + 0.02 or box.y1 > height + 0.02
    )


@pytest.mark.long
def test_nothing_stands_out_of_a_picture(
    tiny_folder: Path, inspection: TranslationInspection
) -> None:
    for figure in (
        plots.draw_positions(),
        plots.draw_positions(1022, 7),
        plots.draw_mask(),
        plots.draw_smoothing(),
        plots.draw_schedule(plots.paper_schedules()),
        curves.draw_history([history.read_history(tiny_folder)]),
        pictures.draw_inspection(inspection),
        pictures.draw_inspection(
            replace(inspection, src_pieces=["W" * 40] * len(inspection.src_pieces))
        ),
        pictures.draw_inspection(
            replace(
                inspection,
                cross=np.ones((5, 2, 1, 1)),
                src_pieces=["."],
                tgt_pieces=["."],
            )
        ),
    ):
        assert not stands_out(figure)
    figure.axes[0].set_title("much too long " * 20)
    assert stands_out(figure)


# --- files


def test_png_has_the_figures_size_and_is_the_same_each_time(tmp_path: Path) -> None:
    contents = []
    for name in ("a.png", "b.PNG"):
        assert figures.write_figure(plots.draw_mask(5), tmp_path / name) == ""
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    width, height = size_of(contents[0])
    # 7 by 5 inches, less the empty margins
    assert (700 < width < 1100, 700 < height < 800) == (True, True)
    assert b"matplotlib" not in contents[0].lower()


def test_svg_holds_its_texts_and_is_the_same_each_time(tmp_path: Path) -> None:
    contents = []
    for name in ("a.svg", "b.svg"):
        figures.write_figure(
            plots.draw_schedule(plots.paper_schedules()), tmp_path / name
        )
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert b"<dc:date>" not in contents[0]
    texts = texts_of(contents[0])
    assert {
        "Learning rate over a run",
        "step",
        "20,000",
        "d_model 512, warm-up 4,000",
    } <= set(texts)


def test_everyones_settings_and_pyplot_are_left_alone(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context(
        {"font.size": 31, "axes.facecolor": "red", "svg.fonttype": "path"}
    ):
        figures.write_figure(plots.draw_mask(5), tmp_path / "a.svg")
    figures.write_figure(plots.draw_mask(5), tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.long
def test_pyplot_is_never_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from weft.inspection import figure, plots\n"
        f"figure.write_figure(plots.draw_mask(2), Path({str(tmp_path / 'a.png')!r}))\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize("name", ["a.gif", "a", "a.svgz", ".png", "a.html"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.png .*\.svg"):
        figures.write_figure(plots.draw_mask(2), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="cannot be written"):
        figures.write_figure(plots.draw_mask(2), tmp_path / "nowhere" / "a.png")


def test_a_picture_that_fails_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("in the midst of it")

    monkeypatch.setattr(mpl_figure.Figure, "savefig", fail)
    with pytest.raises(RuntimeError, match="midst"):
        figures.write_figure(plots.draw_mask(2), tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"old"


# --- letters


def titled(title: str) -> Any:
    figure = plots.draw_mask(2)
    figure.axes[0].set_title(title, loc="left")
    return figure


@pytest.fixture
def only_latin_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without any font for Chinese."""
    monkeypatch.setattr(figures, "_FALLBACKS", ())


@pytest.mark.usefixtures("only_latin_fonts")
def test_characters_that_no_font_has_are_told(tmp_path: Path) -> None:
    assert figures.write_figure(titled("tea 茶 and 我茶"), tmp_path / "a.png") == "我茶"
    assert figures.write_figure(titled("tea"), tmp_path / "b.png") == ""


@pytest.mark.usefixtures("only_latin_fonts")
def test_svg_leaves_chinese_to_the_fonts_of_its_reader(tmp_path: Path) -> None:
    assert figures.write_figure(titled("tea 茶"), tmp_path / "a.svg") == ""
    assert "tea 茶" in texts_of((tmp_path / "a.svg").read_bytes())


def test_a_font_that_has_chinese_is_found(tmp_path: Path) -> None:
    figures._list_new_fonts()
    families, missing = figures._fallbacks({"茶", "我"})
    if missing:
        pytest.skip("no font for Chinese is installed")
    assert len(families) == 1
    figure = titled("tea 茶")
    assert figures.write_figure(figure, tmp_path / "a.png") == ""
    # of another place; it has no letters
    assert figure.axes[0].title.get_fontfamily() == ["sans-serif"]
    found = [
        text for text in figure.findobj(matplotlib.text.Text) if "茶" in text.get_text()
    ]
    assert [text.get_fontfamily() for text in found] == [["sans-serif", *families]]
    figures.write_figure(titled("tea"), tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()


def test_a_font_of_one_other_letter_is_no_help_to_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Families are taken in order, each only for what is still lacking."""
    have = {"A1": set("xy"), "A2": set("x"), "A3": set("yz")}
    fonts = [type("Font", (), {"name": name}) for name in ("A3", "A1", "A2", "B")]
    monkeypatch.setattr(figures, "_FALLBACKS", ("A",))
    monkeypatch.setattr(figures.fontManager, "ttflist", fonts)
    monkeypatch.setattr(figures, "_characters", lambda family: have[family])
    assert figures._fallbacks(set("xyzw")) == (["A1", "A3"], {"w"})


HOSTILE = [
    "$x^2$",
    "$\\frac{",
    "</text><script>",
    "\x00\x1b\u2028",
    "_under",
    "",
    "▁the",
    "&amp;",
    "\ud800",
]


def test_hostile_pieces_are_written_as_they_are(
    inspection: TranslationInspection, tmp_path: Path
) -> None:
    hostile = replace(
        inspection,
        src_pieces=HOSTILE,
        cross=np.random.default_rng(1).random(
            (2, 3, len(inspection.tgt_pieces), len(HOSTILE))
        ),
    )
    figures.write_figure(pictures.draw_inspection(hostile), tmp_path / "a.png")
    figures.write_figure(pictures.draw_inspection(hostile), tmp_path / "a.svg")
    texts = texts_of((tmp_path / "a.svg").read_bytes())
    shown = [
        "$x^2$",
        "$\\frac{",
        "</text><script>",
        "\\u0000\\u001b\\u2028",
        "_under",
        "the",
        "&amp;",
        "\\ud800",
    ]
    assert [text for text in texts if text in shown] == shown * 2
    size_of((tmp_path / "a.png").read_bytes())
