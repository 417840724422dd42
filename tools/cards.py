"""The code in a card: what a stranger copies."""

import re

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code_in(card: str, language: str, folder: str = "THIS_FOLDER") -> list[str]:
    """The blocks of code in a language, for a folder of another name."""
    blocks = [code for found, code in _BLOCK.findall(card) if found == language]
    return [block.replace("THIS_FOLDER", folder) for block in blocks]
