"""The settings of a generation, and its text while it is written."""

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from weft.config import SamplingSection
from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.decoding.sampling import Sampling
from weft.errors import UsageError

T = TypeVar("T")

Finish = Literal["end", "stop", "length"]


@dataclass(frozen=True)
class Generation:
    """The text by which a model continued a prompt, without the prompt.

    `finish` says why it ended: the model's own end, a stop string (left out of `text`), or the
    length asked for. `token_log_probs` are the model's own, in nats, before temperature and the
    like, one for each token it chose. `prompt_cut`: the prompt is longer than the window, and only
    its end was in sight. `proposed` counts the tokens of a draft, `accepted` those of them that
    were the model's own.
    """

    text: str
    finish: Finish
    token_log_probs: list[float]
    prompt_cut: bool
    proposed: int = 0
    accepted: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class GenerationSettings:
    """The settings of a generation; what is None comes from the recipe.

    Temperature 0 is greedy. The text ends before the first of the `stop` strings. The `draft`
    "prompt" proposes what followed the newest tokens when they stood in the text before, and the
    model reads several of these tokens in one step. It changes how long this takes, not what is
    written. `logit_bias` has what is added to the logit of an id; the two penalties of tokens that
    were chosen before are those of OpenAI's API.
    """

    max_new_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    stop: str | Sequence[str] = ()
    seed: int = 1
    draft: Literal["prompt"] | None = None
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0

    def sampling(self, recipe: SamplingSection) -> Sampling:
        """Return what tokens are drawn from, with the recipe's values where there are none here."""
        temperature = _first(self.temperature, recipe.temperature)
        penalty = _first(self.repetition_penalty, recipe.repetition_penalty)
        biases = {token: float(bias) for token, bias in self.logit_bias.items()}
        return Sampling(
            temperature=float(temperature),
            top_k=_first(self.top_k, recipe.top_k),
            top_p=_first(self.top_p, recipe.top_p),
            min_p=_first(self.min_p, recipe.min_p),
            repetition_penalty=penalty,
            logit_bias=tuple(sorted(biases.items())),
            presence_penalty=float(self.presence_penalty),
            frequency_penalty=float(self.frequency_penalty),
        )


class Written:
    """A text while it is being written. What it has stays as it is; only a stop string is taken out
    again.
    """

    def __init__(
        self, tokenizer: Tokenizer, begins: bool, stop: str | Sequence[str]
    ) -> None:
        """Begin a text that ends before a `stop` string; `begins`: no other stands before it."""
        self.tokenizer = tokenizer
        self.begins = begins
        self.stop = [stop] if isinstance(stop, str) else list(stop)
        if not all(self.stop):
            raise UsageError("a stop string is empty; leave it out")
        # holds back what is no character yet
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.text = ""
        self.finish: Finish = "length"

    def add(self, token: int) -> bool:
        """Take one more token; True where the text is over with it."""
        if token == EOS_ID:
            self.finish = "end"
            return True
        self._extend(
            self.decoder.decode(self.tokenizer.spell([token], begins=self.begins))
        )
        self.begins = False
        return self.finish == "stop"

    def certain(self) -> str:
        """Return the text without an end that may become a stop string."""
        begun = 0  # characters at the end with which a stop string begins
        for stop in self.stop:
            for size in range(1, len(stop)):
                if self.text.endswith(stop[:size]):
                    begun = max(begun, size)
        return self.text[: len(self.text) - begun]

    def end(self) -> str:
        """Return the whole text; a character that was not finished becomes U+FFFD."""
        if self.finish != "stop":
            self._extend(self.decoder.decode(b"", final=True))
        return self.text

    def _extend(self, more: str) -> None:
        """Add to the text, and end it where the first stop string begins."""
        longest = max(map(len, self.stop), default=0)
        searched = max(0, len(self.text) - longest)
        self.text += more
        places = [self.text.find(stop, searched) for stop in self.stop]
        places = [place for place in places if place >= 0]
        if places:
            self.text = self.text[: min(places)]
            self.finish = "stop"


def pieces_of(written: Written, tokens: Iterator[int]) -> Iterator[str]:
    """Yield a text piece by piece while it grows."""
    shown = 0
    for token in tokens:
        over = written.add(token)
        text = written.end() if over else written.certain()
        if len(text) > shown:
            yield text[shown:]
            shown = len(text)
        if over:
            return
    rest = written.end()[shown:]
    if rest:
        yield rest


def _first(chosen: T | None, default: T) -> T:
    return default if chosen is None else chosen


def refuse_seed(seed: int) -> None:
    if not (isinstance(seed, int) and 0 <= seed < 2**63):
        raise UsageError(
            f"seed = {seed}: it must be a whole number, at least 0 and below 2^63"
        )
