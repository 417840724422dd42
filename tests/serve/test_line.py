"""The fair line: who comes next, what is refused, and what a flood of one client does to others."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from weft.serve.jobs import Caller, Job
from weft.serve.line import Line
from weft.serve.pool import Load, Pool
from weft.serve.refusals import Gone, Overloaded, Stopping, TooLate
from weft.serve.running import Calls

CALLS = Calls("test")


def in_loop(test: Callable[[], Awaitable[Any]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for something; the bound is for machines that do much else."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        await asyncio.sleep(0.01)


def caller(name: str, seconds: float = 60.0) -> Caller:
    return Caller(name, time.monotonic() + seconds)


def jobs_of(name: str, count: int, **sizes: Any) -> list[Job]:
    whose = caller(name)
    return [Job(lambda: None, whose, **sizes) for _ in range(count)]


def test_clients_take_turns_whatever_they_have_waiting() -> None:
    async def test() -> None:
        line = Line(1)
        line.put(CALLS, jobs_of("many", 100))
        line.put(CALLS, jobs_of("few", 3))
        order = [job.client for job in line.take(CALLS, 6)]
        assert order.count("few") == 3
        assert len(line.take(CALLS, 1000)) == 97

    in_loop(test)


def test_what_counts_is_the_work_not_the_number_of_jobs() -> None:
    async def test() -> None:
        line = Line(1)
        line.put(CALLS, jobs_of("large", 10, cost=10))
        line.put(CALLS, jobs_of("small", 100, cost=1))
        order = [job.client for job in line.take(CALLS, 55)]
        assert 4 <= order.count("large") <= 6

    in_loop(test)


def test_a_client_gets_no_credit_for_the_time_before_it_came() -> None:
    async def test() -> None:
        line = Line(1)
        line.put(CALLS, jobs_of("first", 200))
        line.take(CALLS, 100)
        line.put(CALLS, jobs_of("late", 200))
        order = [job.client for job in line.take(CALLS, 40)]
        assert 19 <= order.count("late") <= 21

    in_loop(test)


def test_a_newcomer_steps_alone_until_it_has_caught_up() -> None:
    async def test() -> None:
        line = Line(1)
        line.put(CALLS, jobs_of("many", 60, width=4))
        running = line.take(CALLS, 60)
        line.put(CALLS, jobs_of("one", 1, width=4))
        running += line.take(CALLS, 1)
        alone = 0
        for _ in range(40):
            chosen = line.chosen(running)
            alone += {job.client for job in chosen} == {"one"}
            line.stepped(chosen, 0.001)
        assert 25 <= alone < 40

    in_loop(test)


def test_what_cannot_be_done_in_time_is_refused_with_an_honest_time() -> None:
    async def test() -> None:
        line = Line(1)
        line.rate = 100.0
        whose = caller("one", 10)
        fits = [Job(None, whose, expected=100) for _ in range(7)]
        line.put(CALLS, fits)
        with pytest.raises(Overloaded) as refused:
            line.put(CALLS, [Job(None, whose, expected=300)])
        assert refused.value.retry_after == pytest.approx(2, abs=1)
        # another client's own share is not used up by that
        line.put(CALLS, [Job(None, caller("two", 10), expected=300)])

    in_loop(test)


def test_a_step_that_was_held_up_hardly_changes_what_is_told() -> None:
    """Nor does the first call, which loads and plans."""

    async def test() -> None:
        line = Line(1)
        line.put(CALLS, jobs_of("one", 1, width=10))
        running = line.take(CALLS, 1)
        before = line.rate
        line.stepped(running, 1.0)
        assert line.rate == pytest.approx(before, rel=0.05)
        for _ in range(500):
            line.stepped(running, 0.001)
        before = line.rate
        assert before == pytest.approx(10_000, rel=0.05)
        line.stepped(running, 1.0)
        assert line.rate == pytest.approx(before, rel=0.01)
        for _ in range(2000):
            line.stepped(running, 0.002)
        assert line.rate == pytest.approx(5_000, rel=0.05)

    in_loop(test)


def test_a_full_line_is_refused() -> None:
    async def test() -> None:
        line = Line(1, max_waiting=5)
        line.put(CALLS, jobs_of("one", 5))
        with pytest.raises(Overloaded):
            line.put(CALLS, jobs_of("two", 1))

    in_loop(test)


def test_a_full_line_tells_when_there_is_room_not_when_it_is_empty() -> None:
    async def test() -> None:
        line = Line(2, max_waiting=100)
        line.rate = 12.5
        line.put(CALLS, jobs_of("one", 100, expected=10))  # 40 seconds in all
        for count, seconds in ((10, 4), (50, 20), (500, 40)):
            with pytest.raises(Overloaded) as refused:
                line.refuse_too_many(caller("two", 1000), count, count)
            assert refused.value.retry_after == pytest.approx(seconds, abs=1)

    in_loop(test)


def test_to_look_whether_there_is_room_takes_none() -> None:
    async def test() -> None:
        line = Line(1, max_waiting=5)
        line.put(CALLS, jobs_of("one", 3))
        line.refuse_too_many(caller("two"), 2, 2)
        with pytest.raises(Overloaded):
            line.refuse_too_many(caller("two"), 3, 3)
        with pytest.raises(Overloaded):
            line.refuse_too_many(caller("two", 1), 1, 1e9)
        line.put(CALLS, jobs_of("two", 2))

    in_loop(test)


def test_a_line_keeps_nothing_of_who_has_nothing_in_it() -> None:
    """A model that was replaced, or an address that came once, would stay for ever."""

    async def test() -> None:
        line = Line(1)
        line.put(CALLS, jobs_of("stays", 1))
        for number in range(20):
            calls = Calls(f"model {number}")
            line.put(calls, jobs_of(f"client {number}", 1))
            (job,) = line.take(calls, 1)
            line.ended(job)
            assert line.runners() == [CALLS]
            assert calls not in line.num_waiting
        assert len(line.num_waiting) == 1

    in_loop(test)


def test_what_waits_is_not_looked_at_one_by_one_while_nothing_is_over() -> None:
    """It would take the lock from all others for tens of milliseconds, twenty times a second."""

    async def test() -> None:
        line = Line(1)
        requests = [jobs_of("one", 50) for _ in range(20)]
        for jobs in requests:
            line.put(CALLS, jobs)
        looked = []
        for job in line.jobs():
            why_over = job.why_over
            job.why_over = lambda job=job, why=why_over: looked.append(job) or why()  # type: ignore[method-assign]
        assert line.drop_over() == []
        assert len(looked) == len(requests)

    in_loop(test)


def test_what_was_given_up_is_dropped_though_its_client_stays() -> None:
    async def test() -> None:
        line = Line(1)
        given_up, kept = jobs_of("one", 5), jobs_of("one", 5)
        late = jobs_of("two", 3)
        for jobs in (given_up, kept, late):
            line.put(CALLS, jobs)
        late[0].caller.deadline = 0.0
        (begun,) = line.take(CALLS, 1)
        for job in given_up:
            job.future.cancel()
        dropped = line.drop_over()
        assert set(dropped) == {*given_up, *late} - {begun}
        assert list(line.jobs()) == kept
        assert line.drop_over() == []

    in_loop(test)


def end_others(line: Line, count: int) -> None:
    """Take jobs, and end those that are not of the client that stays."""
    for job in line.take(CALLS, count):
        if job.client != "stays":
            line.ended(job)


def test_an_account_is_kept_as_long_as_it_makes_a_difference() -> None:
    async def test() -> None:
        line = Line(1)
        line.put(CALLS, jobs_of("stays", 500))
        line.put(CALLS, jobs_of("greedy", 1, cost=100))
        for name in ("a", "b", "c"):
            line.put(CALLS, jobs_of(name, 1))
        end_others(line, 30)
        line.put(CALLS, jobs_of("new", 1))
        assert set(line._clients) == {"stays", "greedy", "new"}
        end_others(line, 150)
        line.put(CALLS, jobs_of("newer", 1))
        assert "greedy" not in line._clients


def test_what_is_under_way_is_not_told_to_come_again() -> None:
    """Else a translation would be thrown away because the line was full when it was finished."""

    async def test() -> None:
        line = Line(1, max_waiting=5)
        line.put(CALLS, jobs_of("one", 5))
        whose = caller("two")
        with pytest.raises(Overloaded):
            line.put(CALLS, [Job(None, whose)])
        whose.is_under_way = True
        line.put(CALLS, [Job(None, whose)])

    in_loop(test)


def test_the_pool_gives_results_in_order_and_raises_the_first_error() -> None:
    async def test() -> None:
        pool = Pool(2)
        whose = caller("one")
        jobs = [Job(lambda i=i: i * i, whose) for i in range(20)]
        assert await pool.run(CALLS, jobs) == [i * i for i in range(20)]
        with pytest.raises(ZeroDivisionError):
            await pool.run(CALLS, [Job(lambda: 1 // 0, whose)])
        await until(lambda: pool.is_idle)
        pool.stop()
        with pytest.raises(Stopping):
            await pool.run(CALLS, [Job(lambda: 1, whose)])

    in_loop(test)


def test_the_load_counts_rows_and_the_requests_that_they_are_of() -> None:
    async def test() -> None:
        pool = Pool(1)
        go_on = threading.Event()
        first, second = caller("same"), caller("same")
        jobs = [Job(lambda: go_on.wait(30), first) for _ in range(3)]
        jobs += [Job(lambda: None, second) for _ in range(4)]
        assert pool.load() == Load(0, 0, 0, 0)
        working = [asyncio.ensure_future(pool.run(CALLS, jobs[:3]))]
        while not pool.load().rows_running:
            await asyncio.sleep(0.01)
        working.append(asyncio.ensure_future(pool.run(CALLS, jobs[3:])))
        await asyncio.sleep(0)
        assert pool.load() == Load(1, 6, 1, 1)
        go_on.set()
        await asyncio.gather(*working)
        assert pool.load() == Load(0, 0, 0, 0)
        pool.stop()

    in_loop(test)


def test_a_request_that_began_before_the_end_goes_on_and_a_later_one_is_refused() -> (
    None
):
    async def test() -> None:
        pool = Pool(1)
        before = caller("before")
        pool.refuse_more()
        assert pool.is_stopping
        for number in range(2):
            jobs = [Job(lambda number=number: number, before)]
            assert await pool.run(CALLS, jobs) == [number]
        with pytest.raises(Stopping):
            await pool.run(CALLS, [Job(lambda: 1, caller("after"))])
        pool.stop()

    in_loop(test)


def test_what_is_late_or_left_ends_and_costs_no_more_than_a_call() -> None:
    async def test() -> None:
        pool = Pool(1)
        pool.line.rate = 1e9  # so that nothing is refused beforehand
        begun: list[int] = []

        def work(number: int) -> None:
            begun.append(number)
            time.sleep(0.02)

        late = caller("late", 0.4)
        with pytest.raises(TooLate):
            await pool.run(CALLS, [Job(lambda i=i: work(i), late) for i in range(100)])
        assert len(begun) < 40
        left = caller("left")
        jobs = [Job(lambda i=i: work(i), left) for i in range(100)]
        task = asyncio.ensure_future(pool.run(CALLS, jobs))
        count = len(begun)
        await until(lambda: len(begun) > count)
        left.left.set()
        with pytest.raises(Gone):
            await task
        count = len(begun)
        await asyncio.sleep(0.1)
        assert len(begun) <= count + 1
        await until(lambda: pool.is_idle)
        pool.stop()

    in_loop(test)


def test_a_model_that_was_replaced_is_forgotten_though_no_more_work_comes() -> None:
    async def test() -> None:
        pool = Pool(2)
        calls = Calls("former")
        jobs = [Job(lambda: 1, caller("one")) for _ in range(20)]
        await pool.run(calls, jobs)
        pool.retire(calls)
        former = weakref.ref(calls)
        del calls, jobs
        await until(lambda: former() is None)
        pool.stop()

    gc.collect()
    gc.disable()
    try:
        in_loop(test)
    finally:
        gc.enable()


def test_one_client_is_not_kept_waiting_by_a_thousand_jobs_of_another() -> None:
    async def test() -> None:
        pool = Pool(1)
        many = caller("many")
        begun: list[str] = []

        def work(name: str) -> None:
            begun.append(name)
            time.sleep(0.002)

        jobs = [Job(lambda: work("many"), many) for _ in range(1000)]
        flood = asyncio.ensure_future(pool.run(CALLS, jobs))
        await until(lambda: len(begun) > 20)
        count = len(begun)
        await pool.run(CALLS, [Job(lambda: work("one"), caller("one"))])
        assert begun.index("one") - count < 100
        flood.cancel()
        pool.stop()

    in_loop(test)
