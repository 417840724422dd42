"""The promise to old folders: one of each task, written by an older Weft, answers as it did then.

`old/` holds them. Commit e2c085a wrote them, the oldest whose folders of every task still open, and
its answers stand in `old/answers.json`; `old/recipes/` has the run/recipe.json of each run.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.folder.durable import read_json
from weft.folder.model_folder import read_config
from weft.recipes.file import load_recipe

OLD = Path(__file__).parent / "old"
ANSWERS = json.loads((OLD / "answers.json").read_text("utf-8"))
RECIPES = sorted((OLD / "recipes").iterdir())
# sums of another machine may end in other bits
SAME = {"rel": 1e-5, "abs": 1e-6}
BOTH_KERNELS = pytest.mark.parametrize("kernels", ["auto", "torch"])


def load(task: str, kernels: Any) -> Any:
    return weft.load(OLD / task, kernels=kernels)


@BOTH_KERNELS
def test_an_old_translator_answers_as_it_did(kernels: str) -> None:
    model = load("translation", kernels)
    for then in ANSWERS["translation"]:
        greedy = model.translate(then["text"], beam_size=1)
        beam = model.translate(then["text"], beam_size=4, n_best=2)
        now = [*greedy, *beam]
        assert [p.text for p in now] == [text for text, _ in then["translations"]]
        scores = [score for _, score in then["translations"]]
        assert [p.score for p in now] == pytest.approx(scores, **SAME)


@BOTH_KERNELS
def test_an_old_language_model_answers_as_it_did(kernels: str) -> None:
    model = load("language", kernels)
    for then in ANSWERS["language"]:
        now = model.generate(then["prompt"], temperature=0, max_new_tokens=9)
        assert now.text == then["greedy"]
        (score,) = model.score([then["prompt"]])
        assert score.log_prob == pytest.approx(then["log_prob"], **SAME)


@BOTH_KERNELS
def test_an_old_classifier_answers_as_it_did(kernels: str) -> None:
    model = load("classifier", kernels)
    for then in ANSWERS["classifier"]:
        (now,) = model.classify([then["text"]])
        assert now.label == then["label"]
        assert now.probability == pytest.approx(then["probability"], **SAME)


def test_the_answers_are_not_those_of_a_model_that_says_one_thing_to_all() -> None:
    for answers in ANSWERS.values():
        said = [json.dumps([*one.values()][1]) for one in answers]
        assert len({*said}) > 1


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_recipe_of_an_old_run_opens_with_its_own_values(path: Path) -> None:
    recipe = load_recipe(str(path)).model_dump(mode="json")
    kept = read_json(path)["recipe"]
    for name, section in kept.items():
        values = section if isinstance(section, dict) else {}
        for key, value in values.items():
            now = recipe[name].get(key, value)
            # the tokenizer of a side may have later keys
            if isinstance(value, dict):
                now = {inner: now.get(inner, own) for inner, own in value.items()}
            assert now == value
    assert recipe["training"]["max_steps"] == kept["training"]["max_steps"]


@pytest.mark.parametrize("task", ANSWERS)
def test_an_old_folder_is_older_than_keys_of_today(task: str) -> None:
    """Else it would prove nothing."""
    written = read_json(OLD / task / "config.json")
    today = read_config(OLD / task / "config.json").model_dump(mode="json")
    assert written.keys() < today.keys()


@pytest.mark.parametrize("task", ANSWERS)
def test_a_shape_with_a_key_of_training_that_is_gone_is_the_same_shape(
    task: str, tmp_path: Path
) -> None:
    old = read_json(OLD / task / "config.json")
    old["model"]["layer_dropout"] = 0.3
    path = tmp_path / "config.json"
    path.write_text(json.dumps(old), "utf-8")
    assert read_config(path) == read_config(OLD / task / "config.json")
