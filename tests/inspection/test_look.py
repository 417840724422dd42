"""Every kind of model seen from inside: what is shown is what the model computes, recorded or
not.
"""

import json
import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import weft
from weft.config import CausalSection, ClassifierSection, Seq2SeqSection
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.engine.torch_steps import steps_of
from weft.errors import UsageError
from weft.inspection.beam import BeamTree, Node, grow_tree
from weft.inspection.classification import ClassificationInspection
from weft.inspection.language import LanguageInspection
from weft.inspection.look import inspect_text
from weft.inspection.report import write_report
from weft.inspection.translation import TranslationInspection
from weft.kernels.machine import Machine
from weft.model.attention import AttentionRecord
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.alignment import align_words
from weft.tasks.choice import load_trainable
from weft.tasks.trainable_translation import TrainableTranslation

PLAIN = Machine("cpu", "float32", 1, "tests are small")
WORDS = ["red", "blue", "small", "large", "warm", "cold"]
RUN = (
    "training.precision=float32",
    "training.kernels=torch",
    "training.threads=1",
    "training.max_steps=30",
)
SMALL = (
    "model.d_model=16",
    "model.d_ff=24",
    "model.num_heads=2",
    "training.learning_rate=0.02",
)
LANGUAGE = (
    "task=language-modelling",
    "model.num_decoder_layers=2",
    "batches.window_len=24",
    "data.dev_share=0.0",
)
LABELS = ("task=classification", "data.dev_size=0", "data.test_size=0")
KINDS: dict[str, tuple[str, ...]] = {
    "language": LANGUAGE,
    "language, n-grams": (
        *LANGUAGE,
        "model.ngrams=2",
        "model.ngram_buckets=50",
        "model.match_lengths=[2]",
        "model.embedding_norm=true",
    ),
    "language, packed and rotary": (
        *LANGUAGE,
        "batches.packing=packed",
        "model.positions=rotary",
    ),
    "classifier": (*LABELS, "model.num_encoder_layers=2"),
    "classifier by its first": (
        *LABELS,
        "model.num_encoder_layers=1",
        "model.norm_first=false",
        "model.embedding_norm=true",
        "model.pooling=first",
    ),
    "bag": (*LABELS, "model.num_encoder_layers=0"),
    "bag of n-grams": (
        *LABELS,
        "model.num_encoder_layers=0",
        "model.ngrams=3",
        "model.ngram_buckets=90",
    ),
    "bag, weighted": (
        *LABELS,
        "model.num_encoder_layers=0",
        "model.ngrams=3",
        "model.ngram_buckets=9000",
        "model.ngram_weights=log-count-ratio",
    ),
    "both": (
        *LABELS,
        "model.num_encoder_layers=1",
        "model.ngrams=2",
        "model.ngram_buckets=90",
    ),
}
CLASSIFIERS = [kind for kind, settings in KINDS.items() if settings[0] == LABELS[0]]
LANGUAGES = [kind for kind in KINDS if kind not in CLASSIFIERS]


@pytest.fixture(scope="module")
def task_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """A task of each kind, trained a little; made when first asked for."""
    here, made = tmp_path_factory.mktemp("kinds"), {}
    rows = [f"the {a} one was {b}" for a, b in product(WORDS, WORDS)]
    (here / "train.txt").write_text("".join(f"{row}\n\n" for row in rows))
    (here / "train.csv").write_text(
        "text,label\n" + "".join(f"{row},{row[-4:]}\n" for row in rows * 2)
    )

    def task(kind: str) -> Any:
        if kind not in made:
            out, file = here / kind, "train.csv" if kind in CLASSIFIERS else "train.txt"
            weft.train(
                out=out,
                train=str(here / file),
                settings=(*KINDS[kind], *SMALL, *RUN),
                quiet=True,
            )
            made[kind] = load_trainable(out, PLAIN)
        return made[kind]

    return task


