"""Broken recipes: whatever is wrong, a UsageError with one line for each problem, and nothing
else.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from weft.config import TranslationRecipe
from weft.errors import UsageError
from weft.recipes.file import build_recipe, load_recipe

SECTIONS = ["task", "data", "tokenizer", "batches", "model", "training", "decoding"]
DOTTED = [
    f"{name}.{key}"
    for name in SECTIONS[1:]
    for key in type(getattr(TranslationRecipe(), name)).model_fields
]
KEYS = sorted({dotted.partition(".")[2] for dotted in DOTTED})

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=8),
    st.dates(),
    st.sampled_from(
        ["none", "auto", "yes", "no", "nan", 10**400, -(10**20), "\ud800", "\0", 1e308]
    ),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)
keys = st.one_of(st.sampled_from(KEYS), st.text(max_size=6))
trees = st.dictionaries(
    st.one_of(st.sampled_from(SECTIONS), st.text(max_size=6)),
    st.one_of(st.dictionaries(keys, values, max_size=5), values),
    max_size=4,
)
known_settings = st.sampled_from(DOTTED)
LISTS_OF_ANY_LENGTH = {"data.mixtures"}


def assert_readable(error: UsageError, where: str = "recipe") -> None:
    assert error.exit_code == 2
    for line in str(error).split("\n"):
        assert line.startswith(f"{where}: ") or (
            where == "recipe" and line.startswith("--set ")
        )
        assert len(line) < 1500
        assert line.isprintable()


@settings(max_examples=200, deadline=None)
@given(trees)
def test_C1_any_tree_is_a_recipe_or_a_usage_error(tree: dict[str, Any]) -> None:
    try:
        recipe = build_recipe(tree)
    except UsageError as error:
        assert_readable(error)
    else:
        assert build_recipe(recipe.model_dump(mode="json")) == recipe


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(known_settings | st.text(max_size=12), st.text(max_size=12)),
        max_size=3,
    )
)
def test_C1_any_setting_is_taken_or_a_usage_error(pairs: list[tuple[str, str]]) -> None:
    try:
        recipe = load_recipe(None, [f"{key}={value}" for key, value in pairs])
    except UsageError as error:
        assert_readable(error)
    else:
        assert isinstance(recipe, TranslationRecipe)


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    content=st.binary(max_size=40)
    | st.text(max_size=40).map(lambda t: t.encode("utf-8", "replace"))
)
def test_C1_any_file_is_a_recipe_or_a_usage_error(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(content)
    try:
        recipe = load_recipe(str(path))
    except UsageError as error:
        assert_readable(error, where=str(path))
    else:
        assert isinstance(recipe, TranslationRecipe)


@settings(max_examples=100, deadline=None)
@given(
    st.sets(
        known_settings.filter(lambda key: key not in LISTS_OF_ANY_LENGTH),
        min_size=1,
        max_size=6,
    )
)
def test_C1_each_wrong_value_is_listed(wrong: set[str]) -> None:
    """An empty list is a wrong value for every other key."""
    tree: dict[str, dict[str, Any]] = {}
    for dotted in wrong:
        section, key = dotted.split(".")
        tree.setdefault(section, {})[key] = []
    with pytest.raises(UsageError) as caught:
        build_recipe(tree)
    lines = str(caught.value).split("\n")
    for dotted in wrong:
        assert sum(line.startswith(f"recipe: {dotted}") for line in lines) >= 1
    assert all(
        any(line.startswith(f"recipe: {dotted}") for dotted in wrong) for line in lines
    )


@settings(max_examples=100, deadline=None)
@given(known_settings, st.sampled_from(["drop", "double", "swap"]), st.integers(0, 30))
def test_C1_a_slip_of_the_keys_names_the_right_one(
    dotted: str, slip: str, at: int
) -> None:
    section, key = dotted.split(".")
    assume(len(key) >= 6)
    i = at % (len(key) - 1)
    wrong = {
        "drop": key[:i] + key[i + 1 :],
        "double": key[:i] + key[i] + key[i:],
        "swap": key[:i] + key[i + 1] + key[i] + key[i + 2 :],
    }[slip]
    assume(wrong != key)
    with pytest.raises(UsageError) as caught:
        build_recipe({section: {wrong: 1}})
    # "num_ecoder_layers" is as near to the encoder's key as to the decoder's.
    nearest = {
        dotted,
        dotted.replace("decoder", "encoder"),
        dotted.replace("encoder", "decoder"),
    }
    assert str(caught.value) in {
        f"recipe: unknown key {section}.{wrong}; did you mean {key}?" for key in nearest
    }


@pytest.mark.parametrize(
    "content",
    [
        b"[training]\nseed = 1\nseed = 2\n",
        b"[training]\n[training]\n",
        b"training = {",
        b"\xff\xfe[\x00",
        b"a = " + b"[" * 100_000,
        b"[training]\nmax_steps = " + b"9" * 5000,
        b"[training]\nmax_steps = 0x" + b"f" * 5000,
        b".".join([b"a"] * 3000) + b" = 1",
    ],
    ids=[
        "duplicate key",
        "duplicate section",
        "cut",
        "UTF-16",
        "deep value",
        "long number",
        "long hexadecimal",
        "deep key",
    ],
)
def test_C1_broken_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_recipe(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 300 + len(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "setting",
    [
        ".".join(["a"] * 3000) + "=1",
        "training.seed=" + "9" * 5000,
        "training.seed=0x" + "f" * 5000,
    ],
    ids=["deep key", "long number", "long hexadecimal"],
)
def test_C1_broken_settings(setting: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_recipe(None, [setting])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["missing", "x" * 5000, "a\0b", "", "."])
def test_C1_no_such_recipe(name: str) -> None:
    with pytest.raises(UsageError, match="neither a file nor a packaged recipe"):
        load_recipe(name)


def test_C1_recipe_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "my.toml").write_text("")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(
        UsageError, match=r"my\.toml: cannot be read \(Permission denied\)"
    ):
        load_recipe(str(tmp_path / "my.toml"))


def test_C1_surrogates_of_a_damaged_command_line() -> None:
    with pytest.raises(UsageError, match="no text; write it as UTF-8"):
        load_recipe(None, ["data.src_lang=\udcff"])
