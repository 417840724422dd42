"""The shapes of OpenAI's answers: choices, log-probabilities of tokens, usage."""

import codecs
import math
from collections.abc import Sequence
from typing import Any

from weft.data.pipeline import SPECIALS
from weft.data.tokenizer import Tokenizer
from weft.predict.writing import Token
from weft.serve.dialects.openai_request import CompletionRequest, Prompt
from weft.serve.writing import Part, WrittenText

_SPECIAL_IDS = range(len(SPECIALS))
_LEAST = -9999.0  # for -inf, which JSON does not have


def choices_of(
    request: CompletionRequest, texts: Sequence[WrittenText]
) -> list[dict[str, Any]]:
    """Return the choices: of each prompt the `n` best texts, those that are likeliest by token."""
    choices: list[dict[str, Any]] = []
    for number, prompt in enumerate(request.prompts):
        first = number * request.best_of
        written = texts[first : first + request.best_of]
        scored = written[0].prompt
        if request.best_of > request.n:
            ranked = sorted(written, key=_mean_log_prob, reverse=True)
            written = ranked[: request.n]
        for text in written:
            maker = ChoiceMaker(request, prompt, len(choices))
            part = Part(text.text, text.tokens, scored)
            choices.append(maker.choice(part, finish_reason(text)))
    return choices


def _mean_log_prob(text: WrittenText) -> float:
    return text.mean_log_prob


def finish_reason(text: WrittenText) -> str:
    """Return why a text ended, in the API's words."""
    return "length" if text.finish == "length" else "stop"


def usage_of(
    request: CompletionRequest, texts: Sequence[WrittenText]
) -> dict[str, int]:
    """Count the tokens of all prompts, and all that were written."""
    num_read = sum(len(prompt.ids) for prompt in request.prompts)
    num_written = sum(text.num_tokens for text in texts)
    return {
        "prompt_tokens": num_read,
        "completion_tokens": num_written,
        "total_tokens": num_read + num_written,
    }


class ChoiceMaker:
    """A choice that is given in one part or in several."""

    def __init__(self, request: CompletionRequest, prompt: Prompt, index: int) -> None:
        self.request = request
        self.prompt = prompt
        self.index = index
        self.tokenizer: Tokenizer = request.model.predictor.tokenizer
        self._is_new = True
        self._num_given = 0  # tokens of the text
        self._names: dict[tuple[int, bool], str] = {}

    @property
    def is_echo_due(self) -> bool:
        """Return whether the prompt is yet to be given back."""
        return self._is_new and self.request.echo

    def choice(self, part: Part, finish: str | None) -> dict[str, Any]:
        """Return the next part of the choice; the first one begins with the prompt's echo."""
        echo = self.is_echo_due
        logprobs = None
        if self.request.logprobs is not None:
            logprobs = _empty_logprobs()
            if echo:
                self._add_prompt(logprobs, part.prompt)
            self._add_text(logprobs, part.tokens)
        self._is_new = False
        return {
            "index": self.index,
            "text": self.prompt.text + part.text if echo else part.text,
            "logprobs": logprobs,
            "finish_reason": finish,
        }

    def _add_prompt(self, logprobs: dict[str, Any], scored: Sequence[Token]) -> None:
        """Add the tokens of the prompt; the first one has no probability in this API."""
        ids = self.prompt.ids
        # a start symbol that was given is no token that is scored
        tokens = [None, *scored][-len(ids) :]
        begins = True
        offsets = offsets_of(self.tokenizer, ids)
        # characters that the model does not keep apart can make its text longer
        most = len(self.prompt.text)
        for place, (token, offset) in enumerate(zip(ids, offsets, strict=True)):
            found = tokens[place] if place else None
            self._add(logprobs, token, found, min(offset, most), begins)
            begins = begins and token in _SPECIAL_IDS

    def _add_text(self, logprobs: dict[str, Any], tokens: Sequence[Token]) -> None:
        before = len(self.prompt.text) if self.request.echo else 0
        for token in tokens:
            begins = not (self._num_given or self.prompt.ids)
            offset = before + token.offset
            self._add(logprobs, token.id, token, offset, begins)
            self._num_given += 1

    def _add(
        self,
        logprobs: dict[str, Any],
        token: int,
        found: Token | None,
        offset: int,
        begins: bool,
    ) -> None:
        name = self._name(token, begins)
        logprobs["tokens"].append(name)
        logprobs["text_offset"].append(offset)
        if found is None:
            logprobs["token_logprobs"].append(None)
            logprobs["top_logprobs"].append(None)
            return
        top: dict[str, float] = {}
        for other, log_prob in found.top:
            top.setdefault(self._name(other, begins), _shown(log_prob))
        top.setdefault(name, _shown(found.log_prob))
        logprobs["token_logprobs"].append(_shown(found.log_prob))
        logprobs["top_logprobs"].append(top)

    def _name(self, token: int, begins: bool) -> str:
        key = token, begins
        if key not in self._names:
            self._names[key] = name_of(self.tokenizer, token, begins)
        return self._names[key]


def name_of(tokenizer: Tokenizer, token: int, begins: bool) -> str:
    """Return a token's own characters; of one that has only a part of a character, its bytes.

    `begins`: no text stands before it.
    """
    if token in _SPECIAL_IDS:
        (name,) = tokenizer.pieces([token])
        return name
    spelled = tokenizer.spell([token], begins=begins)
    try:
        return spelled.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in spelled)


def offsets_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """Return how many characters of a text are complete before each of its tokens."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offsets = []
    length = 0
    begins = True
    for token in ids:
        offsets.append(length)
        spelled = tokenizer.spell([token], begins=begins)
        length += len(decoder.decode(spelled))
        begins = begins and token in _SPECIAL_IDS
    return offsets


def _empty_logprobs() -> dict[str, Any]:
    return {"text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": []}


def _shown(log_prob: float) -> float:
    return log_prob if math.isfinite(log_prob) else _LEAST
