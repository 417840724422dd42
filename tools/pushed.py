"""The cases of a parametrized test: a push runs the few that tell most, `make test-long` all.

@pytest.mark.parametrize("kind", of_which(KINDS, "bpe", "unigram"))
"""

from collections.abc import Iterable
from typing import Any

import pytest


def of_which(cases: Iterable[Any], *pushed: Any) -> list[Any]:
    """Return all cases, of which those that are not pushed are long; one of several arguments is a
    tuple.
    """
    return [_marked(case, case in pushed) for case in cases]


def _marked(case: Any, is_pushed: bool) -> Any:
    arguments = case if isinstance(case, tuple) else (case,)
    return pytest.param(*arguments, marks=() if is_pushed else pytest.mark.long)
