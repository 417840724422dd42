"""A text in numbers."""

import numpy as np

from weft.data.check.summary import histogram, summarize
from weft.data.corpus import from_pairs


def test_a_histogram_counts_each_length_once() -> None:
    found = histogram(np.array([0, 1, 1, 3, 4, 150]))
    assert [(b["from"], b["to"], b["count"]) for b in found] == [
        (0, 0, 1),
        (1, 1, 2),
        (2, 4, 2),
        (5, 9, 0),
        (10, 19, 0),
        (20, 49, 0),
        (50, 99, 0),
        (100, 199, 1),
    ]


def test_a_summary_of_pairs() -> None:
    found = summarize(
        from_pairs([("one two", "eins"), ("three", "drei vier")], "p.tsv", "en", "de")
    )
    assert (found["rows"], found["files"], found["languages"]) == (
        2,
        ["p.tsv"],
        {"source": "en", "target": "de"},
    )
    source = found["columns"]["source"]
    assert (
        source["characters"]["total"],
        source["words"]["total"],
        source["words"]["longest"],
    ) == (12, 3, 2)
    assert source["scripts"] == {"LATIN": 11}