@pytest.mark.parametrize(
    ("kind", "start", "beside", "ngrams"),
    [
        ("language, n-grams", "between", ["ngrams", "matches"], None),
        ("language, packed and rotary", "document", [], None),
        ("bag of n-grams", None, [], 3),
        ("classifier", None, [], 1),
    ],
)
def test_what_is_beside_a_tokens_own_vector_is_told(
    task_of: Callable[[str], Any],
    kind: str,
    start: str | None,
    beside: list[str],
    ngrams: int | None,
) -> None:
    data = inspect_text(task_of(kind), "the red one was").to_json()
    assert data["tokens"]["vectors"]["beside"] == beside
    assert (data.get("start"), data.get("ngrams")) == (start, ngrams)


@pytest.mark.parametrize("kind", LANGUAGES)
def test_a_language_model_shows_what_it_reads_and_expects(
    task_of: Callable[[str], Any], kind: str
) -> None:
    task = task_of(kind)
    found = inspect_text(task, "the red one was")
    assert isinstance(found, LanguageInspection)
    (tokenizer,) = task.tokenizers
    assert found.ids == [
        task.predictor().start_id,
        *tokenizer.encode("the red one was"),
    ]
    with torch.no_grad():
        expected = task.model(torch.tensor([found.ids]))[0].softmax(-1)
    for place, chosen in enumerate(found.chosen):
        assert chosen.id == found.ids[place + 1]
        assert chosen.probability == pytest.approx(
            expected[place, chosen.id].item(), abs=1e-6
        )
    assert [c.id for c in found.next] == expected[-1].topk(20).indices.tolist()
    assert found.decoder.shape == (2, 2, len(found.ids), len(found.ids))
    assert not np.triu(found.decoder, 1).any()
    np.testing.assert_allclose(found.decoder.sum(-1), 1, rtol=1e-5)
    assert (found.vectors.positions is None) == ("rotary" in kind)
    total = found.vectors.tokens + (
        0 if found.vectors.positions is None else found.vectors.positions
    )
    normed = found.vectors.normed
    assert (normed is not None) == task.config.model.embedding_norm
    expected_input = first_input(
        task.model, lambda: task.model(torch.tensor([found.ids]))
    )
    read = total if normed is None else normed
    np.testing.assert_allclose(read, expected_input, atol=1e-6)


def test_a_language_model_reads_line_breaks_as_they_stand(
    task_of: Callable[[str], Any],
) -> None:
    task = task_of("language")
    found = inspect_text(task, "the red\nwas\n")
    assert isinstance(found, LanguageInspection)
    assert found.text == "the red\nwas\n"
    assert found.ids[1:] == task.tokenizers[0].encode("the red\nwas\n")
    with pytest.raises(UsageError, match="no text to inspect"):
        inspect_text(task, " \n ")


@pytest.mark.parametrize("kind", ["bag", "classifier"])
def test_a_classifier_says_that_the_label_is_of_the_beginning(
    task_of: Callable[[str], Any], kind: str
) -> None:
    task = task_of(kind)
    found = inspect_text(task, "the red one was cold " * 60)
    assert isinstance(found, ClassificationInspection)
    assert found.notes == [
        f"the text was cut after {found.max_len} tokens; what is shown, the label too, is of these alone"
    ]
    assert len(found.ids) - found.max_len in (0, 1)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_classifier_shows_its_label_and_its_reasons(
    task_of: Callable[[str], Any], kind: str
) -> None:
    task, text = task_of(kind), "the red one was cold"
    found = inspect_text(task, text)
    assert isinstance(found, ClassificationInspection)
    (answer,) = task.predictor().classify(text)
    assert found.labels[0] == answer.label
    assert dict(zip(found.labels, found.probabilities, strict=True)) == pytest.approx(
        answer.probabilities, abs=1e-6
    )
    assert (len(found.encoder) == 0) == kind.startswith("bag")
    for reasons in found.contributions:
        label = task.config.labels.index(reasons.label)
        with torch.no_grad():
            whole = (
                task.model(torch.tensor([found.ids])).log_softmax(-1)[0, label].item()
            )
            for place in range(found.ids[0] == BOS_ID, len(found.ids)):
                rest = torch.tensor([found.ids[:place] + found.ids[place + 1 :]])
                fall = whole - task.model(rest).log_softmax(-1)[0, label].item()
                assert reasons.left_out[place] == pytest.approx(fall, abs=1e-5)


