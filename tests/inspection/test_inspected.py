"""`model.inspect(text)`: arrays with named axes, files, and the page in a cell of a notebook."""

import copy
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import UsageError
from weft.inspection.named import Group, Named

TEXT = "My sister is drinking tea in the kitchen."
FRAME = re.compile(
    r'^<iframe title="([^"]+)" .*sandbox="allow-scripts" srcdoc="([^"]*)">'
)


@pytest.fixture(scope="module")
def seen() -> Any:
    return weft.load(weft.DEMO).inspect(TEXT)


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


# named arrays


def test_an_array_is_taken_by_the_names_of_its_axes() -> None:
    values = np.arange(24).reshape(2, 3, 4)
    named = Named(values, ("layer", "head", "token"))
    assert named.sizes == {"layer": 2, "head": 3, "token": 4}
    one = named.at(token=1, layer=-1)
    assert (one.axes, one.values.tolist()) == (("head",), [13, 17, 21])
    mean = named.mean("layer", "token")
    assert (mean.axes, mean.values.tolist()) == (("head",), [7.5, 11.5, 15.5])
    assert float(named.sum()) == 276
    assert np.asarray(named).tolist() == values.tolist()
    assert np.asarray(named, dtype=np.float32).dtype == np.float32
    assert (named[1, 2].tolist(), len(named)) == (values[1, 2].tolist(), 2)
    assert repr(named) == f"Named(layer 2, head 3, token 4; {values.dtype})"


def test_axes_and_places_that_are_not_there_are_refused() -> None:
    named = Named(np.zeros((2, 3)), ("layer", "head"))
    with pytest.raises(UsageError, match="no axis 'heads'; its axes are layer, head"):
        named.at(heads=1)
    with pytest.raises(UsageError, match="head = 3: there are 3, from 0 on"):
        named.at(head=3)
    with pytest.raises(UsageError, match="no axis 'key'"):
        named.mean("key")
    with pytest.raises(ValueError, match="an array of 2 axes"):
        Named(np.zeros((2, 3)), ("layer",))


def test_a_group_says_what_it_has() -> None:
    group = Group("attention", {"encoder": 1})
    assert (group.encoder, list(group), "cross" in group) == (1, ["encoder"], False)
    with pytest.raises(AttributeError, match=r"attention has no cross; .* is encoder"):
        _ = group.cross
    assert "encoder" in dir(group)


# what is in an inspection


def test_axes_are_those_of_the_text_and_the_model(seen: Any) -> None:
    config = json.loads((weft.DEMO / "config.json").read_text())["model"]
    layers = config["num_decoder_layers"]
    cross = seen.attention.cross
    sizes = {"layer": layers, "head": config["num_heads"], "target": len(seen.target)}
    assert cross.sizes == {**sizes, "source": len(seen.source)}
    assert np.allclose(cross.sum("source").values, 1, atol=1e-5)
    assert len(seen.lens.parts) == seen.lens.written.sizes["part"] == 3 * layers + 1
    assert seen.shares.values.axes == ("part", "target")
    assert seen.logits.ids.axes == ("target", "rank")
    assert seen.looks.cross.query.axes == ("layer", "query", "head", "number")


def test_the_numbers_belong_together(seen: Any) -> None:
    """Looks give the weights, shares the logit, the lens ends in the model's own output."""
    look = seen.looks.cross
    query, key = look.query.values, look.key.values
    scores = np.einsum("lthd,lshd->lhts", query, key) / np.sqrt(query.shape[-1])
    assert np.allclose(softmax(scores), seen.attention.cross, atol=1e-4)
    shares = seen.shares
    logit = shares.logit.values
    assert np.allclose(shares.values.sum("part"), logit, atol=1e-3)
    parts = np.array(shares.parts)
    of_layers = [shares.values[parts == f"{layer} · cross"] for layer in (1, 2)]
    of_source = sum(of_layers)
    assert np.allclose(of_source[0], shares.source, atol=1e-3)
    assert np.allclose(
        shares.cross.sum("layer", "head", "source"), of_source[0], atol=1
    )
    probabilities = np.array(seen.target.probabilities)
    assert np.allclose(seen.lens.written.at(part=-1), probabilities, atol=1e-6)
    best = seen.pieces(seen.lens.ids.at(part=-1, rank=0))
    assert best == seen.target.pieces
    whole = np.logaddexp(
        np.logaddexp.reduce(seen.logits.logits.values, axis=-1), seen.logits.rest
    )
    top = np.exp(seen.logits.logits.values[:, 0] - whole)
    assert np.allclose(top, probabilities, atol=1e-3)


