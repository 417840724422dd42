"""The search of many sentences finds what the reference finds, whatever stands beside one."""

import math
import os
import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Event, Semaphore, Thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.decoding.decoder import (
    FREE,
    Floats,
    Hypothesis,
    Indices,
    Step,
    StepInput,
    TopK,
)
from weft.decoding.reference import beam_search
from weft.decoding.running import Search
from weft.decoding.sampling import Sampling
from weft.decoding.search import continuous_search, search_all, streamed_search
from weft.decoding.sentences import (
    BeamSettings,
    SampleSettings,
    Sentence,
    Waiting,
)
from weft.decoding.slots import Outcome
from weft.engine.batched import BatchedDecoder, Steps
from weft.errors import DivergedError, UsageError

BOS, EOS, V = 0, 1, 7


def log_probs_after(
    source: Sequence[int], prefix: Sequence[int], coarse: bool
) -> torch.Tensor:
    """Of the next token: random, the same for the same source and prefix; with `coarse`, many are
    equal.
    """
    return _log_probs_after((*source, -1, *prefix), coarse).clone()


@lru_cache(maxsize=20_000)
def _log_probs_after(text: tuple[int, ...], coarse: bool) -> torch.Tensor:
    generator = torch.Generator().manual_seed(hash(text) % 2**31)
    logits = 2 * torch.randn(V, generator=generator)
    if coarse:
        logits = logits.round()
    logits[EOS] -= 1.0
    return logits.log_softmax(-1)


@dataclass
class Scripted:
    """A decoder that keeps each token where it was made, and reads prefixes back by way of the
    ancestors.
    """

    num_sentences: int
    beam_size: int
    coarse: bool = False
    begins_together = False

    def __post_init__(self) -> None:
        self.sources: dict[int, Sequence[int]] = {}
        self.past: dict[tuple[int, int, int], int] = {}
        self.most_tokens = self.steps = 0

    def read(
        self,
        sentences: Sequence[int],
        sources: Sequence[Sequence[int]],
        allowed: Any = (),
    ) -> None:
        for sentence, source in zip(sentences, sources, strict=True):
            self.sources[sentence] = source

    def step(self, rows: StepInput, count: int, *, all_log_probs: bool = False) -> TopK:
        in_use = {int(sentence) for sentence in rows.sentences}
        self.most_tokens = max(
            self.most_tokens, sum(len(self.sources[sentence]) for sentence in in_use)
        )
        self.steps += 1
        columns = (rows.sentences, rows.beams, rows.positions, rows.tokens)
        standing = list(zip(*(column.tolist() for column in columns), strict=True))
        for sentence, beam, time, token in standing:
            self.past[sentence, time, beam] = token
        best, ids, everything, begin = [], [], [], 0
        free, nothing = [FREE] * len(rows), [0] * len(rows)
        lists = zip(
            standing,
            rows.ancestors.tolist(),
            nothing if rows.ban_ends is None else rows.ban_ends.tolist(),
            free if rows.forced is None else rows.forced.tolist(),
            strict=True,
        )
        for (sentence, _, time, token), before, end, forced in lists:
            prefix = [self.past[sentence, j, before[j]] for j in range(time)] + [token]
            assert prefix[0] == BOS
            found = log_probs_after(self.sources[sentence], prefix[1:], self.coarse)
            everything.append(found.tolist())
            found[rows.banned[begin:end].tolist()] = -math.inf
            begin = end
            if forced != FREE:
                ids.append([forced] + [0] * (count - 1))
                best.append([everything[-1][forced]] + [-math.inf] * (count - 1))
                continue
            order = sorted(range(V), key=lambda i: (-float(found[i]), i))[:count]
            missing = count - len(order)
            ids.append(order + [0] * missing)
            best.append([float(found[i]) for i in order] + [-math.inf] * missing)
        return (
            np.array(best, np.float32),
            np.array(ids, np.int32),
            np.array(everything, np.float32) if all_log_probs else None,
        )


class Batched:
    """The same probabilities for the search over batches: a cache of sources and prefixes."""

    def __init__(self, rows: list[tuple[Sequence[int], tuple[int, ...]]]) -> None:
        self.rows = rows

    def select(self, rows: Indices) -> "Batched":
        return Batched([self.rows[i] for i in rows.tolist()])