@pytest.mark.parametrize("kind", ["classifier", "classifier by its first", "bag"])
def test_gradient_times_vector_is_how_the_log_probability_grows_with_a_vector(
    task_of: Callable[[str], Any], kind: str
) -> None:
    """A token's vector made a little larger: the difference is what is shown."""
    task = task_of(kind)
    found = inspect_text(task, "the red one was cold")
    assert isinstance(found, ClassificationInspection)
    reasons, model, step = found.contributions[0], task.model, 1e-3
    label = task.config.labels.index(reasons.label)
    tables = (
        [model.encoder.embedding.tokens.weight] if model.encoder is not None else []
    )
    tables += [model.bag.tokens.weight] if model.bag is not None else []
    place = len(found.ids) - 1
    assert found.ids.count(found.ids[place]) == 1

    def log_prob(scale: float) -> float:
        with torch.no_grad():
            for table in tables:
                table[found.ids[place]] *= scale
            value = (
                model.double()(torch.tensor([found.ids]))
                .log_softmax(-1)[0, label]
                .item()
            )
            model.float()
            for table in tables:
                table[found.ids[place]] /= scale
        return value

    slope = (log_prob(1 + step) - log_prob(1 - step)) / (2 * step)
    assert reasons.gradient[place] == pytest.approx(slope, abs=2e-3)


def test_the_contributions_to_a_bag_add_up(task_of: Callable[[str], Any]) -> None:
    """Its logits are linear in the vectors, and so are contributions to a difference of two
    log-probabilities.
    """
    task = task_of("bag of n-grams")
    found = inspect_text(task, "the red one was cold")
    assert isinstance(found, ClassificationInspection)
    first, second = found.contributions[:2]
    places = [task.config.labels.index(c.label) for c in (first, second)]
    with torch.no_grad():
        a, b = (task.model(torch.tensor([found.ids]))[0] - task.model.projection.bias)[
            places
        ].tolist()
    assert sum(first.gradient) - sum(second.gradient) == pytest.approx(a - b, abs=1e-4)
    assert found.contributions[0].agreement == pytest.approx(
        torch.corrcoef(torch.tensor([first.gradient, first.left_out]))[0, 1].item(),
        abs=1e-4,
    )


