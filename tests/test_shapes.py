"""The tests run under a check of annotated shapes: it sees a wrong one, in every function."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import TypeCheckError

import shapes
import weft
import weft.decoding
import weft.model
from weft.model.attention import attention_mask
from weft.model.cache import KeysValues

ROOT = Path(weft.__file__).parent
REAL = torch.zeros(2, 5, dtype=torch.bool)


def own_functions() -> Iterator[Callable[..., Any]]:
    """Every function that a module of the checked packages defines, methods among them."""
    for package in (weft.model, weft.decoding):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            names = vars(import_module(module.name))
            owners = [names, *(vars(v) for v in names.values() if inspect.isclass(v))]
            for value in (value for owner in owners for value in owner.values()):
                function = getattr(value, "fget", value)
                if inspect.isfunction(function) and function.__module__ == module.name:
                    yield function


def test_every_function_is_checked() -> None:
    names = {function.__qualname__ for function in own_functions()}
    assert {"attention_mask", "KeysValues.until", "KeysValues.length"} <= names
    bare = []
    for function in own_functions():
        # `dataclass` and `Protocol` make functions that stand in no file of ours
        ours = function.__code__.co_filename.startswith(str(ROOT))
        if ours and not hasattr(function, "__wrapped__"):
            bare.append(f"{function.__module__}.{function.__qualname__}")
    assert bare == []


def test_a_wrong_argument_result_or_field_is_an_error() -> None:
    attention_mask(REAL)
    with pytest.raises(TypeCheckError):
        attention_mask(REAL[0])
    with pytest.raises(TypeCheckError):
        attention_mask(REAL, segments=torch.zeros(2, 6, dtype=torch.long))
    with pytest.raises(TypeCheckError):
        KeysValues(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 5, 4))

    @shapes.checked
    def wrong() -> int:
        return "no number"

    with pytest.raises(TypeCheckError):
        wrong()


def test_the_first_calls_alone_are_checked_until_a_new_limit() -> None:
    shapes.limit(2)
    attention_mask(REAL)
    attention_mask(REAL)
    with pytest.raises(IndexError):
        attention_mask(REAL[0])
    shapes.limit(2)
    with pytest.raises(TypeCheckError):
        attention_mask(REAL[0])
    shapes.limit(shapes.ALL)
    for _ in range(50):
        attention_mask(REAL)
    with pytest.raises(TypeCheckError):
        attention_mask(REAL[0])


def test_what_is_imported_already_cannot_be_checked() -> None:
    with pytest.raises(RuntimeError, match=r"too early to be checked: weft\.model"):
        shapes.check_modules("weft.model")
