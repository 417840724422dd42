"""A translator's rows in running batches: each becomes what `translate` gives, whatever is beside
it.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from weft.config import DecodingSection, Seq2SeqSection, SideSection
from weft.data.tokenizer import Tokenizer, train_tokenizer
from weft.engine.from_model import build_engine
from weft.engine.torch_steps import steps_of
from weft.errors import UsageError
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.prediction import Prediction
from weft.predict.rows import Member, Planned
from weft.predict.segments import RowLengths
from weft.predict.settings import DecodingSettings
from weft.predict.translator import Translator
from weft.serve.jobs import Caller, Job
from weft.serve.pool import Pool
from weft.serve.refusals import Broken, Gone
from weft.serve.searching import Searcher

LETTERS = "abcdefghijklmnopqrstuvwxyz ABC.!?"
TEXTS = ["a cat", "", "the dog", "One two. Three four five six! Seven?", "q", "A cat.", "zz"]  # fmt: skip
SETTINGS = [
    DecodingSettings(beam_size=1),
    DecodingSettings(beam_size=2, n_best=2, prefix="th"),
    DecodingSettings(beam_size=4, length_penalty=0.0, no_repeat_ngrams=2),
    DecodingSettings(temperature=1.2, n_best=2, seed=7),
    DecodingSettings(temperature=0.7, top_k=5, seed=8),
    DecodingSettings(beam_size=8, n_best=3),
    DecodingSettings(),
]


@cache
def letters() -> Tokenizer:
    return train_tokenizer([LETTERS] * 3, SideSection(kind="character", vocab_size=400))


@cache
def small(kind: str = "engine", poison: str = "") -> Translator:
    """With random weights; `kind` "steps" has no engine, a letter of `poison` is NaN."""
    torch.manual_seed(6)
    size = letters().vocab_size
    shape = Seq2SeqSection(
        d_model=24,
        d_ff=40,
        num_heads=3,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_len=48,
    )
    model = Seq2SeqTransformer(shape, size, size, joint=False).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(2.5)
        for letter in poison:
            (token,) = letters().encode(letter)
            model.src_embedding.tokens.weight[token] = np.nan
    engine = build_engine(model, "cpu", "float32") if kind == "engine" else None
    if engine is None and kind == "engine":
        pytest.skip("no compiler")
    return Translator(
        Member(model.max_len, steps_of(model), engine), letters(), letters(),
        decoding=DecodingSection(max_len_ratio=1.0, max_len_extra=2, beam_size=4),
        languages=("en", "en"), lengths=RowLengths(30, 20),
    )  # fmt: skip


def caller(seconds: float = 60.0) -> Caller:
    return Caller("someone", time.monotonic() + seconds)


def jobs_of(
    searcher: Searcher, planned: Planned, someone: Caller | None = None
) -> list[Job]:
    return searcher.jobs(planned.rows, planned.settings, someone or caller())


def assembled(searcher: Searcher, planned: Planned, results: Any) -> list[Prediction]:
    found = dict(zip(planned.rows, results, strict=True))
    return searcher.translator.assemble(planned, found)


def in_a_loop(work: Callable[[], Any]) -> Any:
    """Call it where there is an event loop, which jobs need."""

    async def call() -> Any:
        result = work()
        await asyncio.sleep(0)
        return result

    return asyncio.run(call())


@pytest.mark.parametrize("kind", ["engine", "steps"])
def test_rows_of_all_settings_become_what_translate_gives(kind: str) -> None:
    """In any order, while some stand still, and with fewer places than rows."""
    translator = small(kind)
    draw = random.Random(3)
    some = SETTINGS if kind == "engine" else SETTINGS[1:5]
    asked = [(text, settings) for settings in some for text in TEXTS]
    draw.shuffle(asked)
    searcher = Searcher(translator, most_rows=5, most_tokens=60)

    def work() -> dict[Any, Any]:
        plans = {pair: translator.plan([pair[0]], pair[1]) for pair in asked}
        jobs = {pair: jobs_of(searcher, plans[pair]) for pair in asked}
        waiting = [job for pair in asked for job in jobs[pair]]
        batch, running = searcher.new_batch(), []
        while waiting or running:
            some = waiting[: batch.room()]
            del waiting[: len(some)]
            batch.begin(some)
            running += some
            batch.step(draw.sample(running, draw.randint(1, len(running))))
            running = [job for job in running if not job.is_done]
        return {pair: (plans[pair], jobs[pair]) for pair in asked}

    async def answers() -> dict[Any, Any]:
        found = work()
        await asyncio.sleep(0)
        return {
            pair: assembled(searcher, planned, [job.future.result() for job in jobs])
            for pair, (planned, jobs) in found.items()
        }

    for (text, settings), predictions in asyncio.run(answers()).items():
        expected = translator.translate([text], settings)
        if kind == "engine":
            assert predictions == expected
        else:
            assert [p.text for p in predictions] == [p.text for p in expected]


def test_several_threads_search_for_several_clients() -> None:
    """The segments of a text may be in different threads' batches."""
    translator = small()
    searcher = Searcher(translator)
    text = " ".join(f"Sentence {chr(97 + i)} is here." for i in range(12))

    async def all_of(pool: Pool, settings: DecodingSettings) -> Any:
        planned = translator.plan([text, *TEXTS], settings)
        results = await pool.run(searcher, jobs_of(searcher, planned))
        return assembled(searcher, planned, results)

    async def work() -> Sequence[Any]:
        pool = Pool(2)
        try:
            return await asyncio.gather(
                *(all_of(pool, settings) for settings in SETTINGS)
            )
        finally:
            pool.stop()

    for settings, predictions in zip(SETTINGS, asyncio.run(work()), strict=True):
        assert predictions == translator.translate([text, *TEXTS], settings)


