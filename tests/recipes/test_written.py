"""A recipe written as TOML is read as the same recipe."""

from pathlib import Path

import pytest

from weft.recipes.file import load_recipe, recipe_names
from weft.recipes.written import as_toml


def read_again(text: str, folder: Path) -> object:
    file = folder / "again.toml"
    file.write_text(text, "utf-8")
    return load_recipe(str(file))


@pytest.mark.parametrize("name", recipe_names())
def test_packaged_recipes_are_read_again(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name)
    assert read_again(as_toml(recipe), tmp_path) == recipe


def test_defaults_are_left_out() -> None:
    assert as_toml(load_recipe()) == 'task = "translation"'


def test_labels_and_strings_of_any_kind_are_read_again(tmp_path: Path) -> None:
    settings = (
        "task=classification",
        'training.class_weights={"a.b"=2.0,"é \\"\\\\"=0.5,"-"=1e-7}',
        'data.label_separator="\\u007f\\n"',
        "data.dev_size=none",
        "model.ngrams=3",
    )
    recipe = load_recipe(None, settings)
    assert read_again(as_toml(recipe), tmp_path) == recipe
