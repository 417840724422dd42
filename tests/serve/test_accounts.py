"""What a key may use in a day: counted, refused beyond it, and whole again the day after."""

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weft.serve.accounts import Account, Accounts, Allowance
from weft.serve.catalogue import Catalogue, Named, open_model
from weft.serve.limits import Limits
from weft.serve.pool import Pool
from weft.serve.refusals import UsedUp
from weft.serve.service import Service
from weft.serve.visits import begin_visit

DAY = 86_400


class Clock:
    now = 100 * DAY + DAY - 60.0

    def __call__(self) -> float:
        return self.now


def test_what_goes_beyond_the_characters_of_a_day_is_refused_until_the_next() -> None:
    clock = Clock()
    account = Account(Allowance(characters=100), clock)
    account.take(60)
    with pytest.raises(UsedUp, match="40 of its 100 characters of today") as caught:
        account.take(41)
    assert caught.value.retry_after == 60
    account.take(40)
    assert account.characters == 100
    with pytest.raises(UsedUp):
        account.take(1)
    clock.now += 59
    with pytest.raises(UsedUp):
        account.take(1)
    clock.now += 1
    assert account.characters == 0
    account.take(100)


def test_tokens_are_counted_behind_the_work_and_refused_before_it() -> None:
    clock = Clock()
    account = Account(Allowance(tokens=10), clock)
    account.add_tokens(9)
    account.take(10**9)
    account.add_tokens(9)
    with pytest.raises(UsedUp, match="0 of its 10 tokens"):
        account.take(0)
    clock.now += 60
    account.take(0)


def test_a_key_has_one_account_whatever_becomes_of_its_limits() -> None:
    accounts = Accounts()
    accounts.of("a", Allowance()).take(10**9)
    accounts.of("b", Allowance(characters=5)).take(5)
    with pytest.raises(UsedUp):
        accounts.of("a", Allowance(characters=5)).take(1)
    accounts.of("b", Allowance(characters=6)).take(1)


def test_whatever_reads_a_text_is_charged_before_the_work(tiny_folder: Path) -> None:
    translator = open_model(Named("en-de", tiny_folder))
    named: Any = SimpleNamespace(name="classification")
    other: Any = SimpleNamespace()
    classifier = replace(translator, id="stars", task=named)
    writer = replace(translator, id="plays", writer=other)
    pool = Pool(1)
    service = Service(Catalogue([translator, classifier]), pool, Limits())

    async def ask() -> None:
        visit = begin_visit({"type": "http", "method": "POST"}, Limits())
        visit.account = Account(Allowance(characters=3, tokens=1))
        caller = visit.caller
        for work in (
            service.complete("the cat", "", translator, caller),
            service.inspect("en-de", "the cat", caller),
            service.classify("stars", ["the", "cat"], caller),
        ):
            with pytest.raises(UsedUp, match="3 of its 3 characters"):
                await work
        await service.complete("cat", "", translator, caller)
        assert visit.account.characters == 3
        visit.note(read=1)
        visit.close()
        with pytest.raises(UsedUp, match="tokens"):
            await service.write(writer, [], caller)

    try:
        asyncio.run(ask())
    finally:
        pool.stop()