def run_all(searcher: Searcher, texts: Sequence[str], leave: Sequence[str]) -> Any:
    """Take the texts in, let some of them leave after a step, and run the others to their ends."""
    translator = searcher.translator
    plans = {text: translator.plan([text], beam_size=2) for text in texts}
    jobs: dict[str, list[Job]] = {
        text: jobs_of(searcher, plan) for text, plan in plans.items()
    }
    batch = searcher.new_batch()
    running = [job for text in texts for job in jobs[text]]
    batch.begin(running)
    batch.step(running)
    gone = [job for text in leave for job in jobs[text]]
    batch.drop(gone)
    running = [job for job in running if job not in gone]
    steps = 0
    while not all(job.is_done for job in running):
        steps += 1
        assert steps < 100
        batch.step(running)
    return plans, jobs, batch


def test_who_leaves_makes_room_and_changes_nothing_for_the_others() -> None:
    searcher = Searcher(small(), most_rows=4)

    async def work() -> Any:
        plans, jobs, batch = run_all(
            searcher, ["a cat", "the dog", "zz", "q", "qq"], ["the dog", "qq"]
        )
        await asyncio.sleep(0)
        assert batch.room() == 4
        assert not any(job.future.done() for job in jobs["the dog"] + jobs["qq"])
        return {
            text: assembled(
                searcher, plans[text], [job.future.result() for job in jobs[text]]
            )
            for text in ("a cat", "zz", "q")
        }

    for text, predictions in asyncio.run(work()).items():
        assert predictions == small().translate([text], beam_size=2)


def test_a_text_that_is_no_number_is_refused_alone() -> None:
    searcher = Searcher(small(poison="x"))

    async def work() -> Any:
        plans, jobs, _ = run_all(searcher, ["a cat", "tax", "zz"], [])
        await asyncio.sleep(0)
        (bad,) = jobs["tax"]
        assert isinstance(bad.future.exception(), Broken)
        return {
            text: assembled(searcher, plans[text], [jobs[text][0].future.result()])
            for text in ("a cat", "zz")
        }

    for text, predictions in asyncio.run(work()).items():
        assert predictions == small().translate([text], beam_size=2)


def test_what_cannot_run_beside_others_is_refused_before_it_waits() -> None:
    searcher = Searcher(small(), most_hypotheses=4)
    for settings, message in (
        (DecodingSettings(beam_size=6), "6 hypotheses of a text"),
        (DecodingSettings(temperature=1.0, n_best=5), "5 hypotheses of a text"),
        (DecodingSettings(exhaustive=2, n_best=3, prefix=""), "exhaustive"),
    ):
        planned = small().plan(["a cat"], settings)
        with pytest.raises(UsageError, match=message):
            in_a_loop(lambda planned=planned: jobs_of(searcher, planned))


def test_a_caller_that_has_left_ends_its_rows() -> None:
    searcher = Searcher(small())

    async def work() -> None:
        pool = Pool(1)
        try:
            someone = caller()
            planned = small().plan(["the dog " * 3] * 2 + TEXTS)
            jobs = jobs_of(searcher, planned, someone)
            pool.submit(searcher, jobs)
            someone.left.set()
            with pytest.raises(Gone):
                await pool.wait(jobs)
            while not pool.is_idle:
                await asyncio.sleep(0.01)
        finally:
            pool.stop()

    asyncio.run(work())
