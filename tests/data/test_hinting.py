"""Hints are written into a share of the pairs, the same ones each time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from weft.config import TokenizerSection
from weft.data import builtin
from weft.data.corpus import ParallelText, from_pairs
from weft.data.glossary import Entry, Glossary
from weft.data.hinting import MARKED, MATCHED, TERMS, Hinting
from weft.data.hints import Hints, target_ids
from weft.data.links import content_tokens, learn_links
from weft.data.phrases import Phrase, WordForms, find_phrases
from weft.data.store import ParallelStore, prepare_store
from weft.data.tokenizer import BOS_ID, EOS_ID, UNK_ID, Tokenizer, build_tokenizers

MAX_LEN = 60
NUM_PAIRS = 800


@pytest.fixture(scope="module")
def text() -> ParallelText:
    pairs = builtin.pairs("everyday", "de", "en").train[:NUM_PAIRS]
    return from_pairs(pairs, "everyday", "de", "en")


@pytest.fixture(scope="module")
def tokenizer(text: ParallelText) -> Tokenizer:
    section = TokenizerSection.model_validate({"kind": "bpe", "vocab_size": 1000})
    src, tgt = build_tokenizers(section, text.src, text.tgt, needs_joint=True)
    assert src is tgt
    return src


def _hinting(text: ParallelText, tokenizer: Tokenizer, **changed: object) -> Hinting:
    wanted = {"terms": 0.5, "memory": 0.0, "seed": 1, "max_len": MAX_LEN} | changed
    return Hinting(text, tokenizer, **wanted)  # type: ignore[arg-type]


def _hints(hinting: Hinting) -> list[Hints]:
    text, tokenizer = hinting.text, hinting.tokenizer
    ids = tokenizer.encode_batch(text.src), tokenizer.encode_batch(text.tgt)
    return list(hinting.hints(range(len(text)), *ids))


def _terms(hinting: Hinting, found: list[Hints]) -> Iterator[tuple[int, str, str]]:
    """Yield the number of a pair, and source and target of each of its terms."""
    decode = hinting.tokenizer.decode
    for number, hints in enumerate(found):
        ids = hinting.tokenizer.encode(hinting.text.src[number])
        for term in hints.terms:
            yield (
                number,
                decode(ids[term.begin : term.end]).strip(),
                decode(term.target),
            )


def _store(
    folder: Path, text: ParallelText, tokenizer: Tokenizer, hinting: Hinting | None
) -> ParallelStore:
    sides = (text.src, text.tgt)
    both = (tokenizer, tokenizer)
    return prepare_store(
        folder, "train", sides, both, max_len=MAX_LEN, text_key="k", hinting=hinting
    )


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.npy"))}


def test_terms_translate_words_of_their_pairs(
    text: ParallelText, tokenizer: Tokenizer
) -> None:
    hinting = _hinting(text, tokenizer)
    found = _hints(hinting)
    marked = [hints for hints in found if hints.terms]
    assert 0.4 * NUM_PAIRS < len(marked) < 0.55 * NUM_PAIRS
    assert {len(hints.terms) for hints in marked} == {1, 2, 3}
    assert hinting.counts[MARKED] == len(marked)
    assert hinting.counts[TERMS] == sum(len(hints.terms) for hints in marked)
    assert hinting.counts[MATCHED] == 0
    terms = list(_terms(hinting, found))
    assert all(
        source in text.src[n] and target in text.tgt[n] for n, source, target in terms
    )
    known = {"Hund": "dog", "Bahnhof": "station", "Café": "café", "Arzt": "doctor"}
    right = [target == known[source] for _, source, target in terms if source in known]
    assert len(right) > 5
    assert np.mean(right) > 0.9
    assert not any(source == target for _, source, target in terms)


def test_terms_of_a_script_without_spaces_are_runs_of_tokens() -> None:
    pairs = builtin.pairs("everyday", "en", "zh").train[:NUM_PAIRS]
    text = from_pairs(pairs, "everyday", "en", "zh")
    section = TokenizerSection.model_validate({"kind": "bpe", "vocab_size": 1500})
    tokenizer, _ = build_tokenizers(section, text.src, text.tgt, needs_joint=True)
    hinting = _hinting(text, tokenizer)
    terms = list(_terms(hinting, _hints(hinting)))
    assert all(
        source in text.src[n] and target in text.tgt[n] for n, source, target in terms
    )
    doctors = [target for _, source, target in terms if source == "doctor"]
    assert doctors
    assert set(doctors) == {"医生"}
    # as in the middle of a sentence, without a space
    assert target_ids(tokenizer, "医生") == tuple(tokenizer.encode_going_on("医生"))


def test_the_seed_chooses_the_pairs_and_their_terms(
    text: ParallelText, tokenizer: Tokenizer
) -> None:
    first = _hints(_hinting(text, tokenizer))
    assert _hints(_hinting(text, tokenizer)) == first
    assert _hints(_hinting(text, tokenizer, seed=2)) != first
    more = _hints(_hinting(text, tokenizer, terms=0.8))
    assert all(b == a for a, b in zip(first, more, strict=True) if a.terms)
    # pair by pair they are the same
    hinting = _hinting(text, tokenizer)
    ids = [tokenizer.encode_batch(side[:40]) for side in (text.src, text.tgt)]
    one_by_one = []
    for row in range(40):
        one_by_one += hinting.hints([row], *[side[row : row + 1] for side in ids])
    assert one_by_one == first[:40]


def test_matches_are_other_pairs(text: ParallelText, tokenizer: Tokenizer) -> None:
    hinting = _hinting(text, tokenizer, terms=0.0, memory=0.3)
    found = _hints(hinting)
    matched = [n for n, hints in enumerate(found) if hints.match]
    assert 0.15 * NUM_PAIRS < len(matched) < 0.35 * NUM_PAIRS
    assert hinting.counts[MATCHED] == len(matched)
    assert not any(hints.terms for hints in found)
    sources: dict[str, set[str]] = {}
    for source, target in zip(text.src, text.tgt, strict=True):
        sources.setdefault(target, set()).add(source)
    for n in matched:
        target = tokenizer.decode(found[n].match)
        assert sources[target] - {text.src[n]}


def test_hints_do_not_make_rows_too_long(
    text: ParallelText, tokenizer: Tokenizer
) -> None:
    room = 12
    hinting = _hinting(text, tokenizer, terms=1.0, memory=1.0, max_len=room)
    for ids, hints in zip(
        tokenizer.encode_batch(text.src), _hints(hinting), strict=True
    ):
        assert not hints or len(hints.write(ids)) <= room


def test_a_glossary_comes_first(text: ParallelText, tokenizer: Tokenizer) -> None:
    entries = (
        Entry(("Hund",), ("cat", "dog")),
        Entry(("Arzt",), ("physician",)),
        Entry(("Bahnhof",), ("railway station", "station"), ("depot",)),
    )
    hinting = _hinting(text, tokenizer, terms=1.0, glossary=Glossary(entries))
    found = _hints(hinting)
    terms = list(_terms(hinting, found))
    with_dogs = [n for n, line in enumerate(text.src) if "Hund " in line]
    assert with_dogs
    for n in with_dogs:
        own = [(source, target) for row, source, target in terms if row == n]
        assert ("Hund", "dog") in own
        assert {source for source, _ in own} <= {"Hund", "Arzt", "Bahnhof"}
    # no target of it stands in the pairs
    assert "physician" not in {target for _, _, target in terms}
    assert ("Arzt", "doctor") in {(source, target) for _, source, target in terms}
    assert hinting.key != _hinting(text, tokenizer, terms=1.0).key


def test_a_store_has_the_hints_in_its_sources(
    tmp_path: Path, text: ParallelText, tokenizer: Tokenizer
) -> None:
    hinting = _hinting(text, tokenizer, memory=0.3)
    found = _hints(_hinting(text, tokenizer, memory=0.3))
    store = _store(tmp_path, text, tokenizer, hinting)
    assert store.hinted == hinting.counts
    assert store.rows.tolist() == list(range(NUM_PAIRS))
    for n, source in enumerate(text.src):
        ids = tokenizer.encode(source)
        assert store.src(n).tolist() == found[n].write(ids)
        assert store.tgt(n).tolist() == tokenizer.encode(text.tgt[n])
    brackets = np.bincount(store.src_ids)[[UNK_ID, BOS_ID, EOS_ID]]
    num_terms = hinting.counts[TERMS]
    assert brackets.tolist() == [num_terms, hinting.counts[MATCHED], num_terms]


def test_a_store_is_made_anew_for_other_hints(
    tmp_path: Path, text: ParallelText, tokenizer: Tokenizer
) -> None:
    plain = _store(tmp_path / "plain", text, tokenizer, None)
    assert plain.hinted == {}
    none = _store(
        tmp_path / "none", text, tokenizer, _hinting(text, tokenizer, terms=0.0)
    )
    assert _files(tmp_path / "none") == _files(tmp_path / "plain")
    keys = {plain.key, none.key}
    first = _store(tmp_path / "some", text, tokenizer, _hinting(text, tokenizer))
    before = _files(tmp_path / "some")
    counts = first.hinted
    again = _hinting(text, tokenizer)
    second = _store(tmp_path / "some", text, tokenizer, again)
    # it was reused: nothing was written
    assert again.counts[TERMS] == 0
    assert second.hinted == counts
    keys.add(first.key)
    for changed in ({"terms": 0.1}, {"memory": 0.1}, {"seed": 2}):
        other = _store(
            tmp_path / "some", text, tokenizer, _hinting(text, tokenizer, **changed)
        )
        keys.add(other.key)
        assert _files(tmp_path / "some") != before
    assert len(keys) == 6


def test_tokens_that_go_together_are_linked() -> None:
    pairs = [([4, 5], [7, 8]), ([4, 6], [7, 9]), ([5, 6], [8, 9]), ([4], [7])] * 5
    content = np.array([False] * 4 + [True] * 6)
    links = learn_links(pairs, content, content)
    between = links.between(np.array([4, 5, 6]), np.array([7, 8, 9]))
    assert between.diagonal().min() > 0.6
    assert between.sum() - between.trace() < 0.1
    nothing = learn_links([], content, content)
    assert not nothing.between(np.array([4]), np.array([7])).any()


def test_content_tokens_have_letters_and_are_not_the_most_frequent() -> None:
    rows = [[4, 5]] * 9 + [[6 + n, 30] for n in range(20)]
    has_letter = np.ones(40, np.bool_)
    has_letter[7] = False
    found = np.flatnonzero(content_tokens(rows, has_letter)).tolist()
    # two of 23 different ones are the most frequent; 31 never occurs
    assert found == [5, 6, *range(8, 26)]


def test_neighbours_on_both_sides_make_one_phrase() -> None:
    first, second = Phrase(0, 1, 4, 5), Phrase(1, 3, 2, 4)
    assert first.joined(second) == Phrase(0, 3, 2, 5)
    assert first.joined(Phrase(2, 3, 5, 6)) is None
    assert first.joined(Phrase(1, 2, 6, 7)) is None


def test_phrases_end_where_words_do(text: ParallelText, tokenizer: Tokenizer) -> None:
    forms = WordForms.of(tokenizer)
    ids = np.array(tokenizer.encode("Café, unbekanntes Bahnhofscafé 我们"))
    words = forms.words(ids)
    spelled = [
        tokenizer.decode(ids[words == number]).strip()
        for number in range(int(words.max()) + 1)
    ]
    assert spelled[:4] == ["Café", ",", "unbekanntes", "Bahnhofscafé"]
    hinting = _hinting(text, tokenizer)
    src, tgt = tokenizer.encode(text.src[0]), tokenizer.encode(text.tgt[0])
    phrases = find_phrases(src, tgt, hinting._links, forms)
    assert phrases
    numbers = forms.words(np.array(src))
    for phrase in phrases:
        assert phrase.begin == 0 or numbers[phrase.begin - 1] != numbers[phrase.begin]
        assert phrase.end == len(src) or numbers[phrase.end - 1] != numbers[phrase.end]