def advanced(coarse: bool) -> Step[Batched]:
    """The step over batches."""

    def step(ids: Indices, cache: Batched) -> tuple[Floats, Batched]:
        rows = [
            (source, (*prefix, i))
            for (source, prefix), i in zip(cache.rows, ids.tolist(), strict=True)
        ]
        log_probs = [log_probs_after(s, p[1:], coarse).numpy() for s, p in rows]
        return np.stack(log_probs), Batched(rows)

    return step


def reference(
    sentences: list[Sentence], beams: BeamSettings, coarse: bool = False
) -> list[list[Hypothesis]]:
    return beam_search(
        advanced(coarse), Batched([(s.ids, ()) for s in sentences]), bos_id=BOS, eos_id=EOS,
        max_lens=[s.max_len for s in sentences], beam_size=beams.beam_size,
        length_penalty=beams.length_penalty, n_best=beams.n_best, banned_ids=beams.banned_ids,
    )  # fmt: skip


def drawn(count: int, seed: int) -> list[Sentence]:
    draw = random.Random(seed)
    return [
        Sentence(
            i,
            [draw.randrange(100) for _ in range(draw.randint(1, 9))],
            draw.randint(1, 12),
        )
        for i in range(count)
    ]


def same(found: Hypothesis, expected: Hypothesis) -> bool:
    return (found.ids, found.finished) == (expected.ids, expected.finished) and all(
        np.allclose(getattr(found, name), getattr(expected, name), atol=1e-4)
        for name in ("log_prob", "score", "token_log_probs")
    )


BEAMS = [
    *(
        BeamSettings(BOS, EOS, k, alpha, n)
        for k, n in ((1, 1), (2, 1), (3, 3), (5, 2))
        for alpha in (0.0, 1.0, -0.7)
    ),
    BeamSettings(BOS, EOS, 3, 1.0, 2, banned_ids=(2, 5)),
    BeamSettings(BOS, EOS, 20, 0.6, 4),  # more than the vocabulary has
]


def own_steps(
    num_sentences: int, beams: BeamSettings, coarse: bool
) -> BatchedDecoder[Batched]:
    """A decoder over a model's own steps: sentences begin together, and rows of its cache are kept,
    reordered and repeated.
    """

    def prefill(sources: Sequence[Sequence[int]]) -> Batched:
        return Batched([(source, ()) for source in sources])

    engine = Steps(prefill, advanced(coarse))
    return engine.session(num_sentences, beams.beam_size)


@pytest.mark.parametrize(
    ("coarse", "counts"), [(False, (1, 4, 64)), (True, (4,))], ids=["fine", "coarse"]
)
def test_it_finds_what_the_reference_finds(
    coarse: bool, counts: tuple[int, ...], subtests: pytest.Subtests
) -> None:
    """With either kind of decoder, and more sentences than it has room for, or fewer."""
    sentences = drawn(23, seed=4)
    for beams in BEAMS:
        expected = reference(sentences, beams, coarse)
        for count in counts:
            decoders = (
                Scripted(count, beams.beam_size, coarse),
                own_steps(count, beams, coarse),
            )
            for decoder in decoders:
                with subtests.test(
                    kind=type(decoder).__name__, count=count, **vars(beams)
                ):
                    waiting = Waiting(sentences)
                    found = dict(continuous_search(decoder, waiting, beams, 1000))
                    assert sorted(found) == list(range(23))
                    for i, hypotheses in enumerate(expected):
                        assert len(found[i]) == len(hypotheses)
                        assert all(map(same, found[i], hypotheses))


def every_output(source: Sequence[int], limit: int) -> list[tuple[float, list[int]]]:
    """Every finished output of at most `limit` tokens with its log-probability, the most probable
    first.
    """
    found, open_ones = [], [(0.0, [])]
    for _ in range(limit):
        grown = [
            (log_prob + float(p), [*ids, token])
            for log_prob, ids in open_ones
            for token, p in enumerate(log_probs_after(source, ids, False))
        ]
        found += [(log_prob, ids[:-1]) for log_prob, ids in grown if ids[-1] == EOS]
        open_ones = [pair for pair in grown if pair[1][-1] != EOS]
    return sorted(found, key=lambda pair: -pair[0])