def test_a_text_without_a_known_word_has_nothing_in_a_weighted_bag(
    task_of: Callable[[str], Any], tmp_path: Path
) -> None:
    """No token of it was met in training, so that all weights are 0: what is left is the
    projection's bias.
    """
    task = task_of("bag, weighted")
    found = inspect_text(task, "~~~ ###")
    assert isinstance(found, ClassificationInspection)
    assert not task.model.bag.token_weights[found.ids].any()
    bias = task.model.projection.bias.detach().softmax(-1)
    assert found.probabilities == pytest.approx(
        bias.sort(descending=True).values.tolist(), abs=1e-6
    )
    assert [set(reasons.gradient) for reasons in found.contributions] == [{0.0}] * len(
        found.contributions
    )
    write_report(found, tmp_path / "x.json")
    assert (
        json.loads((tmp_path / "x.json").read_text())["contributions"][0]["agreement"]
        is None
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_written(
    task_of: Callable[[str], Any], kind: str, tmp_path: Path
) -> None:
    found = inspect_text(task_of(kind), "the red one was " * 60)
    assert found.cut
    assert len(found.notes) == 1
    for name in ("page.html", "data.json"):
        write_report(found, tmp_path / name)
    assert json.loads((tmp_path / "data.json").read_bytes()) == found.to_json()
    with pytest.raises(UsageError, match="only translations have word alignments"):
        write_report(found, tmp_path / "words.pharaoh")
    with pytest.raises(UsageError, match="no text"):
        inspect_text(task_of(kind), " ")


def test_pictures_of_every_task(task_of: Callable[[str], Any], tmp_path: Path) -> None:
    pytest.importorskip(
        "matplotlib", reason="matplotlib (the extra plot) is not installed"
    )
    from weft.inspection.figure import write_figure
    from weft.inspection.pictures import draw_inspection

    for kind in ("language", "bag"):
        figure = draw_inspection(inspect_text(task_of(kind), "the red one was cold"))
        write_figure(figure, tmp_path / "picture.png")
        assert figure.get_suptitle()


def first_input(model: nn.Module, run: Callable[[], Any]) -> Tensor:
    """What the first layer is given."""
    seen: list[Tensor] = []
    hook = next(iter(model.decoder)).register_forward_pre_hook(
        lambda _, given: seen.append(given[0])
    )
    with torch.no_grad():
        run()
    hook.remove()
    return seen[0][0]


# The beam as a tree


@pytest.fixture(params=[1, 3, 5])
def tree(request: pytest.FixtureRequest, task: TrainableTranslation) -> BeamTree:
    return grow_tree(
        task,
        steps_of(task.model),
        [*task.tokenizers[0].encode("Wir gehen nach Hause ."), EOS_ID],
        request.param,
    )


def way(tree: BeamTree, node: Node) -> list[Node]:
    """The nodes from the start to this one."""
    before = [] if node.parent is None else way(tree, tree.nodes[node.parent])
    return [*before, node]


def test_a_tree_holds_the_beam_of_every_step(tree: BeamTree) -> None:
    for step in range(1, max(node.step for node in tree.nodes) + 1):
        kept = [node for node in tree.nodes if node.step == step]
        assert 1 <= len(kept) <= tree.beam_size
        assert [node.log_prob for node in kept] == sorted(
            (node.log_prob for node in kept), reverse=True
        )
    for node in tree.nodes:
        path = way(tree, node)
        assert [n.step for n in path] == list(range(1, node.step + 1))
        assert node.log_prob == pytest.approx(
            sum(math.log(n.probability) for n in path), abs=1e-4
        )


def test_a_branch_has_one_fate(tree: BeamTree) -> None:
    parents = {node.parent for node in tree.nodes}
    last = max(node.step for node in tree.nodes)
    for number, node in enumerate(tree.nodes):
        assert (number in parents) == (node.fate == "goes on")
        assert (node.score is not None) == (node.fate == "ended") == (node.id == EOS_ID)
        if node.fate == "open":
            assert node.step == last
        if node.fate == "dropped":
            assert node.step < last
        if node.score is not None:
            assert node.score == pytest.approx(
                node.log_prob / ((5 + node.step) / 6) ** tree.length_penalty, rel=1e-5
            )


def test_the_best_way_is_the_translation(
    task: TrainableTranslation, tree: BeamTree
) -> None:
    ids = [node.id for node in tree.nodes if node.is_best]
    row = [*task.tokenizers[0].encode("Wir gehen nach Hause ."), EOS_ID]
    found = task.predictor().search(row, tree.beam_size)
    assert ids == ([*found.ids, EOS_ID] if found.finished else found.ids)


def test_the_tree_of_an_inspection_is_in_its_file(
    inspection: TranslationInspection,
) -> None:
    tree = inspection.to_json()["beam"]
    assert tree["beam_size"] == inspection.beam.beam_size == 3
    assert [
        node["id"] for node in tree["nodes"] if node["is_best"]
    ] == inspection.tgt_ids


# Words


def test_words_are_aligned_by_what_their_tokens_look_at() -> None:
    src, tgt = (
        spelled(" I", " drink", " te", "a", ".", ""),
        spelled("我", "喝", "茶", "。", ""),
    )
    attention = looking_at([0, 1, 3, 5, 5], 6)
    attention[3, 4] = 0.5  # less than the end has, which is no word
    found = align_words(attention, tgt, src, (True, True))
    assert found.src == ["I", "drink", "tea", "."]
    assert found.tgt == ["我", "喝", "茶", "。"]
    assert found.pharaoh() == "0-0 1-1 2-2 3-3"
    assert found.lines() == ["我\tI", "喝\tdrink", "茶\ttea", "。\t."]
    assert align_words(attention[:1], [b""], src, (True, True)).pharaoh() == ""


def spelled(*pieces: str) -> list[bytes]:
    return [piece.encode() for piece in pieces]


def looking_at(places: Sequence[int], count: int) -> NDArray[np.float32]:
    return np.eye(count, dtype=np.float32)[list(places)]


def in_bytes(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (
            [
                b" ",
                *in_bytes("日本語"),
                b" ",
                *in_bytes("Ü"),
                b"n",
                *in_bytes("ï"),
                b"code",
            ],
            ["日本語", "Ünïcode"],
        ),
        (
            [*spelled("我", "吃"), *in_bytes("饕餮"), *spelled("了")],
            ["我", "吃", "饕餮", "了"],
        ),
        ([*spelled(" a", " ", "b", " ")], ["a", "b"]),
        (spelled("c", "a", "t", " ", "日", "本", "!"), ["cat", "日", "本", "!"]),
        ([b" be", *in_bytes("本")[:2]], ["be", "\N{REPLACEMENT CHARACTER}"]),
        ([b" "], []),
    ],
)
def test_a_word_in_bytes_is_spelled(pieces: list[bytes], words: list[str]) -> None:
    attention = looking_at(range(len(pieces)), len(pieces))
    found = align_words(attention, pieces, pieces, (False, False))
    assert found.src == found.tgt == words
    assert found.pairs == [(n, n) for n in range(len(words))]


