"""The fields of a request for a completion, as OpenAI's API has them."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.errors import UsageError
from weft.predict.generation import GenerationSettings
from weft.predict.language_model import LanguageModel
from weft.predict.writing import Order
from weft.serve.bodies import Fields
from weft.serve.catalogue import Catalogue, ServedModel
from weft.serve.limits import Limits
from weft.serve.refusals import Impossible, InvalidRequest, TooLarge

_MOST_LOGPROBS = 20  # vLLM's; OpenAI's are 5
_MOST_STOPS = 4
_MOST_BIASES = 300
_MOST_TEMPERATURE = 100.0
_DEFAULT_TOKENS = 16
_SEEDS = 2**63
# where another task's models are asked
_ROUTES = {"translation": "POST /translate", "classification": "POST /classify"}


@dataclass(frozen=True)
class Prompt:
    """A prompt: its ids as they were given, without a start symbol of ours, and its text."""

    ids: Sequence[int]
    text: str


@dataclass(frozen=True)
class CompletionRequest:
    """A request for `n` texts for each prompt, the best of `best_of`."""

    model: ServedModel
    prompts: Sequence[Prompt]
    settings: GenerationSettings
    max_tokens: int
    n: int
    best_of: int
    echo: bool
    logprobs: int | None
    is_stream: bool
    has_usage: bool

    @property
    def scores_prompts(self) -> bool:
        """Return whether the tokens of prompts have probabilities."""
        return self.echo and self.logprobs is not None

    def orders(self) -> list[Order]:
        """Return the texts to write: of each prompt, one for each of `best_of`.

        Where texts of one prompt are given together, the first one scores it for all.
        """
        model: LanguageModel = self.model.predictor
        orders = []
        for prompt in self.prompts:
            ids = model.start(prompt.ids)
            for sample in range(self.best_of):
                is_scorer = self.is_stream or not sample
                order = Order(
                    ids,
                    self.settings,
                    sample=sample,
                    top=self.logprobs or 0,
                    scored=self.scores_prompts and is_scorer,
                    writes=self.max_tokens > 0,
                )
                orders.append(order)
        return orders


def chosen_model(catalogue: Catalogue, fields: Fields) -> ServedModel:
    """Return the language model of a request: by its name, or the first there is.

    Raises Impossible, with the route to ask, where the model has another task.
    """
    name = fields.text("model", "")
    named = catalogue.models.get(name)
    if named is not None and named.kind in _ROUTES:
        raise Impossible(
            f"this model is for {named.kind}, not for completions: use {_ROUTES[named.kind]}",
            "model",
        )
    return catalogue.model(name or None, "language-modelling")


def read_request(
    fields: Fields, model: ServedModel, limits: Limits
) -> CompletionRequest:
    """Read and check all fields. Raises InvalidRequest, Impossible and TooLarge."""
    _refuse_impossible(fields)
    predictor: LanguageModel = model.predictor
    max_tokens = fields.number(
        "max_tokens",
        0,
        limits.max_new_tokens,
        min(_DEFAULT_TOKENS, limits.max_new_tokens),
    )
    n = fields.number("n", 1, limits.max_n, 1)
    is_stream = fields.flag("stream")
    if not is_stream and fields.has("stream_options"):
        raise InvalidRequest("stream_options needs stream", "stream_options")
    best_of = fields.number("best_of", n, max(n, limits.max_n), n)
    if is_stream and best_of > n:
        raise InvalidRequest("best_of above n cannot be streamed", "best_of")
    logprobs = None
    if fields.has("logprobs"):
        logprobs = fields.number("logprobs", 0, _MOST_LOGPROBS)
    prompts = _prompts(fields, predictor, limits)
    if len(prompts) * best_of > limits.max_texts:
        raise TooLarge(
            f"{len(prompts)} prompts times {best_of}: at most {limits.max_texts} texts are written at once"
        )
    return CompletionRequest(
        model=model,
        prompts=prompts,
        settings=_settings(fields, predictor, max_tokens),
        max_tokens=max_tokens,
        n=n,
        best_of=best_of,
        echo=fields.flag("echo"),
        logprobs=logprobs,
        is_stream=is_stream,
        has_usage=fields.inner("stream_options").flag("include_usage"),
    )


def _refuse_impossible(fields: Fields) -> None:
    if fields.value("suffix"):
        raise Impossible(
            "suffix: these models write after a text, not inside", "suffix"
        )
    if fields.flag("use_beam_search"):
        raise Impossible(
            "use_beam_search: language models are sampled here; beams are for translators",
            "use_beam_search",
        )


def _settings(
    fields: Fields, model: LanguageModel, max_tokens: int
) -> GenerationSettings:
    """Return the settings of sampling: the API's defaults, not the recipe's.

    Without a seed, every request has another one. Raises InvalidRequest.
    """
    seed = secrets.randbelow(_SEEDS)
    if fields.has("seed"):
        seed = fields.number("seed", -_SEEDS, 2 * _SEEDS - 1) % _SEEDS
    # as others have it, 0 and -1 are for all
    top_k = fields.number("top_k", -1, 2**31 - 1, 0)
    settings = GenerationSettings(
        max_new_tokens=max(1, max_tokens),
        temperature=fields.real("temperature", 0.0, _MOST_TEMPERATURE, 1.0),
        top_k=top_k if top_k > 0 else model.tokenizer.vocab_size,
        top_p=fields.real("top_p", 0.0, 1.0, 1.0),
        min_p=fields.real("min_p", 0.0, 1.0, 0.0),
        repetition_penalty=fields.real("repetition_penalty", 0.01, 100.0, 1.0),
        presence_penalty=fields.real("presence_penalty", -2.0, 2.0, 0.0),
        frequency_penalty=fields.real("frequency_penalty", -2.0, 2.0, 0.0),
        logit_bias=_biases(fields),
        stop=_stops(fields),
        seed=seed,
    )
    try:
        model.chooser_of(settings, ())
    except UsageError as error:
        # its message begins with the setting
        name = re.match(r"\w*", str(error))
        raise InvalidRequest(str(error), name and name[0]) from None
    return settings


def _stops(fields: Fields) -> list[str]:
    stops = fields.texts("stop", ())
    if len(stops) > _MOST_STOPS:
        raise InvalidRequest(f"stop: at most {_MOST_STOPS} strings", "stop")
    if not all(stops):
        raise InvalidRequest("stop: a string is empty", "stop")
    return stops


def _biases(fields: Fields) -> dict[int, float]:
    """Return what is added to the logits of tokens, whose ids are keys of JSON, so strings."""
    inner = fields.inner("logit_bias")
    if len(inner.values) > _MOST_BIASES:
        raise InvalidRequest(f"logit_bias: at most {_MOST_BIASES} tokens", "logit_bias")
    biases = {}
    for key in inner.values:
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise InvalidRequest("logit_bias: keys are ids of tokens", "logit_bias")
        biases[int(key)] = inner.real(key, -100.0, 100.0)
    return biases


def _prompts(fields: Fields, model: LanguageModel, limits: Limits) -> list[Prompt]:
    """Return the prompts: a text or ids, or a list of either; none is an empty text."""
    value = fields.value("prompt")
    if value is None:
        value = ""
    is_one = isinstance(value, str) or (_is_list(value, int) and value)
    several: list[Any] = [value] if is_one else value
    is_known = _is_list(several, str) or (
        isinstance(several, list) and all(_is_list(ids, int) for ids in several)
    )
    if not is_known or not several:
        raise InvalidRequest(
            "prompt must be a string, a list of strings, a list of token ids, or a list of such lists",
            "prompt",
        )
    longest = max(map(len, several))
    if longest > limits.max_text or sum(map(len, several)) > limits.max_characters:
        raise TooLarge(
            f"the prompts are too long: at most {limits.max_text:,} characters or tokens each, "
            f"{limits.max_characters:,} in all",
            "prompt",
        )
    try:
        return [_prompt(one, model) for one in several]
    except UsageError as error:
        raise InvalidRequest(str(error), "prompt") from None


def _prompt(given: Any, model: LanguageModel) -> Prompt:
    if isinstance(given, str):
        return Prompt(model.start(given)[1:], given)
    model.start(given)  # refuses ids that are unknown
    return Prompt(given, model.tokenizer.decode(given))


def _is_list(value: Any, kind: type) -> bool:
    """Return whether a value is a list of one kind; true and false are no whole numbers."""
    return isinstance(value, list) and all(type(part) is kind for part in value)