@pytest.mark.parametrize("prefix", [(), (4,), (2, 2, 6)], ids=str)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_wide_beam_finds_the_best_output_that_begins_so_and_repeats_nothing(
    prefix: tuple[int, ...], n: int
) -> None:
    """Against the enumeration of all outputs of up to four tokens; what is forced may repeat."""
    sentences = [Sentence(i, [i, 7 * i], 4, prefix) for i in range(4)]
    beams = BeamSettings(BOS, EOS, 400, 0.0, 1, no_repeat_ngrams=n)
    found = search_all(Engine(), sentences, beams)
    for sentence in sentences:
        best, first = found[sentence.number][0], len(prefix)
        allowed = (
            (log_prob, ids)
            for log_prob, ids in every_output(sentence.ids, 4)
            if tuple(ids[:first]) == prefix
            and not any(
                tuple(ids[i : i + n]) == tuple(ids[j : j + n])
                for i in range(len(ids))
                for j in range(max(i + 1, first - n + 1), len(ids) - n + 1)
                if n
            )
        )
        log_prob, ids = next(allowed)
        assert best.ids == ids
        assert best.log_prob == pytest.approx(log_prob, abs=1e-4)


def test_a_prefix_is_kept_over_a_models_own_steps_too() -> None:
    sentences = [Sentence(i, [i, 3], 6, [5, 2] if i % 2 else []) for i in range(9)]
    beams = BeamSettings(BOS, EOS, 3, 1.0, 2)
    decoder = own_steps(4, beams, coarse=False)
    theirs = dict(continuous_search(decoder, Waiting(sentences), beams, 99))
    for number, hypotheses in search_all(Engine(), sentences, beams).items():
        assert all(map(same, theirs[number], hypotheses))
        assert all(h.ids[:2] == [5, 2] for h in hypotheses if number % 2)


def test_the_longest_go_first_and_no_more_tokens_are_under_way_than_allowed() -> None:
    sentences = drawn(40, seed=3)
    decoder = Scripted(16, 2)
    assert (
        len(
            dict(
                continuous_search(
                    decoder, Waiting(sentences), BeamSettings(BOS, EOS, 2), 20
                )
            )
        )
        == 40
    )
    assert 9 < decoder.most_tokens <= 20
    waiting = Waiting(sentences)
    lens = sorted((len(s.ids) for s in sentences), reverse=True)
    assert [len(s.ids) for s in waiting.take(3, 100, False)] == lens[:3]
    assert [len(s.ids) for s in waiting.take(3, 2 * lens[3], False)] == lens[3:5]
    assert waiting.take(3, 5, False) == []
    assert len(waiting.take(3, 5, True)) == 1


def test_finished_sentences_make_room_for_waiting_ones() -> None:
    """Forty sentences of up to twelve tokens, four at a time: one batch after the other would take
    longer.
    """
    sentences = drawn(40, seed=5)
    decoder = Scripted(4, 1)
    found = dict(
        continuous_search(decoder, Waiting(sentences), BeamSettings(BOS, EOS), 1000)
    )
    lens = [
        len(found[s.number][0].token_log_probs)
        for s in Waiting(sentences).take(40, 1000, False)
    ]
    batch_by_batch = sum(max(lens[i : i + 4]) for i in range(0, 40, 4))
    assert sum(lens) / 4 <= decoder.steps < min(batch_by_batch, 1.3 * sum(lens) / 4)


class Engine:
    """Decoders of the same script; counts them."""

    def __init__(self, kind: type = Scripted) -> None:
        self.kind, self.made = kind, []

    def session(self, num_sentences: int, beam_size: int) -> Any:
        self.made.append(self.kind(num_sentences, beam_size))
        return self.made[-1]


@pytest.mark.parametrize("workers", [1, 2, 5, 100])
def test_several_workers_find_the_same(workers: int) -> None:
    sentences, beams, engine = (
        drawn(31, seed=7),
        BeamSettings(BOS, EOS, 3, 1.0, 2),
        Engine(),
    )
    found = search_all(engine, sentences, beams, workers)
    assert len(engine.made) == min(workers, 31)
    for i, hypotheses in enumerate(reference(sentences, beams)):
        assert all(map(same, found[i], hypotheses))
    assert search_all(engine, [], beams, workers) == {}


