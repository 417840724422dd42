"""Beam search over any number of sentences: as one is done, the next takes its place.

It finds what `reference.beam_search` finds, with a decoder whose rows may stand at different
positions.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from weft.decoding.decoder import Decoder, Engine, Hypothesis
from weft.decoding.running import Search
from weft.decoding.sentences import BeamSettings, Sentence, Waiting
from weft.decoding.slots import Outcome

_MOST_SENTENCES = 256


def search_all(
    engine: Engine,
    sentences: Sequence[Sentence],
    settings: BeamSettings,
    workers: int = 1,
    batch_tokens: int = 4096,
) -> dict[int, list[Hypothesis]]:
    """Search with several threads; return each sentence's `n_best` hypotheses, best first, by its
    number: fewer where the beam met fewer.

    `settings` are those of sentences that have none of their own. The sentences that a thread works
    on have at most `batch_tokens` source tokens times the largest beam_size in all, but for a
    single one that has more. It takes the longest waiting ones where `Search.fill` starts them.
    Where a thread fails, or the caller is interrupted, all threads stop at their next step. Raises
    DivergedError where the logits of a row are not numbers.
    """
    waiting = Waiting(sentences)
    workers = max(1, min(workers, len(sentences)))
    own = [sentence.settings or settings for sentence in sentences]
    beam_size = max([each.beam_size for each in own], default=1)
    budget = max(1, batch_tokens // beam_size)
    total_len = sum(len(sentence.ids) for sentence in sentences)
    mean_len = total_len / max(len(sentences), 1)
    per_worker = -(-len(sentences) // workers)
    within_budget = round(budget / max(mean_len, 1))
    num_sentences = max(1, min(per_worker, within_budget, _MOST_SENTENCES))

    def work() -> dict[int, list[Hypothesis]]:
        try:
            decoder = engine.session(num_sentences, beam_size)
            return dict(continuous_search(decoder, waiting, settings, budget))
        except BaseException:
            waiting.stop()  # the others need not go on
            raise

    if workers == 1:
        return work()
    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = [pool.submit(work) for _ in range(workers)]
            hypotheses: dict[int, list[Hypothesis]] = {}
            for future in futures:
                hypotheses.update(future.result())
            return hypotheses
        except BaseException:  # Ctrl-C comes here, and the pool waits for its threads
            waiting.stop()
            raise


def continuous_search(
    decoder: Decoder, waiting: Waiting, settings: BeamSettings, budget: int
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield the number of each sentence and its `n_best` hypotheses, best first, as they are done:
    fewer where the beam met fewer.

    A stopped search yields no more. `budget` limits the source tokens of the active sentences.
    Raises DivergedError where the logits of a row are not numbers.
    """
    search = Search(decoder, settings, budget)
    while not waiting.stopped and search.fill(waiting):
        for number, outcome in search.advance():
            yield number, _hypotheses(outcome)


def streamed_search(
    decoder: Decoder, sentence: Sentence, settings: BeamSettings
) -> Iterator[int]:
    """Yield the tokens of a sentence's only hypothesis, eos too, each after its step.

    Raises as the search.
    """
    search = Search(decoder, settings, len(sentence.ids))
    waiting = Waiting([sentence])
    shown = 0
    while search.fill(waiting):
        for _, outcome in search.advance():
            _hypotheses(outcome)
        length = int(search.lengths[0])
        yield from search.tokens[0, 0, shown:length].tolist()
        shown = length


def _hypotheses(outcome: Outcome) -> list[Hypothesis]:
    """Return the hypotheses of a sentence; raise what it ended with where it has none."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
