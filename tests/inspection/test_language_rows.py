"""The rows on which language models are compared."""

from typing import Any, cast

import numpy as np
import pytest

from weft.config import SideSection
from weft.data.documents import Documents, from_documents
from weft.data.tokenizer import train_tokenizer
from weft.inspection.language_rows import losses_of_rows, rows_of
from weft.tasks.language_modelling import DocumentLosses, LanguageModelling

LINES = ["", "Die Katze schläft.", "", "  ", "Der Hund  bellt", "Ende"]
TEXT = "\n".join(LINES) + "\n\n"


class Uniform:
    """A model that gives every token and each end symbol a loss of 1."""

    def __init__(self, kind: str, **settings: Any) -> None:
        side = SideSection.model_validate({"kind": kind, **settings})
        self.tokenizers = (train_tokenizer([TEXT] * 9, side),)

    def losses_by_document(self, text: Documents) -> list[DocumentLosses]:
        found = []
        for document in text.texts:
            ids = np.array(self.tokenizers[0].encode(document), np.int64)
            found.append(DocumentLosses(ids, np.ones(len(ids) + 1)))
        return found

    def count(self, line: str) -> int:
        return len(self.tokenizers[0].encode(line))


def test_lines_have_all_bytes_and_documents_their_own_places() -> None:
    text = from_documents([TEXT, "x\ny"], "t")
    rows = rows_of(text)
    assert [row.text for row in rows] == [LINES[1], *LINES[4:], "x", "y"]
    assert [row.num_bytes for row in rows] == [25, 16, 6, 2, 1]
    assert sum(row.num_bytes for row in rows) == text.num_bytes
    assert [row.where for row in rows] == [f"line {n}" for n in range(1, 6)]
    many = rows_of(from_documents([TEXT] * 20, "t"))
    assert {row.num_bytes for row in many} == {len(TEXT.encode())}
    assert many[3].where == "t:4"


@pytest.mark.parametrize("kind", ["character", "byte", "bpe", "unigram", "word"])
def test_a_token_belongs_to_the_line_in_which_it_begins(kind: str) -> None:
    settings = {"vocab_size": 300} if kind in ("bpe", "unigram") else {}
    model = Uniform(kind, **settings)
    text = from_documents([TEXT, "Ende\nEnde"], "t")
    rows = rows_of(text)
    task = cast("LanguageModelling", model)
    nats, num_tokens = losses_of_rows(task, text, rows)
    np.testing.assert_array_equal(nats, num_tokens)
    total = model.count(TEXT) + model.count("Ende\nEnde") + 2
    assert num_tokens.sum() == total
    assert num_tokens[3] == model.count("Ende\n")
    assert num_tokens[:3].sum() == model.count(TEXT) + 1
