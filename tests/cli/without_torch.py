"""A process without PyTorch: `python without_torch.py native|numpy PLAN` runs the commands of a
JSON file, a list of words each, and prints how each ended, and which packages were loaded by then.

With `numpy` there is no native library either, as on a machine without one.
"""

import contextlib
import importlib.machinery
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MISSING = ("torch", "jaxtyping")
WATCHED = (*MISSING, "sacrebleu")


class WithoutTorch(importlib.machinery.PathFinder):
    """Finds every module but those of the packages that are missing."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.split(".", maxsplit=1)[0] in MISSING:
            return None
        return super().find_spec(name, path, target)


def main() -> None:
    kind, plan = sys.argv[1:]
    place = sys.meta_path.index(importlib.machinery.PathFinder)
    sys.meta_path[place] = WithoutTorch
    if kind == "numpy":
        refuse_native()
    ended = [run(words) for words in json.loads(Path(plan).read_text("utf-8"))]
    print(json.dumps(ended))


def refuse_native() -> None:
    from weft.kernels import native

    def refuse(*_: object) -> None:
        raise native.UnavailableError("there is no library here")

    native.library = refuse  # type: ignore[assignment]


def run(words: Sequence[str]) -> dict[str, Any]:
    """How `weft WORDS` ended, and what it wrote."""
    from weft.__main__ import main as weft_main

    sys.argv = ["weft", *words]
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            weft_main()
        except SystemExit as error:
            code = error.code
    out.flush()
    written = out.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]
    loaded = [name for name in WATCHED if name in sys.modules]
    return {"code": code or 0, "out": written, "err": err.getvalue(), "loaded": loaded}


if __name__ == "__main__":
    main()