def test_an_alignment_has_the_words_of_the_text(task: TrainableTranslation) -> None:
    found = inspect_text(task, "日本語 Ünïcode 😀")
    assert isinstance(found, TranslationInspection)
    assert any("[1/3]" in piece for piece in found.src_pieces)
    assert found.alignment.src == ["日本語", "Ünïcode", "😀"]


def test_alignments_are_written(
    inspection: TranslationInspection, tmp_path: Path
) -> None:
    for name in ("words.pharaoh", "words.txt"):
        write_report(inspection, tmp_path / name)
    assert (
        tmp_path / "words.pharaoh"
    ).read_text() == inspection.alignment.pharaoh() + "\n"
    assert (
        len((tmp_path / "words.txt").read_text().split("\n"))
        == len(inspection.alignment.tgt) + 1
    )


# Recorded attention is the fast path's


def models() -> dict[str, tuple[nn.Module, Sequence[Tensor]]]:
    torch.manual_seed(4)
    shape = {"d_model": 24, "d_ff": 40, "num_heads": 3, "dropout": 0.0}
    ids, others = torch.randint(4, 50, (3, 11)), torch.randint(4, 50, (3, 7))
    return {
        "translation": (
            Seq2SeqTransformer(Seq2SeqSection(**shape), 50, 50, True),
            (ids, others),
        ),
        "language": (CausalTransformer(CausalSection(**shape), 50), (ids,)),
        "classification": (
            TransformerClassifier(
                ClassifierSection(**shape, num_encoder_layers=2), 50, 4
            ),
            (ids,),
        ),
    }


@pytest.mark.parametrize("kernels", ["torch", "native"])
@pytest.mark.parametrize("kind", ["translation", "language", "classification"])
def test_recording_changes_neither_outputs_nor_gradients(
    kind: str, kernels: str, take_kernels: Callable[..., None]
) -> None:
    model, given = models()[kind]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    take_kernels(kernels == "native")
    record = AttentionRecord()

    def run(**how: Any) -> list[Tensor]:
        out = model(*given, **how)
        weights = torch.linspace(-1, 1, out.numel()).view(out.shape)
        return [
            out.detach(),
            *torch.autograd.grad((out * weights).sum(), list(model.parameters())),
        ]

    for fast, recorded in zip(run(), run(record=record), strict=True):
        assert (fast - recorded).abs().max() <= 1e-5 * max(1.0, float(fast.abs().max()))
    with torch.no_grad():
        torch.testing.assert_close(
            model(*given), model(*given, record=AttentionRecord()), rtol=1e-5, atol=1e-5
        )
    counts = [len(record.encoder), len(record.decoder), len(record.cross)]
    assert (
        counts
        == {
            "translation": [3, 3, 3],
            "language": [0, 4, 0],
            "classification": [2, 0, 0],
        }[kind]
    )