def test_one_worker_that_fails_ends_the_search() -> None:
    began = Event()

    class Failing(Scripted):
        def step(self, *args: Any, **more: Any) -> Any:
            if not began.is_set():
                began.set()
                raise MemoryError
            return super().step(*args, **more)

    engine = Engine(Failing)
    with pytest.raises(MemoryError):
        search_all(engine, drawn(2000, seed=8), BeamSettings(BOS, EOS), 2)
    # all 2,000 take some 700 at least
    assert sum(decoder.steps for decoder in engine.made) < 500


@pytest.fixture
def heeding_ctrl_c() -> Iterator[None]:
    """Also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding_ctrl_c")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_an_interrupted_search_ends_at_the_next_step(workers: int) -> None:
    """One Ctrl-C, though the sentences under way would take minutes more and others still wait."""
    begun = Semaphore(0)

    class Endless(Scripted):
        def step(self, *args: Any, **more: Any) -> Any:
            begun.release()
            best, ids, everything = super().step(*args, **more)
            best[ids == EOS] = -np.inf
            sleep(0.01)
            return best, ids, everything

    def press() -> None:
        for _ in range(3 * workers):
            begun.acquire()
        pressed.append(monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    pressed: list[float] = []
    engine, sentences = (
        Engine(Endless),
        [Sentence(i, [2, 3], 2000) for i in range(4 * workers)],
    )
    thread = Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        search_all(
            engine, sentences, BeamSettings(BOS, EOS, 2), workers, batch_tokens=8
        )
    assert monotonic() - pressed[0] < 2
    thread.join()
    done = sum(decoder.steps for decoder in engine.made)
    sleep(0.05)
    assert sum(decoder.steps for decoder in engine.made) == done < 1000


def test_what_is_no_number_is_told() -> None:
    class Broken(Scripted):
        def step(self, *args: Any, **more: Any) -> Any:
            best, ids, _ = super().step(*args, **more)
            return np.full_like(best, np.nan), ids, None

    with pytest.raises(DivergedError, match="no token has a finite probability"):
        search_all(Engine(Broken), drawn(3, seed=9), BeamSettings(BOS, EOS, 2))
    with pytest.raises(DivergedError, match="no token has a finite probability"):
        search_all(
            Engine(), drawn(3, seed=9), BeamSettings(BOS, EOS, 2, banned_ids=range(V))
        )


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="n_best = 3 and beam_size = 2"):
        BeamSettings(BOS, EOS, 2, n_best=3)
    with pytest.raises(UsageError, match="the output limit is 0 tokens"):
        search_all(Engine(), [Sentence(0, [3], 0)], BeamSettings(BOS, EOS))


# Running batches
# --------------------------------------------------------------------------------------


class Arrivals:
    """A line of which more and more may begin, in its order."""

    def __init__(self, sentences: Sequence[Sentence], at_once: bool = True) -> None:
        self.at_once, self.coming, self.here = at_once, list(sentences), []

    def arrive(self, count: int) -> None:
        self.here += self.coming[:count]
        del self.coming[:count]

    def take(self, count: int, room: int, at_least_one: bool) -> list[Sentence]:
        taken = self.here[:count]
        del self.here[:count]
        return taken


DEFAULT = BeamSettings(BOS, EOS)


def run(
    search: Search,
    sentences: Sequence[Sentence],
    arrivals: Sequence[int] = (99,),
    leave: dict[int, int] | None = None,
) -> dict[int, Outcome]:
    """What becomes of sentences of which so many arrive before each step, the rest at last, and
    some leave before the step that `leave` has for their number.
    """
    line, found, step = Arrivals(sentences), {}, 0
    coming = iter(arrivals)
    while True:
        line.arrive(next(coming, len(sentences)))
        for number, when in (leave or {}).items():
            if when == step and search.drop(number):
                found[number] = None
        step += 1
        if not search.fill(line) and not line.coming:
            return found
        found |= dict(search.advance())


def alone(sentence: Sentence, engine: Any = None) -> list[Hypothesis]:
    """What becomes of a sentence with nothing beside it, nor with any settings but its own."""
    bare = replace(sentence, settings=None)
    own = sentence.settings or DEFAULT
    return search_all(engine or Engine(), [bare], own)[sentence.number]


def sampled(count: int, seed: int, **sampling: Any) -> SampleSettings:
    return SampleSettings(
        BOS, EOS, count, 0.5, count, (), 0, Sampling(**sampling), seed
    )


MIXED = [
    BeamSettings(BOS, EOS),
    BeamSettings(BOS, EOS, 1, 1.0, banned_ids=(3, 5)),
    BeamSettings(BOS, EOS, 2, 0.6, 2),
    BeamSettings(BOS, EOS, 4, -0.7, 3, banned_ids=(2,), no_repeat_ngrams=1),
    BeamSettings(BOS, EOS, 4, 1.0, 1, no_repeat_ngrams=2),
    sampled(1, 7),
    sampled(3, 7, temperature=1.7),
    sampled(3, 8, temperature=0.4, top_k=4),
    sampled(2, 9, top_p=0.8, min_p=0.05),
    sampled(2, 9, temperature=0.0),
]
# ids, limit, prefix (which may be longer than the limit, or have an end), and which settings
PARTS = st.tuples(
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
    st.integers(1, 8),
    st.lists(st.sampled_from([EOS, 2, 3, 4, 5, 6]), max_size=3),
    st.integers(0, len(MIXED) - 1),
)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(PARTS, min_size=1, max_size=9),
    slots=st.integers(1, 6),
    arrivals=st.lists(st.integers(0, 3), max_size=12),
    leave=st.dictionaries(st.integers(0, 9), st.integers(0, 12), max_size=3),
    coarse=st.booleans(),
)
def test_beams_and_samples_of_any_settings_run_beside_each_other_as_each_does_alone(
    parts: list[tuple[list[int], int, list[int], int]],
    slots: int,
    arrivals: list[int],
    leave: dict[int, int],
    coarse: bool,
) -> None:
    """Bit for bit, in any order of arrival, while some leave; over a decoder of either kind."""

    def script(num_sentences: int, beam_size: int) -> Scripted:
        return Scripted(num_sentences, beam_size, coarse)

    def own(num_sentences: int, beam_size: int) -> BatchedDecoder[Batched]:
        return own_steps(num_sentences, BeamSettings(BOS, EOS, beam_size), coarse)

    sentences = [
        Sentence(number, ids, limit, prefix, (), MIXED[which])
        for number, (ids, limit, prefix, which) in enumerate(parts)
    ]
    for kind in (script, own):
        search = Search(kind(slots, 5), DEFAULT, 1000)
        found = run(search, sentences, arrivals, leave)
        assert sorted(found) == [sentence.number for sentence in sentences]
        for sentence in sentences:
            hypotheses = found[sentence.number]
            if hypotheses is None:
                assert sentence.number in leave
            else:
                assert hypotheses == alone(sentence, Engine(kind))


def test_files_of_several_settings_are_searched_as_one() -> None:
    """By several threads, those without settings of their own by those of the call."""
    beams = BeamSettings(BOS, EOS, 3, 1.0, 2)
    sentences = [
        replace(sentence, settings=[*MIXED, None][sentence.number % 11])
        for sentence in drawn(40, seed=10)
    ]
    found = search_all(Engine(), sentences, beams, workers=3, batch_tokens=60)
    for sentence in sentences:
        own = replace(sentence, settings=sentence.settings or beams)
        assert found[sentence.number] == alone(own)


def test_a_sentence_that_leaves_makes_room_at_once() -> None:
    search = Search(Scripted(2, 4), DEFAULT, 12)
    first, second, third = (
        Sentence(i, [i, 3, 5], 2000, (), (), MIXED[2]) for i in range(3)
    )
    search.begin([first, second])
    assert (search.active, search.free, search.room) == (2, 0, 6)
    list(search.advance())
    assert search.drop(0)
    assert not search.drop(0)
    assert (search.active, search.free, search.room) == (1, 1, 9)
    line = Arrivals([third])
    line.arrive(1)
    search.fill(line)
    assert (search.active, search.free, search.room) == (2, 0, 6)
    assert search.drop(1)
    assert search.drop(2)
    assert not search.fill(line)
    assert list(search.advance()) == []


@pytest.mark.parametrize("seed", range(4))
def test_who_stands_still_for_some_steps_becomes_the_same(seed: int) -> None:
    draw = random.Random(seed)
    sentences = [
        Sentence(i, [i, 3, 5], 9, (), (), draw.choice(MIXED)) for i in range(8)
    ]
    decoder = Scripted(8, 4)
    search = Search(decoder, DEFAULT, 1000)
    search.begin(sentences)
    found: dict[int, Outcome] = {}
    while search.active:
        some = draw.sample(range(8), draw.randint(0, 8))
        lengths = search.lengths.tolist()
        found |= dict(search.advance(some))
        for i in range(8):
            # which index it has is its number here
            if i not in found:
                assert search.lengths[i] == lengths[i] + (i in some)
    assert found == {sentence.number: alone(sentence) for sentence in sentences}


def test_who_asks_for_it_begins_at_once_beside_those_under_way() -> None:
    """A closed line waits until an eighth of the indices are free, an open one does not."""
    sentences = [Sentence(i, [i, 2], 2000) for i in range(17)]
    for at_once, active in ((True, 17), (False, 16)):
        search = Search(Scripted(17, 1), DEFAULT, 1000)
        search.begin(sentences[:16])
        line = Arrivals(sentences[16:], at_once)
        line.arrive(1)
        search.fill(line)
        assert search.active == active
    # what begins together waits until all before it are done
    batched = Search(own_steps(17, DEFAULT, False), DEFAULT, 1000)
    batched.begin(sentences[:1])
    assert batched.fill(line)
    assert batched.active == 1
    batched.drop(0)
    batched.fill(line)
    assert [int(number) for number in batched.numbers if number >= 0] == [16]


def test_a_row_that_is_no_number_ends_its_own_sentence_alone() -> None:
    """Whether at its first step or later, drawn or searched, and inside of a prefix."""

    class Poisoned(Scripted):
        def step(self, rows: StepInput, *args: Any, **more: Any) -> TopK:
            best, ids, everything = super().step(rows, *args, **more)
            for row, index in enumerate(rows.sentences.tolist()):
                poison = self.sources[index][0]
                if poison >= 100 and rows.positions[row] >= poison - 100:
                    best[row] = np.nan
                    if everything is not None:
                        everything[row] = np.nan
            return best, ids, everything

    sentences = [
        Sentence(
            i,
            [100 + i // 3 if i % 3 == 0 else i],
            9,
            [2, 3] if i % 2 else [],
            (),
            MIXED[i % len(MIXED)],
        )
        for i in range(20)
    ]
    found = run(Search(Poisoned(6, 4), DEFAULT, 1000), sentences, [3, 0, 4])
    harmed = {n for n, outcome in found.items() if isinstance(outcome, DivergedError)}
    assert len(harmed) >= 5
    assert harmed <= {sentence.number for sentence in sentences[::3]}
    for sentence in sentences:
        if sentence.number not in harmed:
            assert found[sentence.number] == alone(sentence)
    assert "NaN" in str(found[0])


class Cramped(Scripted):
    """Has no memory to read a source with 99 in it, nor for more than two at a time."""

    def read(self, indices: Any, sources: Any, allowed: Any = ()) -> None:
        if len(sources) > 2 or any(99 in source for source in sources):
            raise MemoryError
        super().read(indices, sources, allowed)


@pytest.mark.parametrize("together", [False, True])
def test_where_memory_does_not_suffice_to_read_only_those_fail_that_do_not_fit(
    together: bool,
) -> None:
    sentences = [Sentence(i, [99 if i in (3, 7) else i, 4], 9) for i in range(10)]
    decoder = Cramped(10, 1)
    decoder.begins_together = together
    found = run(Search(decoder, DEFAULT, 1000), sentences)
    failed = {n for n, outcome in found.items() if isinstance(outcome, MemoryError)}
    assert failed == {3, 7}
    for sentence in sentences:
        if sentence.number not in failed:
            assert found[sentence.number] == alone(sentence)


def test_where_memory_does_not_suffice_for_a_step_the_largest_sentence_ends() -> None:
    class Full(Scripted):
        def step(self, rows: StepInput, *args: Any, **more: Any) -> TopK:
            if len(rows) > 6:
                raise MemoryError
            return super().step(rows, *args, **more)

    sentences = [
        Sentence(i, [i, 4], 9, (), (), BeamSettings(BOS, EOS, 4 if i == 2 else 1))
        for i in range(5)
    ]
    found = run(Search(Full(5, 4), DEFAULT, 1000), sentences)
    assert isinstance(found.pop(2), MemoryError)
    assert found == {i: alone(sentences[i]) for i in (0, 1, 3, 4)}


def test_what_cannot_begin_harms_no_other() -> None:
    good = Sentence(0, [3, 4], 9)
    endless = Sentence(1, [3], 0)
    wide = Sentence(2, [3], 9, (), (), BeamSettings(BOS, EOS, 5))
    found = run(Search(Scripted(4, 4), DEFAULT, 1000), [endless, good, wide])
    assert found[0] == alone(good)
    assert "the output limit is 0 tokens" in str(found[1])
    assert "beam_size = 5: here it must be at most 4" in str(found[2])


def test_a_prefix_takes_one_step() -> None:
    sentence = Sentence(0, [3, 4], 12, [2, 5, 4, 2, 2, 6])
    decoder = Scripted(1, 3)
    (found,) = run(Search(decoder, DEFAULT, 99), [sentence]).values()
    assert decoder.steps == len(found[0].token_log_probs) - 6 + 1


@pytest.mark.parametrize("kind", ["scripted", "own steps"])
@pytest.mark.parametrize("prefix", [(), (3, 2)], ids=str)
def test_branches_go_on_greedily_each_as_if_its_token_were_part_of_the_prefix(
    kind: str, prefix: tuple[int, ...]
) -> None:
    """Bit for bit, beside sentences of other settings."""
    tokens = [4, 2, EOS, 6]
    settings = replace(sampled(4, 1, temperature=0.0), no_repeat_ngrams=2)
    branching = Sentence(0, [3, 4], 9, prefix, (), settings, None, tokens)
    others = [Sentence(i, [i, 8], 9, (), (), MIXED[i]) for i in range(1, 9)]

    def own(num_sentences: int, beam_size: int) -> BatchedDecoder[Batched]:
        return own_steps(num_sentences, BeamSettings(BOS, EOS, beam_size), False)

    made: Any = Scripted if kind == "scripted" else own
    found = run(Search(made(9, 4), DEFAULT, 1000), [*others, branching])
    greedy = BeamSettings(BOS, EOS, 1, 0.5, no_repeat_ngrams=2)
    for token, hypothesis in zip(tokens, found[0], strict=True):
        single = Sentence(0, [3, 4], 9, (*prefix, token), (), greedy)
        assert [hypothesis] == alone(single, Engine(made))
    assert found[1] == alone(others[0], Engine(made))


def test_each_sample_needs_its_own_branch() -> None:
    branching = Sentence(0, [3], 9, (), (), sampled(3, 1, temperature=0.0), None, [2])
    found = run(Search(Scripted(1, 3), DEFAULT, 99), [branching])
    assert "3 samples begin with 1 tokens" in str(found[0])


@dataclass
class Spelled:
    """A stem of tokens: 22 is said by 2 and 2, or by 5 at once."""

    def banned(self, tokens: Sequence[int]) -> Any:
        ways = [[2, 2], [5]]
        if any(list(tokens[: len(way)]) == way for way in ways):
            return None
        following = {way[len(tokens)] for way in ways if way[: len(tokens)] == tokens}
        return np.array(sorted(set(range(V)) - following), np.int32)


@pytest.mark.parametrize("beam_size", [1, 3, 40])
def test_a_stem_is_said_by_whichever_tokens_are_likeliest(beam_size: int) -> None:
    beams = BeamSettings(BOS, EOS, beam_size, 0.0, 1)
    ways = set()
    for number in range(6):
        sentence = Sentence(number, [number, 7], 4, [3], (), beams, Spelled())
        (hypothesis,) = alone(sentence)
        said = hypothesis.ids[1:]
        assert hypothesis.ids[0] == 3
        assert said[:2] == [2, 2] or said[0] == 5
        ways.add(said[0])
        if beam_size == 40:
            possible = (
                ids
                for _, ids in every_output(sentence.ids, 4)
                if ids[:1] == [3] and (ids[1:3] == [2, 2] or ids[1:2] == [5])
            )
            assert hypothesis.ids == next(possible)
    assert ways == {2, 5} or beam_size == 40


def test_a_stream_shows_a_prefix_and_each_token_after_it() -> None:
    sentence = Sentence(0, [3, 4], 12, [2, 5, 4])
    tokens = streamed_search(Scripted(1, 1), sentence, DEFAULT)
    (hypothesis,) = alone(sentence)
    whole = [*hypothesis.ids, EOS] if hypothesis.finished else hypothesis.ids
    assert list(tokens) == whole
    assert whole[:3] == [2, 5, 4]