def test_a_classifier_and_a_language_model_have_their_own(
    tiny_models: dict[str, Path],
) -> None:
    plays = weft.load(tiny_models["plays"]).inspect("What say you?")
    assert plays.task == "language-modelling"
    assert plays.attention.decoder.axes == ("layer", "head", "query", "key")
    assert np.allclose(plays.shares.values.sum("part"), plays.shares.logit, atol=1e-3)
    assert len(plays.tokens) == plays.lens.written.sizes["target"]
    with pytest.raises(AttributeError, match="language-modelling has no translation"):
        _ = plays.translation
    labels = weft.load(tiny_models["languages"]).inspect("A beer.")
    assert sum(labels.labels.values()) == pytest.approx(1, abs=1e-3)
    assert labels.shares.values.axes == ("label", "part")
    assert np.allclose(labels.shares.values.sum("part"), labels.shares.logit, atol=1e-3)
    for one in (plays, labels):
        json.dumps(one.to_dict())
        assert repr(one).split("\n") == one.lines()


# files and pages


def test_it_is_saved_in_every_form(seen: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    for suffix, start in {
        "html": b"<!doctype html>",
        "json": b'{"format":"weft-inspection"',
        "png": b"\x89PNG",
        "svg": b"<?xml",
        "txt": "我\t".encode(),
        "pharaoh": b"0-0 ",
    }.items():
        seen.save(tmp_path / f"x.{suffix}")
        assert (tmp_path / f"x.{suffix}").read_bytes().startswith(start)
    assert json.loads((tmp_path / "x.json").read_bytes()) == seen.to_dict()
    with pytest.raises(UsageError, match=r"x\.pdf: the name must end in \.html"):
        seen.save(tmp_path / "x.pdf")
    assert weft.plot(seen).to_dict()["panels"][0]["images"]


def test_in_a_notebook_it_is_the_page_in_a_frame(seen: Any, tmp_path: Path) -> None:
    seen.save(tmp_path / "page.html")
    frame = FRAME.match(seen._repr_html_())
    assert frame is not None
    assert html.unescape(frame[2]) == (tmp_path / "page.html").read_text("utf-8")
    assert TEXT in html.unescape(frame[1])


def test_the_page_works_in_the_frame(
    seen: Any, browser: Any, watch: Any, tmp_path: Path
) -> None:
    """As in a notebook: the cell's HTML in a page of another origin, which it cannot reach."""
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><p>A cell</p>{seen._repr_html_()}", "utf-8")
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    watch(page, notebook.as_uri(), "about:srcdoc")
    page.goto(notebook.as_uri())
    inner = page.frame_locator("iframe")
    inner.locator("#ribbon button").nth(len(seen.source) + 3).click()
    inner.locator("h2").first.wait_for()
    assert page.locator("iframe").bounding_box()["height"] <= 0.85 * 900 + 2
    frame = page.frames[1]
    assert frame.evaluate("document.querySelectorAll('section').length") > 3
    reaches = "(() => { try { return !!parent.document } catch { return false } })()"
    assert frame.evaluate(reaches) is False
    first = frame.locator("#rail a").first
    if first.count():
        first.click()
        assert frame.evaluate("location.href").startswith("about:srcdoc")
    page.close()


# several


def test_several_texts_make_a_sequence_of_inspections(
    seen: Any, tmp_path: Path
) -> None:
    """Each is as if it were alone."""
    texts = [TEXT, "My mother is reading a book."]
    model = weft.load(weft.DEMO)
    both = model.inspect(texts)
    assert isinstance(both, weft.Inspections)
    assert (both.kind, both.names, both.notes) == ("sentences", texts, [])
    assert [one.text for one in both] == texts
    assert (len(both), both[-1].text, len(both[:1])) == (2, texts[1], 1)
    assert both[0].to_dict() == seen.to_dict()
    short = model.inspect(texts, tokens=4)
    assert [len(one.source) for one in short] == [4, 4]
    assert repr(both).split("\n") == both.lines()
    assert set(seen.lines()) < set(both.lines())
    titles = [
        FRAME.match(found._repr_html_())[1] for found in (both, model.inspect([TEXT]))
    ]
    assert titles == [f"What the model does with {what}" for what in ("2 texts", TEXT)]
    again = copy.deepcopy(both)
    assert again[0].attention.cross.sizes == seen.attention.cross.sizes
    assert copy.copy(both).names == texts
    both.save(tmp_path / "x.json")
    data = json.loads((tmp_path / "x.json").read_bytes())
    assert data == both.to_dict()
    assert (data["format"], len(data["inspections"])) == ("weft-inspections", 2)


def test_two_models_have_a_pair_of_the_same_tokens(tiny_folder: Path) -> None:
    found = weft.inspect_models(tiny_folder, str(tiny_folder), "cat sees dog.")
    assert found.names == [str(tiny_folder)] * 2
    first, second = (found[place] for place in found.pair)
    assert first.target.pieces == second.target.pieces
    assert "pair" in dir(found)
    with pytest.raises(AttributeError, match="inspections of models have no steps"):
        _ = found.steps


def test_several_show_themselves_in_a_cell(
    tiny_folder: Path, browser: Any, watch: Any, tmp_path: Path
) -> None:
    found = weft.inspect_models(tiny_folder, tiny_folder, "cat sees dog.")
    frame = FRAME.match(found._repr_html_())
    assert frame is not None
    assert frame[1] == "What two models do with: cat sees dog."
    found.save(tmp_path / "page.html")
    assert html.unescape(frame[2]) == (tmp_path / "page.html").read_text("utf-8")
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html>{found._repr_html_()}", "utf-8")
    page = browser.new_page()
    watch(page, notebook.as_uri(), "about:srcdoc")
    page.goto(notebook.as_uri())
    page.frame_locator("iframe").locator("section h2").first.wait_for()
    page.close()


# refusals


def test_what_several_cannot_do_is_refused(
    tiny_folder: Path, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    model = weft.load(weft.DEMO)
    with pytest.raises(UsageError, match="no text to inspect; give a sentence, or sev"):
        model.inspect([])
    with pytest.raises(UsageError, match="there is no text to inspect"):
        model.inspect([TEXT, " "])
    with pytest.raises(UsageError, match="give two models of one task"):
        weft.inspect_models(weft.DEMO, tiny_models["plays"], TEXT)
    with pytest.raises(UsageError, match=r"inspect takes no size; its limits are"):
        weft.inspect_checkpoints(tiny_folder, TEXT, size=3)
    several: Any = [TEXT, TEXT]
    with pytest.raises(UsageError, match="text: give one text here"):
        weft.inspect_checkpoints(tiny_folder, several)
    with pytest.raises(UsageError, match="text: give one text here"):
        weft.inspect_models(tiny_folder, tiny_folder, several)
    found = model.inspect([TEXT, TEXT])
    with pytest.raises(UsageError, match=r"x\.png: the name must end in \.html"):
        found.save(tmp_path / "x.png")
    with pytest.raises(UsageError, match=r"a picture is of one inspection; give found"):
        weft.plot(found)


def test_what_cannot_be_inspected_is_refused() -> None:
    model = weft.load(weft.DEMO)
    with pytest.raises(UsageError, match="there is no text to inspect"):
        model.inspect("  ")
    with pytest.raises(
        UsageError, match=r"inspect takes no size; its limits are tokens"
    ):
        model.inspect(TEXT, size=3)
    with pytest.raises(UsageError, match="limits: labels = 0: it must be at least 1"):
        model.inspect(TEXT, labels=0)
    with pytest.raises(UsageError, match=r"only a model that weft\.load gave"):
        model.ensemble(model).inspect(TEXT)
    short = model.inspect(TEXT, tokens=4)
    assert (len(short.source), len(short.notes)) == (4, 1)
