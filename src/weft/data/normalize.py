"""What is done to text before a tokenizer's own JSON pipeline sees it.

Unicode normal forms and lower-casing are part of `tokenizer.json`. What that file cannot express is a named step
here, and its package and version are kept beside the model.
"""

import re
from collections.abc import Callable
from importlib import import_module, metadata

from weft.config import SideSection
from weft.errors import UsageError

Step = Callable[[str], str]

_SURROGATE = re.compile("[\ud800-\udfff]")


def load_steps(settings: SideSection) -> tuple[dict[str, str], list[Step]]:
    """The steps that the settings ask for: their names with versions, and the functions in order.

    Raises UsageError where a step needs a package that is not installed.
    """
    if not settings.simplified:
        return {}, []
    try:
        converter = import_module("opencc").OpenCC("t2s")  # an optional package: loaded only when asked for
    except ImportError:
        raise UsageError(
            "simplified = true needs the opencc package; install it with: pip install 'weft[zh]'"
        ) from None
    return {"opencc t2s": metadata.version("opencc")}, [converter.convert]


def replace_surrogates(text: str) -> str:
    """Lone surrogates, which UTF-8 cannot hold, become U+FFFD; all other text is unchanged."""
    return _SURROGATE.sub("\ufffd", text)
