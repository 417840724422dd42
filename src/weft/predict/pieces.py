"""The pieces of a translation, as it is written."""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain

from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.predict.text import one_line


def pieces(tokens: Iterable[int], tokenizer: Tokenizer) -> Iterator[str]:
    """Yield what each token adds to the text; bytes wait until their character is whole."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    shown = 0
    for number, token in enumerate(chain(tokens, [EOS_ID])):
        spelled = tokenizer.spell([token], begins=number == 0)
        text += decoder.decode(spelled, final=token == EOS_ID)
        line = one_line(text)
        if len(line) > shown:
            yield line[shown:]
            shown = len(line)
