"""The check of annotated shapes that the tests run under: see tests/conftest.py.

`check_modules` sets an import hook like that of jaxtyping, which wraps each function of the named
packages so that beartype judges its arguments and its result. Two things differ, since a wrapped
call costs many times the arithmetic of a tiny model. Only the first calls of a function are judged,
until `limit` is called again. And a function inside a function is left alone: it would be wrapped
anew each time its definition is met.
"""

import ast
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from beartype import beartype
from jaxtyping import jaxtyped

FUNCTION = "__import__('shapes').checked"
CLASS = "__import__('shapes').checked_class"
ALL = sys.maxsize
_calls: Counter[int] = Counter()
_limit = [ALL]


def limit(calls: int) -> None:
    """Judge this many more calls of each function."""
    _calls.clear()
    _limit[0] = calls


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its next calls are judged."""
    return _limited(function, jaxtyped(function, typechecker=beartype))


def checked_class(kind: type) -> type:
    """Make a dataclass judge the values that it is built from; leave another class as it is."""
    plain = kind.__init__
    kind = jaxtyped(kind, typechecker=beartype)
    if kind.__init__ is not plain:
        kind.__init__ = _limited(plain, kind.__init__)
    return kind


def _limited(
    plain: Callable[..., Any], judged: Callable[..., Any]
) -> Callable[..., Any]:
    key = id(judged)

    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if _calls[key] >= _limit[0]:
            return plain(*args, **kwargs)
        _calls[key] += 1
        return judged(*args, **kwargs)

    return call


def check_modules(*packages: str) -> None:
    """Wrap what these packages define; none of them may be imported yet."""
    loaded = [package for package in packages if package in sys.modules]
    if loaded:
        raise RuntimeError(f"imported too early to be checked: {', '.join(loaded)}")
    sys.meta_path.insert(0, _Finder(packages))


class _Finder(MetaPathFinder):
    """Finds the modules of the packages and gives them a loader that wraps."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not any(f"{fullname}.".startswith(f"{name}.") for name in self.packages):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Compiles a module with a decorator on each class, function and method."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: Any, path: Any, **options: Any) -> CodeType:
        tree = ast.parse(data, path)
        _decorate(tree.body)
        return compile(ast.fix_missing_locations(tree), path, "exec")


def _decorate(body: Sequence[ast.stmt]) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            # Below other decorators: `property` and its like take what is wrapped.
            node.decorator_list.append(_decorator(FUNCTION, node))
        elif isinstance(node, ast.ClassDef):
            # Above them: `dataclass` makes what is wrapped.
            node.decorator_list.insert(0, _decorator(CLASS, node))
            _decorate(node.body)


def _decorator(code: str, node: ast.stmt) -> ast.expr:
    decorator = ast.parse(code, mode="eval").body
    for part in ast.walk(decorator):
        ast.copy_location(part, node)
    return decorator
