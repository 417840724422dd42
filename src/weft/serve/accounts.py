"""The accounts of keys: used since midnight (UTC), of what each may use in a day.

Characters are those of the texts that clients send to be translated, classified or looked into;
they are taken before the work. Tokens are those that models read and write; they are known only
behind it, so that the last request of a day may go beyond them. Accounts are kept in memory: a
server that starts begins anew.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from weft.serve.refusals import UsedUp

_DAY = 24 * 60 * 60


@dataclass(frozen=True)
class Allowance:
    """The most characters and tokens of a day; None for as many as there are."""

    characters: int | None = None
    tokens: int | None = None


class Account:
    """The account of a key."""

    def __init__(
        self, allowance: Allowance, clock: Callable[[], float] = time.time
    ) -> None:
        """Begin with nothing used."""
        self.allowance = allowance
        self._clock = clock
        self._day = self._today()
        self._characters = 0
        self._tokens = 0

    @property
    def characters(self) -> int:
        """Return how many characters were taken today."""
        self._turn_page()
        return self._characters

    def take(self, characters: int) -> None:
        """Take characters. Raises UsedUp where there are not so many, or no tokens."""
        self._turn_page()
        most = self.allowance
        if most.tokens is not None and self._tokens >= most.tokens:
            self._refuse("tokens", most.tokens, 0)
        if most.characters is not None:
            left = most.characters - self._characters
            if characters > left:
                self._refuse("characters", most.characters, left)
        self._characters += characters

    def add_tokens(self, count: int) -> None:
        """Count tokens that were read and written."""
        self._turn_page()
        self._tokens += count

    def _refuse(self, what: str, most: int, left: int) -> None:
        seconds = _DAY - self._clock() % _DAY
        raise UsedUp(
            f"this key has {left:,} of its {most:,} {what} of today left", seconds
        )

    def _turn_page(self) -> None:
        """Begin anew where the day is another."""
        today = self._today()
        if today != self._day:
            self._day = today
            self._characters = self._tokens = 0

    def _today(self) -> int:
        return int(self._clock() // _DAY)


class Accounts:
    """The accounts of all keys, by their names."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Begin without any."""
        self._clock = clock
        self._by_name: dict[str, Account] = {}

    def of(self, name: str, allowance: Allowance) -> Account:
        """Return the account of a key, with what the key may use by now."""
        account = self._by_name.get(name)
        if account is None:
            account = self._by_name[name] = Account(allowance, self._clock)
        account.allowance = allowance
        return account
