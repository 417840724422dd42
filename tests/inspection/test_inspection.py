"""What an inspection says is what the model does."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from weft.config import DecodingSection
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.errors import UsageError
from weft.inspection.tokens import MAX_TOKENS
from weft.inspection.translation import TranslationInspection, inspect_translation
from weft.model.attention import AttentionRecord
from weft.tasks.trainable_translation import TrainableTranslation


def tgt_in(inspection: TranslationInspection) -> list[int]:
    return [BOS_ID, *inspection.tgt_ids[:-1]]


def test_maps_have_every_layer_head_query_and_key(inspection):
    src_len, tgt_len = len(inspection.src_ids), len(inspection.tgt_ids)
    assert src_len != tgt_len
    assert inspection.encoder.shape == (2, 3, src_len, src_len)
    assert inspection.decoder.shape == (4, 3, tgt_len, tgt_len)
    assert inspection.cross.shape == (4, 3, tgt_len, src_len)


def test_maps_are_those_of_the_model_in_their_order(task, inspection):
    record = AttentionRecord()
    with torch.no_grad():
        task.model(
            torch.tensor([inspection.src_ids]),
            torch.tensor([tgt_in(inspection)]),
            record,
        )
    for mine, layers in (
        (inspection.encoder, record.encoder),
        (inspection.decoder, record.decoder),
        (inspection.cross, record.cross),
    ):
        assert len(mine) == len(layers)
        for of_mine, layer in zip(mine, layers, strict=True):
            np.testing.assert_allclose(of_mine, layer[0], atol=1e-5)
        heads = mine.reshape(-1, *mine.shape[2:])
        # or a wrong order would pass
        assert len(np.unique(heads, axis=0)) == len(heads)


def test_rows_sum_to_one_and_the_future_is_unseen(inspection):
    for maps in (inspection.encoder, inspection.decoder, inspection.cross):
        np.testing.assert_allclose(maps.sum(-1), 1, rtol=1e-5)
    assert not np.triu(inspection.decoder, 1).any()


def test_probabilities_are_the_softmax_of_the_logits(task, inspection):
    with torch.no_grad():
        logits = task.model(
            torch.tensor([inspection.src_ids]), torch.tensor([tgt_in(inspection)])
        )[0]
    expected = logits.softmax(-1)
    for place, (chosen, row) in enumerate(
        zip(inspection.chosen, inspection.alternatives, strict=True)
    ):
        assert chosen.id == inspection.tgt_ids[place]
        assert chosen.probability == pytest.approx(
            expected[place, chosen.id].item(), rel=1e-4
        )
        assert [c.probability for c in row] == pytest.approx(
            expected[place].topk(5).values.tolist(), rel=1e-4
        )
        assert [c.id for c in row] == expected[place].topk(5).indices.tolist()


def test_pieces_align_with_ids(task, inspection):
    assert inspection.src_ids == [*task.tokenizers[0].encode(inspection.text), EOS_ID]
    assert inspection.src_pieces == task.tokenizers[0].pieces(inspection.src_ids)
    assert inspection.tgt_pieces == task.tokenizers[1].pieces(inspection.tgt_ids)
    assert inspection.src_pieces[-1] == "<eos>"
    for row in inspection.alternatives:
        assert [c.piece for c in row] == [
            task.tokenizers[1].pieces([c.id])[0] for c in row
        ]


@pytest.mark.parametrize("beam_size", [None, 1, 4])
@pytest.mark.parametrize("text", ["Ich möchte eine Tasse Tee .", "  Der Tee ", "Wir"])
def test_translation_is_the_translators(task, text, beam_size):
    found = inspect_translation(task, text, beam_size)
    prediction = task.predictor().translate(text, beam_size=beam_size)[0]
    # an indent is the text's, not the model's
    assert found.translation == prediction.text.strip()
    assert found.finished is not prediction.truncated
    log_probs = torch.tensor([c.probability for c in found.chosen]).log()
    torch.testing.assert_close(
        log_probs, torch.tensor(prediction.token_log_probs), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("by_sentence", [True, False])
def test_of_a_text_that_is_divided_the_first_segment_is_shown(task, by_sentence):
    """Whether it is divided because the model reads single sentences or because it is long."""
    first = "Wir gehen nach Hause ."
    usual = len(task.tokenizers[0].encode(first)) + 1
    lengths = {"single_sentences": by_sentence, "usual_src_len": usual}
    here = replace(task, config=task.config.model_copy(update=lengths))
    text = f" {first}\nDer Tee ist heiß . "
    found = inspect_translation(here, text)
    alone = inspect_translation(here, first)
    (segments,) = {p.segments for p in here.predictor().translate([text])}
    assert (found.segments, alone.segments) == (segments, 1)
    assert segments > 1
    assert (found.text, found.src_ids) == (first, alone.src_ids)
    assert found.translation == alone.translation
    assert not found.cut
    assert found.notes[0] == (
        f"the text is translated in {segments} segments; what is shown, the translation too, "
        "is of the first alone"
    )
    assert len(alone.notes) == len(found.notes) - 1
    assert found.to_json()["segments"] == segments


@pytest.mark.parametrize("bias", [-100.0, 100.0])
def test_end_symbol_is_there_exactly_where_the_model_chose_it(task, bias):
    projection = task.model.projection
    with torch.no_grad():
        old = projection.bias[EOS_ID].item()
        projection.bias[EOS_ID] = bias
    try:
        found = inspect_translation(task, "Der Tee ist heiß .")
    finally:
        with torch.no_grad():
            projection.bias[EOS_ID] = old
    assert found.finished is (bias > 0)
    assert (EOS_ID in found.tgt_ids) is found.finished
    assert (found.tgt_ids == [EOS_ID]) is found.finished


def test_long_text_is_cut_and_that_is_said(task):
    short = "Tee " * (MAX_TOKENS // 4)
    ids = task.tokenizers[0].encode("Tee " * 400)
    found = inspect_translation(task, "Tee " * 400, beam_size=1)
    assert found.src_ids == [*ids[: MAX_TOKENS - 1], EOS_ID]
    assert found.cut
    assert found.max_src_len == MAX_TOKENS == found.cross.shape[-1]
    assert not inspect_translation(task, short, beam_size=1).cut


@pytest.mark.parametrize("room", [0, 1])
def test_text_is_cut_exactly_where_it_does_not_fit(task, room):
    ids = task.tokenizers[0].encode("Der Tee ist heiß .")
    narrow = replace(
        task, config=task.config.model_copy(update={"max_src_len": len(ids) + room})
    )
    found = inspect_translation(narrow, "Der Tee ist heiß .")
    assert found.max_src_len == len(found.src_ids) == len(ids) + room
    assert found.cut is (room == 0)


def test_model_in_training_is_inspected_without_dropout_and_goes_on_training(
    task, inspection
):
    task.model.train()
    try:
        found = inspect_translation(task, inspection.text)
        assert task.model.training
    finally:
        task.model.eval()
    assert np.array_equal(found.cross, inspection.cross)


@pytest.mark.parametrize("text", ["", "   ", "\n\t\r\n", "\u3000"])
def test_text_with_nothing_in_it_is_refused(task, text):
    with pytest.raises(UsageError, match="no text"):
        inspect_translation(task, text)


def test_impossible_beam_is_refused(task):
    with pytest.raises(UsageError, match="beam_size"):
        inspect_translation(task, "Tee", beam_size=0)


def test_lone_surrogate_in_the_text_can_be_written(task):
    assert inspect_translation(task, "Tee \ud800").text == "Tee \ufffd"


def test_json_holds_the_same_rounded(inspection):
    data = inspection.to_json()
    for kind in ("encoder", "decoder", "cross"):
        maps = np.array(data["attention"][kind])
        np.testing.assert_allclose(maps, getattr(inspection, kind), atol=5.1e-5)
    assert data["source"]["pieces"] == inspection.src_pieces
    assert data["source"]["ids"] == inspection.src_ids
    assert data["target"]["pieces"] == inspection.tgt_pieces
    assert data["target"]["probabilities"] == [
        round(c.probability, 4) for c in inspection.chosen
    ]
    assert [len(row) for row in data["target"]["alternatives"]] == [5] * len(
        inspection.tgt_ids
    )


def test_recipe_decides_the_beam_unless_told_otherwise(task: TrainableTranslation):
    decoding = DecodingSection(beam_size=1, max_len_extra=2, max_len_ratio=0.5)
    greedy = replace(task, config=task.config.model_copy(update={"decoding": decoding}))
    text = "Wir gehen nach Hause ."
    assert (
        inspect_translation(greedy, text).tgt_ids
        == inspect_translation(task, text, beam_size=1).tgt_ids
    )
    assert (
        inspect_translation(greedy, text).tgt_ids
        != inspect_translation(task, text).tgt_ids
    )


def test_a_recurrent_model_looks_across_alone(recurrent: TranslationInspection) -> None:
    shape = (1, 1, len(recurrent.tgt_ids), len(recurrent.src_ids))
    assert recurrent.cross.shape == shape
    np.testing.assert_allclose(recurrent.cross.sum(-1), 1, rtol=1e-5)
    maps = recurrent.to_json()["attention"]
    assert (maps["encoder"], maps["decoder"], len(maps["cross"])) == ([], [], 1)


def test_a_picture_of_one_head_is_no_mean(
    inspection: TranslationInspection, recurrent: TranslationInspection
) -> None:
    pytest.importorskip(
        "matplotlib", reason="matplotlib (the extra plot) is not installed"
    )
    from weft.inspection.pictures import draw_inspection

    assert "the mean of the heads" in draw_inspection(inspection).get_suptitle()
    alone = draw_inspection(recurrent)
    assert "mean" not in alone.get_suptitle()
    # nor is there a layer to be told from others
    assert [panel.get_title() for panel in alone.axes[:1]] == [""]
    assert alone.axes[-1].get_ylabel() == "attention weight"
