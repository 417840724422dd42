import json
import math
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.config import (
    RECIPES,
    Recipe,
    RecurrentSection,
    Seq2SeqSection,
    SideSection,
    TokenizerSection,
    TranslationRecipe,
    recipe_difference,
)
from weft.errors import UsageError
from weft.recipes.file import build_recipe, load_recipe, recipe_names, with_values
from weft.recipes.foreign_keys import NAMES_ELSEWHERE
from weft.recipes.retired import RETIRED


def problems(tree: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        build_recipe(tree, "my.toml")
    return str(caught.value).split("\n")


@pytest.mark.parametrize("key", ["terms", "memory"])
def test_hints_need_one_tokenizer(key: str) -> None:
    data = {key: 0.3}
    assert build_recipe({"data": data}).data.has_hints
    assert not build_recipe({}).data.has_hints
    assert build_recipe({"data": data, "tokenizer": {"joint": True}}).tokenizer.joint
    (two,) = problems({"data": data, "tokenizer": {"joint": False}})
    assert two.startswith(f"my.toml: data.{key} = 0.3 writes words of the target into")
    assert two.endswith("one tokenizer for both sides; set tokenizer.joint = true")
    (unequal,) = problems({"data": data, "tokenizer": {"src": {"lowercase": True}}})
    assert "needs tokenizer.src and tokenizer.tgt to be equal" in unequal
    (beyond,) = problems({"data": {key: 1.5}})
    assert f"data.{key} = 1.5" in beyond


def test_nothing_said_is_the_default() -> None:
    assert build_recipe({}) == TranslationRecipe() == load_recipe()


def test_every_section_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(
        """
        [data]
        src_lang = "zh-Hans"
        test_size = 0
        [tokenizer]
        joint = false
        src.kind = "character"
        [batches]
        batch_size = 7
        [model]
        d_model = 26
        num_heads = 2
        norm_first = false
        [training]
        learning_rate = 1
        betas = [0.5, 0.75]
        grad_clip_norm = "none"
        [decoding]
        length_penalty = -1.5
        """,
        encoding="utf-8",
    )
    recipe = load_recipe(str(path))
    assert (recipe.data.src_lang, recipe.data.test_size, recipe.data.tgt_lang) == (
        "zh-Hans",
        0,
        None,
    )
    assert (
        recipe.tokenizer.joint,
        recipe.tokenizer.src.kind,
        recipe.tokenizer.tgt.kind,
    ) == (
        False,
        "character",
        "auto",
    )
    assert (recipe.batches.batch_size, recipe.batches.tokens_per_batch) == (7, None)
    assert (recipe.model.dim_of_head, recipe.model.norm_first, recipe.model.d_ff) == (
        13,
        False,
        1024,
    )
    assert (recipe.training.learning_rate, recipe.training.betas) == (1.0, (0.5, 0.75))
    assert recipe.training.grad_clip_norm is None
    assert recipe.decoding.length_penalty == -1.5


def test_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(b"\xef\xbb\xbf[training]\r\nseed = 7\r\n")
    assert load_recipe(str(path)).training.seed == 7


def test_every_problem_is_listed_at_once() -> None:
    found = problems(
        {
            "modle": {"d_model": 8},
            "data": {"dev_size": "many"},
            "batches": {"batch_size": 0},
            "model": {"num_heads": 7, "dmodel": 26},
            "training": {"learning_rate": -1, "optimizer": "adan", "stepz": 3},
            "decoding": {"beam_size": True},
        }
    )
    assert found == [
        "my.toml: data.dev_size = 'many': must be a whole number of at least 0 or none",
        "my.toml: batches.batch_size = 0: must be a whole number of at least 1 or none",
        "my.toml: unknown key model.dmodel; did you mean model.d_model?",
        (
            "my.toml: training.optimizer = 'adan': must be 'adam', 'adamw', 'sgd' or 'muon'; did you mean 'adam'?"
        ),
        "my.toml: training.learning_rate = -1: must be a number above 0",
        found[5],
        "my.toml: decoding.beam_size = true: must be a whole number from 1 to 1,024",
        found[7],
        "my.toml: model: num_heads = 7 does not divide d_model = 256; change one, or set model.head_dim",
    ]
    assert found[5].startswith("my.toml: unknown key training.stepz; ")
    assert found[7].startswith("my.toml: unknown key modle; ")


def test_values_are_shown_as_a_recipe_has_them() -> None:
    assert problems(
        {
            "training": {
                "precision": None,
                "activation_checkpointing": 1,
                "kernels": "Native",
            }
        }
    ) == [
        "my.toml: training.precision = none: must be 'auto', 'float32', 'bfloat16' or 'float16'",
        (
            "my.toml: training.kernels = 'Native': must be 'auto', 'native' or 'torch'; did you mean 'native'?"
        ),
        "my.toml: training.activation_checkpointing = 1: must be true or false",
    ]


def test_a_fault_of_a_mixture_is_named_with_its_number() -> None:
    mixtures = [
        {"until": 80, "weights": {"bible": -3}},
        {"weights": {"bible": "half"}},
        {"until": 1.0, "weigths": {}},
    ]
    with pytest.raises(UsageError) as caught:
        build_recipe({"data": {"mixtures": mixtures}})
    assert str(caught.value).split("\n") == [
        "recipe: data.mixtures, number 1: until = 80: must be a number above 0 and at most 1",
        "recipe: data.mixtures, number 1: weights.bible = -3: must be a number from 0 to 1,000",
        "recipe: data.mixtures, number 2: lacks until",
        "recipe: data.mixtures, number 2: weights.bible = 'half': must be a number from 0 to 1,000",
        "recipe: data.mixtures, number 3: unknown key weigths; it has until or weights",
    ]


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("model.d_modle", "model.d_model"),
        ("model.heads", "model.num_heads"),
        ("model.norm-first", "model.norm_first"),
        ("training.lerning_rate", "training.learning_rate"),
        ("training.batch_size", "batches.batch_size"),
        ("training.beam_size", "decoding.beam_size"),
        ("training.max_len", "data.max_len"),
        ("learning_rate", "training.learning_rate"),
        ("tokenizer.src.vocabsize", "tokenizer.src.vocab_size"),
        ("decoding.lenght_penalty", "decoding.length_penalty"),
    ],
)
def test_unknown_key_names_its_nearest(key: str, nearest: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_recipe(None, [f"{key}=1"])
    assert str(caught.value) == f"recipe: unknown key {key}; did you mean {nearest}?"


@pytest.mark.parametrize(
    ("key", "task", "meant"),
    [
        ("training.checkpoint_every", "translation", "training.save_every"),
        ("training.lr", "translation", "training.learning_rate"),
        ("lr", "classification", "training.learning_rate"),
        ("training.max_grad_norm", "translation", "training.grad_clip_norm"),
        ("training.warmup", "translation", "training.warmup_steps"),
        ("training.early-stopping", "translation", "training.patience"),
        ("model.hidden_size", "translation", "model.d_model"),
        (
            "model.n_layers",
            "translation",
            "model.num_encoder_layers or model.num_decoder_layers",
        ),
        ("model.num_layers", "classification", "model.num_encoder_layers"),
        ("model.n_head", "language-modelling", "model.num_heads"),
        ("model.max_length", "translation", "data.max_len"),
        ("model.block_size", "language-modelling", "batches.window_len"),
        ("vocab_size", "language-modelling", "tokenizer.vocab_size"),
        ("tokenizer.src.n_vocab", "translation", "tokenizer.src.vocab_size"),
        ("data.language", "translation", "data.src_lang or data.tgt_lang"),
        ("data.language", "classification", "data.lang"),
        ("tokenizer.add_prefix_space", "classification", "tokenizer.leading_space"),
        ("decoding.num_beams", "translation", "decoding.beam_size"),
        ("decoding.max_tokens", "language-modelling", "decoding.max_new_tokens"),
    ],
)
def test_the_words_of_other_programs_name_our_keys(
    key: str, task: str, meant: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_recipe(None, [f"task={task}", f"{key}=1"])
    assert str(caught.value) == f"recipe: unknown key {key}; did you mean {meant}?"


def test_epochs_are_told_what_a_step_is() -> None:
    with pytest.raises(
        UsageError,
        match=r"training\.max_steps \(steps, not epochs\)\?$",
    ):
        load_recipe(None, ["training.num_epochs=3"])


def test_words_of_other_programs_stand_for_keys_that_there_are() -> None:
    known = {
        key for recipe in RECIPES.values() for key in flat(recipe().model_dump())
    } | {"model.d_hidden"}
    assert {key for keys in NAMES_ELSEWHERE for key in keys.split()} <= known
    names = " ".join(NAMES_ELSEWHERE.values())
    assert names == names.lower()
    assert "-" not in names


def test_a_key_of_other_tasks_names_them() -> None:
    with pytest.raises(
        UsageError,
        match=r"tokens_per_batch, which is for translation and classification; leave it out$",
    ):
        load_recipe(None, ["task=language-modelling", "batches.tokens_per_batch=10"])
    with pytest.raises(
        UsageError,
        match=r"data.lang, which is for language-modelling and classification; did you mean data.src_lang or",
    ):
        load_recipe(None, ["data.lang=de"])


def test_another_kind_of_model_leaves_out_what_is_for_that_of_a_packaged_recipe(
    tmp_path: Path,
) -> None:
    recurrent = load_recipe("demo", ["model.d_hidden=96", "model.kind=recurrent"]).model
    assert isinstance(recurrent, RecurrentSection)
    assert (recurrent.d_model, recurrent.num_encoder_layers) == (128, 2)
    assert recurrent.d_hidden == 96
    back = load_recipe("seq2seq-rnn-dot", ["model.kind=transformer"]).model
    assert back == Seq2SeqSection(d_model=192, dropout=0.3)
    own = tmp_path / "own.toml"
    own.write_text("extends = 'demo'\n[model]\nkind = 'recurrent'\n", "utf-8")
    assert load_recipe(str(own)).model == recurrent.model_copy(update={"d_hidden": 256})
    written = tmp_path / "recipe.json"
    tree = {"recipe": load_recipe("demo").model_dump(mode="json")}
    written.write_text(json.dumps(tree), "utf-8")
    assert load_recipe(str(written), ["model.kind=recurrent"]).model.kind == "recurrent"


def test_what_the_user_wrote_for_another_kind_of_model_is_refused(
    tmp_path: Path,
) -> None:
    line = r"unknown key model.d_ff, which is for model.kind = 'transformer'; leave"
    with pytest.raises(UsageError, match=f"^demo: {line} it out$"):
        load_recipe("demo", ["model.d_ff=8", "model.kind=recurrent"])
    own = tmp_path / "own.toml"
    own.write_text("[model]\nd_ff = 8\n", "utf-8")
    with pytest.raises(UsageError, match=line):
        load_recipe(str(own), ["model.kind=recurrent"])
    with pytest.raises(UsageError, match=r"model.cell, .* model.kind = 'recurrent'"):
        load_recipe("demo", ["model.cell=lstm"])


def test_key_like_no_other_gets_the_list() -> None:
    (line,) = problems({"data": {"qqqq": 1}})
    assert line.startswith(
        "my.toml: unknown key data.qqqq; known keys: data.builtin, data.src_lang, "
    )
    assert line.endswith("; docs/recipes.md explains every key")
    (line,) = problems({"qqqq": 1})
    assert line == (
        "my.toml: unknown key qqqq; known sections: task, data, tokenizer, batches, model, training, decoding; "
        "docs/recipes.md explains every key"
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("training.max_steps", True, "a whole number of at least 1 or none"),
        ("training.max_steps", 1.0, "a whole number of at least 1 or none"),
        ("training.max_steps", "7", "; write it without quotes"),
        ("training.max_steps", 0, "of at least 1"),
        (
            "training.max_steps",
            2**63,
            "of at least 1 and below 9,223,372,036,854,775,808 or none",
        ),
        ("training.learning_rate", True, "a number above 0"),
        ("training.learning_rate", "0.1", "a number above 0; write it without quotes"),
        ("training.learning_rate", float("nan"), "a finite number above 0"),
        ("training.learning_rate", float("inf"), "a finite number above 0"),
        ("training.label_smoothing", 1.0, "a number of at least 0 and below 1"),
        (
            "training.betas",
            [0.9],
            "[0.9]: must be a list of 2, each a number of at least 0 and below 1",
        ),
        ("training.betas", [0.9, 0.9, 0.9], "a list of 2"),
        ("training.seed", -1, "a whole number of at least 0 and below 4,294,967,296"),
        ("model.bias", "no", "true or false"),
        ("model.bias", 0, "true or false"),
        ("model.d_model", "none", "= none: must be a whole number"),
        ("model.activation", "swish", "must be 'relu', 'gelu', "),
        ("tokenizer.joint", 1, "= 1: must be 'auto', true or false"),
        ("tokenizer.joint", [], "= []: must be 'auto', true or false"),
        ("tokenizer.joint", "yes", "'auto', true or false"),
        ("data.src_lang", 3, "a text or none"),
        ("model", 5, "a section with keys of its own"),
        ("task", "summarizing", "translation"),
    ],
)
def test_wrong_values_are_one_line_that_names_the_key(
    key: str, value: object, message: str
) -> None:
    tree: dict[str, Any] = {}
    *sections, leaf = key.split(".")
    inner = tree
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[leaf] = value
    (line,) = problems(tree)
    assert line.startswith(f"my.toml: {key}")
    assert message in line


WRONG = (
    True,
    "true",
    0,
    -1,
    2**70,
    0.5,
    1.0,
    1e300,
    math.inf,
    "7",
    "xyz",
    "x" * 99,
    [],
    [1, "a"],
    {"a": 0},
    None,
)
OF_A_VALUE = re.compile(r"recipe: ([a-z_.]+) = .{1,63}: must be .+")
OF_A_SECTION = re.compile(
    r"recipe: ((model|tokenizer|tokenizer\.(src|tgt)): )?(?!.*must be ).+"
)  # keys that do not fit
LIBRARY = re.compile(
    r"[Ii]nput|valid|Value error|should|None|True|False|dict\[|literal\["
)


def flat(tree: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Every dotted key."""
    for name, value in tree.items():
        yield from (
            flat(value, f"{prefix}{name}.")
            if isinstance(value, dict)
            else [f"{prefix}{name}"]
        )


@pytest.mark.parametrize(
    ("recipe", "model"),
    [
        *((recipe, {}) for recipe in RECIPES.values()),
        (TranslationRecipe, {"kind": "recurrent"}),
    ],
    ids=[*RECIPES, "recurrent"],
)
def test_every_wrong_value_of_every_key_is_told_in_words_of_ours(
    recipe: type[Recipe], model: dict[str, str]
) -> None:
    start = {"task": recipe().task, "model": model}
    keys = [
        key
        for key in flat(build_recipe(start).model_dump())
        if key not in ("task", "model.kind")
    ]
    told: set[str] = set()
    for key, value in product(keys, WRONG):
        tree: dict[str, Any] = deepcopy(start)
        *sections, leaf = key.split(".")
        reduce(lambda inner, name: inner.setdefault(name, {}), sections, tree)[leaf] = (
            value
        )
        try:
            build_recipe(tree)
        except UsageError as error:
            for line in str(error).split("\n"):
                assert LIBRARY.search(line) is None, line
                match = OF_A_VALUE.fullmatch(line)
                assert (match and match[1] == key) or OF_A_SECTION.fullmatch(line), line
                told |= {key} if match else set()
    assert told == set(keys)


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (
            "model",
            {"d_model": 26, "num_heads": 3},
            "num_heads = 3 does not divide d_model = 26",
        ),
        (
            "model",
            {"d_model": 27, "num_heads": 3},
            "sinusoidal positions need an even d_model, not 27",
        ),
        ("batches", {"batch_size": 3, "tokens_per_batch": 5}, "not both"),
        ("tokenizer", {"joint": True, "src": {"lowercase": True}}, "to be equal"),
    ],
)
def test_what_does_not_fit_together(
    section: str, values: dict[str, object], message: str
) -> None:
    (line,) = problems({section: values})
    assert line.startswith(f"my.toml: {section}: ")
    assert message in line


def test_both_faults_of_one_width() -> None:
    (line,) = problems({"model": {"d_model": 7, "num_heads": 2}})
    assert "does not divide" in line
    assert "even" in line


def test_what_does_fit_together() -> None:
    assert Seq2SeqSection(d_model=26, num_heads=3, head_dim=5).dim_of_head == 5
    assert Seq2SeqSection(d_model=27, num_heads=3, positions="learned").dim_of_head == 9
    assert build_recipe({"tokenizer": {"joint": True}}).tokenizer.joint is True


def test_none_stands_for_null() -> None:
    assert (
        load_recipe(None, ["training.grad_clip_norm=none"]).training.grad_clip_norm
        is None
    )
    assert (
        build_recipe({"training": {"grad_clip_norm": "none"}}).training.grad_clip_norm
        is None
    )


def test_long_values_are_cut() -> None:
    (line,) = problems({"model": {"norm": "x" * 1000}})
    assert len(line) < 150


def test_control_characters_do_not_break_the_line() -> None:
    (line,) = problems({"a\nb": 1})
    assert line.startswith(r"my.toml: unknown key 'a\nb'; ")


@pytest.mark.parametrize("tree", [[], [1], "text", 3, None])
def test_recipe_that_is_no_mapping(tree: Any) -> None:
    (line,) = problems(tree)
    assert line == f"my.toml: {tree!r}: must be a section with keys of its own"


@pytest.mark.parametrize(
    ("setting", "section", "key", "value"),
    [
        ("training.max_steps=2000", "training", "max_steps", 2000),
        ("training.max_steps = 2_000 ", "training", "max_steps", 2000),
        ("training.learning_rate=3e-4", "training", "learning_rate", 3e-4),
        ("training.betas=[0.5, 0.25]", "training", "betas", (0.5, 0.25)),
        ("model.norm_first=false", "model", "norm_first", False),
        ("model.activation=gelu", "model", "activation", "gelu"),
        ('model.activation="gelu"', "model", "activation", "gelu"),
        ("data.src_lang=zh-Hans", "data", "src_lang", "zh-Hans"),
        ("data.builtin=a=b", "data", "builtin", "a=b"),
        ("data.builtin=", "data", "builtin", ""),
        ("data.builtin=1\nx=2", "data", "builtin", "1\nx=2"),
    ],
)
def test_set(setting: str, section: str, key: str, value: object) -> None:
    assert getattr(getattr(load_recipe(None, [setting]), section), key) == value


def test_set_comes_after_the_file_and_the_last_one_wins(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[training]\nseed = 3\nmax_steps = 5\n")
    recipe = load_recipe(
        str(tmp_path / "my.toml"), ["training.seed=7", "training.seed=11"]
    )
    assert (recipe.training.seed, recipe.training.max_steps) == (11, 5)


def test_set_a_nested_key() -> None:
    assert load_recipe(None, ["tokenizer.src.kind=bpe"]).tokenizer.src.kind == "bpe"


@pytest.mark.parametrize("setting", ["training.seed", "", "=3", " =3"])
def test_set_without_key_or_value(setting: str) -> None:
    with pytest.raises(UsageError, match=r"write section\.key=value"):
        load_recipe(None, [setting])


def test_set_below_a_value() -> None:
    with pytest.raises(
        UsageError, match=r"training\.seed\.x: seed is a value, not a section"
    ):
        load_recipe(None, ["training.seed=3", "training.seed.x=3"])


def test_packaged_recipes_are_valid() -> None:
    assert recipe_names() == sorted(recipe_names())
    for name in recipe_names():
        assert load_recipe(name).task in RECIPES


def test_saved_recipe_reads_back() -> None:
    recipe = build_recipe(
        {
            "training": {"grad_clip_norm": "none", "betas": [0, 0.5]},
            "data": {"builtin": "a"},
        }
    )
    assert build_recipe(json.loads(recipe.model_dump_json())) == recipe


def test_difference() -> None:
    old = TranslationRecipe()
    new = with_values(
        old,
        {"training.seed": 7, "tokenizer.src.kind": "bpe", "training.betas": [0.9, 0.5]},
    )
    assert recipe_difference(old, old) == {}
    assert recipe_difference(old, new) == {
        "tokenizer.src.kind": ("auto", "bpe"),
        "training.betas": ([0.9, 0.98], [0.9, 0.5]),
        "training.seed": (1, 7),
    }


def test_with_values_validates() -> None:
    assert (
        with_values(
            TranslationRecipe(), {"training.max_steps": None}
        ).training.max_steps
        is None
    )
    with pytest.raises(UsageError, match=r"training\.seed = 'x'"):
        with_values(TranslationRecipe(), {"training.seed": "x"})
    with pytest.raises(
        UsageError, match=r"unknown key training\.sead; did you mean training\.seed\?"
    ):
        with_values(TranslationRecipe(), {"training.sead": 3})


def test_recipe_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        TranslationRecipe().training.seed = 3  # type: ignore[misc]


@given(
    st.integers(1, 500), st.integers(1, 40), st.sampled_from(["sinusoidal", "learned"])
)
def test_width_rule(d_model: int, num_heads: int, positions: str) -> None:
    fits = d_model % num_heads == 0 and (positions == "learned" or d_model % 2 == 0)
    tree = {
        "model": {"d_model": d_model, "num_heads": num_heads, "positions": positions}
    }
    if fits:
        assert build_recipe(tree).model.dim_of_head * num_heads == d_model
    else:
        assert problems(tree)[0].startswith("my.toml: model: ")


def test_a_recipe_says_only_what_differs_from_the_one_that_it_extends(
    tmp_path: Path,
) -> None:
    (tmp_path / "base.toml").write_text(
        "[training]\nmax_steps = 7\nseed = 5\n[tokenizer.src]\nvocab_size = 300\n"
    )
    (tmp_path / "own.toml").write_text(
        'extends = "base.toml"\n[training]\nseed = 6\n[tokenizer.src]\nkind = "bpe"\n[model]\ndropout = 0.2\n'
    )
    settings = [
        "training.max_steps=7",
        "training.seed=6",
        "tokenizer.src.vocab_size=300",
        "model.dropout=0.2",
    ]
    assert load_recipe(str(tmp_path / "own.toml")) == load_recipe(
        None, [*settings, "tokenizer.src.kind=bpe"]
    )
    (tmp_path / "packaged.toml").write_text('extends = "en-de"\n[training]\nseed = 6\n')
    assert load_recipe(str(tmp_path / "packaged.toml")) == load_recipe(
        "en-de", ["training.seed=6"]
    )


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ('"own.toml"', "own.toml', which extends a recipe itself"),
        ('"other.toml"', "other.toml', which extends a recipe itself"),
        ('"none.toml"', "neither a file nor a packaged recipe"),
        ("3", "extends = 3: must be the name or the file of a recipe"),
    ],
)
def test_what_cannot_be_extended_is_refused_in_one_line(
    tmp_path: Path, base: str, message: str
) -> None:
    (tmp_path / "own.toml").write_text(f"extends = {base}\n")
    (tmp_path / "other.toml").write_text('extends = "own.toml"\n')
    with pytest.raises(UsageError) as caught:
        load_recipe(str(tmp_path / "own.toml"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_recipe_that_a_run_has_kept_is_a_recipe(tmp_path: Path) -> None:
    recipe, kept = load_recipe("en-de", ["training.seed=6"]), tmp_path / "recipe.json"
    kept.write_text(json.dumps({"run": "1", "recipe": recipe.model_dump(mode="json")}))
    assert load_recipe(str(kept)) == recipe
    for broken in ("{", "[]", '{"training": {}}'):
        kept.write_text(broken)
        with pytest.raises(UsageError, match=r"recipe\.json: not "):
            load_recipe(str(kept))


def sides(recipe: Recipe) -> tuple[SideSection, SideSection]:
    assert isinstance(recipe, TranslationRecipe)
    return recipe.tokenizer.src, recipe.tokenizer.tgt


def test_a_tokenizer_key_for_both_sides_is_that_of_either_side() -> None:
    shared = {"kind": "word", "vocab_size": 400}
    tree = {"tokenizer": {**shared, "src": {"words": "nltk", "vocab_size": 500}}}
    src, tgt = sides(build_recipe(tree))
    assert src == SideSection(kind="word", words="nltk", vocab_size=500)
    assert tgt == SideSection(kind="word", vocab_size=400)
    section = TokenizerSection.model_validate(
        {**shared, "tgt": SideSection(lowercase=True)}
    )
    assert section.tgt == SideSection(kind="word", vocab_size=400, lowercase=True)
    dumped = section.model_dump(mode="json")
    assert dumped.keys() == {"joint", "src", "tgt"}
    assert TokenizerSection.model_validate(dumped) == section


def test_a_later_key_for_both_sides_takes_the_place_of_either_sides_own(
    tmp_path: Path,
) -> None:
    """Set on the command line, in an extending recipe, or in a recipe that a run has kept."""
    src, tgt = sides(load_recipe("en-zh", ["tokenizer.kind=byte"]))
    assert (src.kind, tgt.kind) == ("byte", "byte")
    assert (src.vocab_size, tgt.simplified) == (4000, True)
    own = tmp_path / "own.toml"
    own.write_text('extends = "en-zh"\n[tokenizer]\nkind = "byte"\nsrc.kind = "bpe"\n')
    src, tgt = sides(load_recipe(str(own)))
    assert (src.kind, tgt.kind) == ("bpe", "byte")
    kept = with_values(load_recipe("en-zh"), {"tokenizer.lowercase": True})
    assert [side.lowercase for side in sides(kept)] == [True, True]


def test_a_wrong_tokenizer_key_is_named_where_it_stands() -> None:
    found = problems({"tokenizer": {"kind": "bpee", "tgt": {"vocab_size": 1}}})
    assert found == [
        found[0],
        "my.toml: tokenizer.tgt.vocab_size = 1: must be a whole number from 260 to 1,000,000 or none",
    ]
    assert found[0].startswith("my.toml: tokenizer.kind = 'bpee': must be 'auto', ")
    assert problems({"tokenizer": {"words": "nltk"}}) == [
        "my.toml: tokenizer: words = 'nltk' needs kind = 'word', not 'auto'"
    ]
    (line,) = problems({"tokenizer": {"src": {"words": "nltk"}}})
    assert line.startswith("my.toml: tokenizer.src: words = 'nltk' needs")


RETIRED_IN_USE = {
    "batches.bpe_dropout": 0.1,
    "batches.word_dropout": 0.1,
    "model.layer_dropout": 0.2,
    "training.trackio": "essays",
}


def test_a_key_that_is_gone_is_left_out_with_the_value_that_changed_nothing() -> None:
    for key, gone in RETIRED.items():
        section, leaf = key.split(".")
        tree = {section: {leaf: gone.neutral}}
        assert build_recipe(tree) == TranslationRecipe()
    kept = {"training": {"precision": "tf32"}}
    assert build_recipe(kept).training.precision == "float32"


def test_a_key_that_is_gone_and_was_used_is_one_line_that_says_what_to_do() -> None:
    assert RETIRED_IN_USE.keys() == RETIRED.keys()
    for key, value in RETIRED_IN_USE.items():
        section, leaf = key.split(".")
        (line,) = problems({section: {leaf: value}})
        assert line.startswith(
            f"my.toml: {key} = {value!r}: no longer a key of recipes;"
        )
        assert "leave it out, or set it to " in line
        assert line.endswith("in the version that docs/experiments.md names")


def test_a_key_that_is_gone_is_listed_with_all_other_problems() -> None:
    tree = {"training": {"trackio": "essays", "seed": -1}}
    (gone, wrong) = problems(tree)
    assert "training.trackio = 'essays'" in gone
    assert "training.seed = -1" in wrong
    assert load_recipe(None, ["training.trackio=none"]) == TranslationRecipe()


def test_every_key_that_is_gone_has_a_row_in_the_experiments() -> None:
    page = (Path(__file__).parents[1] / "docs" / "experiments.md").read_text("utf-8")
    rows = page.partition("## Removed because it did not win")[2].split("\n")
    for key in RETIRED:
        assert [row for row in rows if f"`{key}`" in row and row.startswith("| ")]


def test_a_recipe_json_beside_the_folder_of_the_run_is_found(tmp_path: Path) -> None:
    run = tmp_path / "model" / "run"
    run.mkdir(parents=True)
    for name in ("config.json", "run/recipe.json"):
        (tmp_path / "model" / name).write_text("{}")
    with pytest.raises(UsageError) as caught:
        load_recipe(str(tmp_path / "model" / "recipe.json"))
    assert str(caught.value).endswith(f"did you mean {run / 'recipe.json'}?")
