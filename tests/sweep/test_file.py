"""The file of a sweep: rows, grids, texts; what is wrong is said in a line with file and key."""

from pathlib import Path

import pytest

from weft.errors import UsageError
from weft.sweep.file import Sweep, read_sweep


def read(folder: Path, content: str) -> Sweep:
    (folder / "widths.toml").write_text(content, "utf-8")
    return read_sweep(folder / "widths.toml")


def test_rows_have_what_is_common_and_what_is_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.en").touch()
    found = read(
        tmp_path,
        'train = ["a.en,a.de", "b.tsv@2:b"]\nrecipe = "en-de"\nminutes = 2\nseeds = [3, 1]\n'
        "settings.training.max_steps = 5\nsettings.model.dropout = 0.1\n"
        "[rows.base]\n[rows.wide]\nminutes = 4.5\nmodel.d_model = 64\n"
        '"model.dropout" = 0.3\nrecipe = "own.toml"\n',
    )
    assert found.seeds == (3, 1)
    assert found.output == Path("runs/widths")
    (text,) = found.texts
    assert text.name == "a"
    assert text.train == (
        f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}",
        f"{tmp_path / 'b.tsv'}@2:b",
    )
    base, wide = found.rows
    assert (base.name, base.recipe, base.minutes) == ("base", "en-de", 2)
    assert (wide.recipe, wide.minutes) == (str(tmp_path / "own.toml"), 4.5)
    assert base.settings == {"training.max_steps": 5, "model.dropout": 0.1}
    assert wide.settings == {**base.settings, "model.dropout": 0.3, "model.d_model": 64}
    assert found.settings(text, wide, {"training.seed": 3})[-2:] == [
        "model.d_model=64",
        "training.seed=3",
    ]


def test_the_file_of_the_page_is_read(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "sweeps.md"
    _, _, block = page.read_text("utf-8").partition("```toml\n")
    found = read(tmp_path, block.partition("```")[0])
    assert [row.name for row in found.rows] == ["eight", "one"]
    (text,) = found.texts
    assert found.settings(text, found.rows[1], {}) == [
        "training.max_steps=3000",
        "model.num_heads=1",
    ]


def test_a_grid_makes_a_row_of_each_combination(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '[rows.base]\n[grid]\nmodel.d_model = [8, 16]\ntokenizer.src.kind = ["word", "bpe"]\n'
        'tokenizer.tgt.kind = ["word"]\n',
    )
    names = [row.name for row in found.rows]
    assert names == [
        "base",
        "d_model=8,tokenizer.src.kind=word,tokenizer.tgt.kind=word",
        "d_model=8,tokenizer.src.kind=bpe,tokenizer.tgt.kind=word",
        "d_model=16,tokenizer.src.kind=word,tokenizer.tgt.kind=word",
        "d_model=16,tokenizer.src.kind=bpe,tokenizer.tgt.kind=word",
    ]
    assert found.rows[2].settings == {
        "model.d_model": 8,
        "tokenizer.src.kind": "bpe",
        "tokenizer.tgt.kind": "word",
    }


def test_several_texts_have_names_and_settings(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        'output = "out"\n[data.small]\ntrain = "s.tsv"\ntest = "t.tsv"\nsettings.data.src_lang = "en"\n'
        '[data.large]\ntrain = "l.tsv"\n[rows.a]\ndata.src_lang = "de"\n[rows.b]\n',
    )
    assert found.output == tmp_path / "out"
    small, large = found.texts
    assert (small.name, small.test, small.dev) == (
        "small",
        str(tmp_path / "t.tsv"),
        None,
    )
    assert large.settings == {}
    first, second = found.rows
    assert found.settings(small, first, {}) == ['data.src_lang="de"']
    assert found.settings(small, second, {}) == ['data.src_lang="en"']


def test_labels_are_no_keys(tmp_path: Path) -> None:
    """A weight by label is a table whose keys need not be words."""
    found = read(tmp_path, 'settings.training.class_weights = {"not good" = 2.0}\n')
    assert found.settings(found.texts[0], found.rows[0], {}) == [
        'training.class_weights={"not good" = 2.0}'
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x =", "not valid TOML"),
        ("seed = [1]", "unknown key seed; did you mean seeds?"),
        ("seeds = []", "seeds = []: must be a list"),
        ("seeds = [1, 2, 1]", "seeds: 1 is there 2 times"),
        ("seeds = [-1]", "seeds = [-1]: must be a list, each a whole number"),
        ("train = 1", "train = 1: must be a text or a list"),
        ("rows = 3", "rows = 3: must be"),
        ('[rows."a/b"]', "rows.a/b: a name is a folder's, too"),
        ("minutes = '3'", "minutes = '3': must be a number of at least 0.1"),
        ("[rows.a]\nminutes = 0", "rows.a.minutes = 0: must be a number"),
        ("[rows.a]\nrecipe = 7", "rows.a.recipe = 7: must be a recipe's name"),
        ("grid.model.d_model = 3", "grid.model.d_model = 3: give a list of values"),
        (
            "rows.a.training.seed = 3",
            "rows.a: training.seed: is set by seeds = [1, 2]; leave it out",
        ),
        ('[data.a]\ntrian = "x"', "unknown key data.a.trian; did you mean train?"),
        ('train = "x"\n[data.a]', "train: there is [data.a], too; put it there"),
        (
            '[grid]\nmodel.d_model = [8]\n[rows."d_model=8"]',
            "rows.d_model=8: is a row of the grid, too",
        ),
        (f"seeds = {list(range(10_001))}", "10,001 runs; at most 10,000"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    tmp_path: Path, content: str, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, content)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'widths.toml'}: {said}")
    assert "\n" not in message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.toml: cannot be read \(No such file"):
        read_sweep(tmp_path / "no.toml")
    (tmp_path / "latin.toml").write_bytes(b'train = "\xe4"')
    with pytest.raises(UsageError, match=r"latin\.toml: not UTF-8 at byte 9"):
        read_sweep(tmp_path / "latin.toml")
