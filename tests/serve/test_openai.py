"""OpenAI's API over a real server: its own client unchanged, what it reads, and what is refused."""

import asyncio
import http.client
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import openai
import pytest
import uvicorn
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st

import weft
from served import in_thread
from tiny_server import Running
from weft.config import SamplingSection, SideSection
from weft.data.tokenizer import EOS_ID, Tokenizer, train_tokenizer
from weft.predict.language_model import LanguageModel
from weft.serve.app import build_app
from weft.serve.catalogue import Catalogue, ServedModel
from weft.serve.dialects import openai as dialect
from weft.serve.limits import Limits
from weft.serve.pool import Pool
from weft.serve.refusals import (
    Broken,
    Impossible,
    Overloaded,
    Refusal,
    Stopping,
    TooLate,
    TooManyRequests,
    Unauthorized,
    UnknownModel,
)
from weft.serve.service import Service
from weft.serve.writing import TextWriter

LINES = [
    "The cat sat on the mat.",
    "A dog sees the cat and the bird.",
    "the END of it, says the fish: 1, 2, 3! 猫",
]
WINDOW = 24


@cache
def tokenizer() -> Tokenizer:
    return train_tokenizer(LINES * 5, SideSection(kind="bpe", vocab_size=330))


@dataclass(frozen=True)
class Seen:
    """A cache: all ids so far."""

    rows: tuple[int, ...]

    def until(self, length: int) -> "Seen":
        return Seen(self.rows[:length])


class Whim:
    """A model that is random, but always the same after the same ids.

    After `poison` its logits are no numbers; `delay` is what each token takes.
    """

    def __init__(self) -> None:
        self.delay = 0.0
        self.steps = 0

    def prefill(self, ids: Any) -> Seen:
        return Seen(tuple(ids[0].tolist()))

    def decode(self, ids: Any, cache: Seen) -> tuple[Any, Seen]:
        time.sleep(self.delay)
        self.steps += 1
        rows = [*cache.rows]
        logits = []
        for token in ids[0].tolist():
            rows.append(token)
            rng = np.random.default_rng(sum((i + 1) * t for i, t in enumerate(rows)))
            row = 3 * rng.standard_normal(tokenizer().vocab_size)
            row[EOS_ID] -= 4
            logits.append(row * (math.nan if self.is_poisoned(rows) else 1))
        return np.array([logits], np.float32), Seen(tuple(rows))

    def is_poisoned(self, rows: list[int]) -> bool:
        poison = tokenizer().encode("poison")
        return rows[-len(poison) :] == poison


@pytest.fixture(scope="module")
def whim() -> LanguageModel:
    return LanguageModel(
        Whim(),
        tokenizer(),
        decoding=SamplingSection(temperature=0.1, top_k=3, max_new_tokens=9),
        packed=False,
        window_len=WINDOW,
    )


def served(name: str, kind: str, predictor: Any) -> ServedModel:
    writer = TextWriter(predictor) if kind == "language-modelling" else None
    return ServedModel(
        id=name,
        folder=Path(name),
        task=SimpleNamespace(name=kind),  # type: ignore[arg-type]
        predictor=predictor,
        created=1_700_000_000,
        card={},
        writer=writer,
    )


@pytest.fixture(scope="module")
def address(whim: LanguageModel) -> Iterator[str]:
    models = [
        served("en-de", "translation", None),
        served("runs/a model", "language-modelling", whim),
        served("spam", "classification", None),
    ]
    pool = Pool(2)
    limits = Limits(max_n=4, max_new_tokens=200, max_texts=20, max_text=500)
    service = Service(Catalogue(models), pool, limits)
    app = build_app(service, [dialect.openai()])
    config = uvicorn.Config(app, log_level="error", lifespan="off")
    with in_thread(config) as (host, port):
        yield f"{host}:{port}"
    pool.stop()


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"http://{address}/v1", api_key="none", max_retries=0
    ) as made:
        yield made


MODEL = "runs/a model"


@dataclass(frozen=True)
class Answer:
    status: int
    type: str
    text: str


def asked(address: str, path: str, fields: Any = None) -> Answer:
    """Ask on a connection of its own, with the fields of a body where there are some."""
    connection = http.client.HTTPConnection(address, timeout=120)
    if fields is None:
        connection.request("GET", path)
    else:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(fields), headers)
    response = connection.getresponse()
    kind = response.getheader("content-type", "")
    answer = Answer(response.status, kind, response.read().decode())
    connection.close()
    return answer


def post(address: str, path: str = "/v1/completions", **fields: Any) -> tuple[int, Any]:
    answer = asked(address, path, {"model": MODEL, **fields})
    return answer.status, json.loads(answer.text)


# Models
# --------------------------------------------------------------------------------------


def test_the_models_are_listed_and_found_by_any_name(client: openai.OpenAI) -> None:
    found = {model.id: model for model in client.models.list()}
    assert list(found) == ["en-de", MODEL, "spam"]
    assert found[MODEL].owned_by == "weft"
    assert client.models.retrieve(MODEL) == found[MODEL]
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("none/such")
    assert refused.value.code == "model_not_found"


# Texts
# --------------------------------------------------------------------------------------


def test_a_completion_is_what_generate_gives(
    client: openai.OpenAI, whim: LanguageModel
) -> None:
    for prompt in ("The cat", "", "A dog sees the cat and the bird. " * 3):
        for seed, temperature in ((3, 1.0), (4, 0)):
            found = client.completions.create(
                model=MODEL, prompt=prompt, seed=seed, temperature=temperature
            )
            alone = whim.generate(
                prompt,
                seed=seed,
                temperature=temperature,
                top_k=1000,
                max_new_tokens=16,
            )
            (choice,) = found.choices
            assert choice.text == alone.text
            expected = "length" if alone.finish == "length" else "stop"
            assert choice.finish_reason == expected
            assert choice.logprobs is None
            assert found.usage is not None
            num_read = len(whim.tokenizer.encode(prompt))
            assert found.usage.prompt_tokens == num_read
            assert found.usage.completion_tokens == len(alone.token_log_probs)
            assert found.usage.total_tokens == num_read + len(alone.token_log_probs)
            assert found.object == "text_completion"
            assert found.id.startswith("cmpl-")


def test_settings_of_the_api_are_those_of_weft(
    client: openai.OpenAI, whim: LanguageModel
) -> None:
    (token,) = whim.tokenizer.encode("e")[-1:]
    found = client.completions.create(
        model=MODEL,
        prompt="The",
        seed=-5,
        temperature=1.5,
        top_p=0.8,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        logit_bias={str(token): 4},
        stop=["cat", "!"],
        max_tokens=30,
        user="somebody",
        extra_body={"top_k": 50, "min_p": 0.01, "repetition_penalty": 1.1},
    )
    alone = whim.generate(
        "The",
        seed=2**63 - 5,
        temperature=1.5,
        top_p=0.8,
        top_k=50,
        min_p=0.01,
        repetition_penalty=1.1,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        logit_bias={token: 4.0},
        stop=["cat", "!"],
        max_new_tokens=30,
    )
    assert found.choices[0].text == alone.text


def test_a_process_writes_what_the_same_model_writes_here(server: Running) -> None:
    model = weft.load(server.models["plays"])
    settings: Any = {"seed": 4, "temperature": 0.9, "top_p": 0.95, "stop": ["zq"]}
    prompts = ["I see", "", "the cat and the dog " * 30]
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        found = client.completions.create(
            model="plays", prompt=prompts, max_tokens=40, logprobs=0, **settings
        )
    for prompt, choice in zip(prompts, found.choices, strict=True):
        alone = model.generate(prompt, top_k=10_000, max_new_tokens=40, **settings)
        assert choice.text == alone.text
        assert choice.logprobs is not None
        assert choice.logprobs.token_logprobs == alone.token_log_probs


def test_many_at_once_are_written_as_each_alone(server: Running) -> None:
    model = weft.load(server.models["plays"])
    asked = [
        {
            "prompt": "I see " * (number % 5) * (number % 7),
            "max_tokens": 1 + 9 * (number % 4),
            "seed": number,
            "temperature": (0, 0.7, 1.4)[number % 3],
            "frequency_penalty": number % 2,
        }
        for number in range(30)
    ]
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:

        def text(settings: Any) -> str:
            found = client.completions.create(model="plays", **settings)
            return found.choices[0].text

        with ThreadPoolExecutor(12) as pool:
            texts = list(pool.map(text, asked))
    for found, settings in zip(texts, asked, strict=True):
        prompt = str(settings.pop("prompt"))
        limit = settings.pop("max_tokens")
        options: Any = {"max_new_tokens": limit, "top_k": 10_000, **settings}
        assert found == model.generate(prompt, **options).text


def test_without_a_seed_every_request_has_another(client: openai.OpenAI) -> None:
    texts = set()
    for _ in range(3):
        answer = client.completions.create(model=MODEL, prompt="The")
        texts.add(answer.choices[0].text)
    assert len(texts) == 3


def test_prompts_are_texts_or_ids_and_each_has_n_choices(
    client: openai.OpenAI, whim: LanguageModel
) -> None:
    def texts(prompt: Any, **options: Any) -> list[str]:
        found = client.completions.create(
            model=MODEL, prompt=prompt, seed=2, max_tokens=5, **options
        )
        assert [choice.index for choice in found.choices] == [
            *range(len(found.choices))
        ]
        return [choice.text for choice in found.choices]

    ids = [whim.tokenizer.encode(text) for text in ("The cat", "A dog")]
    alone = texts("The cat") + texts("A dog")
    assert texts(["The cat", "A dog"]) == alone
    assert texts(ids) == alone
    assert texts(ids[0]) == alone[:1]
    # the start symbol may be given or not
    assert texts([[EOS_ID, *ids[0]], ids[1]]) == alone
    several = texts(["The cat", "A dog"], n=2)
    assert several[::2] == alone
    assert len(set(several)) == 4
    assert texts(None) == texts("")


def test_the_best_of_several_are_those_likeliest_by_token(
    client: openai.OpenAI,
) -> None:
    every = client.completions.create(
        model=MODEL, prompt="The", n=4, seed=2, logprobs=0, max_tokens=6
    )
    best = client.completions.create(
        model=MODEL, prompt="The", n=2, best_of=4, seed=2, max_tokens=6
    )
    means = {}
    for choice in every.choices:
        assert choice.finish_reason == "length"
        assert choice.logprobs is not None
        means[choice.text] = np.mean(choice.logprobs.token_logprobs)
    expected = sorted(means, key=means.__getitem__, reverse=True)[:2]
    assert [choice.text for choice in best.choices] == expected
    assert best.usage is not None
    assert best.usage.completion_tokens == 24


# Log-probabilities and echo
# --------------------------------------------------------------------------------------


def test_echo_with_logprobs_scores_the_prompt_as_score_does(
    client: openai.OpenAI, whim: LanguageModel
) -> None:
    long = " ".join(LINES) * 2
    for prompt, given_start in (
        ("The cat sat", False),
        ("The cat sat", True),
        (long, 0),
    ):
        ids = whim.tokenizer.encode(prompt)
        asked: Any = [EOS_ID, *ids] if given_start else prompt
        found = client.completions.create(
            model=MODEL, prompt=asked, echo=True, logprobs=2, max_tokens=0
        )
        (choice,) = found.choices
        assert choice.text == prompt
        logprobs = choice.logprobs
        assert logprobs is not None
        assert logprobs.tokens
        assert logprobs.token_logprobs
        assert logprobs.top_logprobs
        (score,) = whim.score(prompt)
        assert logprobs.token_logprobs[0] is None
        assert logprobs.top_logprobs[0] is None
        expected = score.token_log_probs[0 if given_start else 1 :]
        assert logprobs.token_logprobs[1:] == expected
        for token, log_prob, top in zip(
            logprobs.tokens[1:], expected, logprobs.top_logprobs[1:], strict=True
        ):
            assert top[token] == log_prob
            assert 2 <= len(top) <= 3
        if given_start:
            assert logprobs.tokens[0] == "<eos>"
            assert "".join(logprobs.tokens[1:]) == prompt


def test_echo_goes_on_with_what_is_written_and_offsets_are_those_of_the_text(
    client: openai.OpenAI, whim: LanguageModel
) -> None:
    for prompt, echo in (("The 猫", True), ("The 猫", False), ("", True), ("猫", True)):
        found = client.completions.create(
            model=MODEL,
            prompt=prompt,
            echo=echo,
            logprobs=1,
            n=2,
            seed=8,
            max_tokens=25,
        )
        for sample, choice in enumerate(found.choices):
            logprobs = choice.logprobs
            assert logprobs is not None
            assert logprobs.tokens
            assert logprobs.text_offset
            others = ("bytes:", "<eos>")
            plain = [name for name in logprobs.tokens if not name.startswith(others)]
            for name, start, end in zip(
                logprobs.tokens,
                logprobs.text_offset,
                [*logprobs.text_offset[1:], len(choice.text)],
                strict=True,
            ):
                if name in plain and name != "\ufffd":
                    shown = choice.text[start:end]
                    assert shown.replace("\ufffd", "") == name.replace("\ufffd", "")
            if not sample:
                alone = whim.generate(
                    prompt, seed=8, temperature=1, top_k=999, max_new_tokens=25
                )
                assert choice.text == (prompt if echo else "") + alone.text
                own = alone.token_log_probs
                assert logprobs.token_logprobs is not None
                assert logprobs.token_logprobs[-len(own) :] == own


def test_what_takes_long_to_read_and_to_name_is_the_same(
    client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    values: Any = {"model": MODEL, "prompt": ["The cat", "A"], "seed": 3}
    short = client.completions.create(**values, echo=True, logprobs=3)
    monkeypatch.setattr(dialect, "_MANY_TOKENS", 0)
    monkeypatch.setattr(dialect, "_MANY_CHARACTERS", 0)
    long = client.completions.create(**values, echo=True, logprobs=3)
    assert long.choices == short.choices


def test_the_end_is_a_token_too(client: openai.OpenAI) -> None:
    found = client.completions.create(
        model=MODEL,
        prompt="The cat",
        echo=True,
        logprobs=1,
        max_tokens=1,
        logit_bias={str(EOS_ID): 100},
    )
    (choice,) = found.choices
    assert choice.text == "The cat"
    assert choice.finish_reason == "stop"
    logprobs = choice.logprobs
    assert logprobs is not None
    assert logprobs.tokens
    assert logprobs.text_offset
    # who scores a prompt leaves the last token out
    assert "".join(logprobs.tokens[:-1]) == "The cat"
    assert (logprobs.tokens[-1], logprobs.text_offset[-1]) == ("<eos>", 7)
    assert found.usage is not None
    assert found.usage.completion_tokens == 1


def test_a_stop_string_and_its_tokens_are_left_out(
    client: openai.OpenAI,
) -> None:
    whole = client.completions.create(
        model=MODEL, prompt="The", seed=5, logprobs=0, max_tokens=12
    )
    text = whole.choices[0].text
    logprobs = whole.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.text_offset
    assert logprobs.tokens
    stop = text[5:7]
    cut = client.completions.create(
        model=MODEL, prompt="The", seed=5, logprobs=0, max_tokens=12, stop=stop
    )
    (choice,) = cut.choices
    assert choice.finish_reason == "stop"
    assert choice.text == text[: text.index(stop)]
    assert choice.logprobs is not None
    expected = [offset for offset in logprobs.text_offset if offset < len(choice.text)]
    assert choice.logprobs.text_offset == expected


# Streams
# --------------------------------------------------------------------------------------


def test_the_chunks_of_a_stream_are_the_answer(client: openai.OpenAI) -> None:
    for options in (
        {"prompt": ["The", "A dog 猫"], "n": 2, "logprobs": 1, "echo": True},
        {"prompt": "The", "stop": ["e", "zz"]},
        {"prompt": "", "echo": True, "max_tokens": 0},
    ):
        values: Any = {"model": MODEL, "seed": 6, "max_tokens": 20, **options}
        whole = client.completions.create(**values)
        texts = dict.fromkeys(range(len(whole.choices)), "")
        reasons: dict[int, Any] = {}
        tokens: dict[int, list[Any]] = {index: [] for index in texts}
        usages = []
        for chunk in client.completions.create(
            **values, stream=True, stream_options={"include_usage": True}
        ):
            usages.append(chunk.usage)
            for choice in chunk.choices:
                texts[choice.index] += choice.text
                if choice.finish_reason:
                    reasons[choice.index] = choice.finish_reason
                if choice.logprobs:
                    logprobs = choice.logprobs
                    tokens[choice.index] += zip(
                        logprobs.tokens or (),
                        logprobs.token_logprobs or (),
                        logprobs.text_offset or (),
                        strict=True,
                    )
        assert usages[-1] == whole.usage
        assert set(usages[:-1]) == {None}
        for choice in whole.choices:
            assert texts[choice.index] == choice.text
            assert reasons[choice.index] == choice.finish_reason
            if choice.logprobs:
                logprobs = choice.logprobs
                assert tokens[choice.index] == [
                    *zip(
                        logprobs.tokens or (),
                        logprobs.token_logprobs or (),
                        logprobs.text_offset or (),
                        strict=True,
                    )
                ]


def test_a_stream_ends_with_done_and_tokens_come_one_by_one(address: str) -> None:
    fields = {"prompt": "The", "stream": True, "seed": 1, "max_tokens": 9}
    answer = asked(address, "/v1/completions", {"model": MODEL, **fields})
    assert answer.type.startswith("text/event-stream")
    events = answer.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert len(chunks) >= 6
    assert all("usage" not in chunk for chunk in chunks)


def test_the_asynchronous_client_streams_too(address: str) -> None:
    async def text() -> str:
        async with openai.AsyncOpenAI(
            base_url=f"http://{address}/v1", api_key="none", max_retries=0
        ) as client:
            stream = await client.completions.create(
                model=MODEL, prompt="The", stream=True, seed=6
            )
            pieces = [chunk.choices[0].text async for chunk in stream]
            whole = await client.completions.create(model=MODEL, prompt="The", seed=6)
            assert "".join(pieces) == whole.choices[0].text
        return whole.choices[0].text

    assert asyncio.run(text())


def test_a_fault_in_mid_stream_is_an_error_that_the_client_raises(
    client: openai.OpenAI, whim: LanguageModel
) -> None:
    ids = whim.tokenizer.encode("poison")
    # the model is led to what it cannot continue
    prompts = [ids[:-1]]
    last = {str(ids[-1]): 100}
    stream = client.completions.create(
        model=MODEL, prompt=prompts, stream=True, logit_bias=last, max_tokens=9
    )
    first = next(stream)
    assert first.choices[0].text
    with pytest.raises(openai.APIError, match="no numbers for this text"):
        list(stream)
    with pytest.raises(openai.InternalServerError) as refused:
        client.completions.create(
            model=MODEL, prompt=prompts, stream=False, logit_bias=last, max_tokens=9
        )
    assert refused.value.code == "model_error"
    assert refused.value.response.headers["x-should-retry"] == "false"
    # before the first token it has a status
    with pytest.raises(openai.InternalServerError):
        client.completions.create(model=MODEL, prompt=[ids], stream=True)


def test_the_work_ends_when_the_client_leaves_a_stream(
    client: openai.OpenAI, whim: LanguageModel
) -> None:
    model = whim.model
    assert isinstance(model, Whim)
    model.delay = 0.1
    try:
        stream = client.completions.create(
            model=MODEL,
            prompt="The",
            stream=True,
            max_tokens=200,
            logit_bias={str(EOS_ID): -100},
        )
        next(stream)
        began = time.monotonic()
        stream.close()
        before = -1
        while before != model.steps:
            before = model.steps
            time.sleep(5 * model.delay)
        # all tokens take longer than that
        assert time.monotonic() - began < 199 * model.delay
    finally:
        model.delay = 0.0


def test_the_metrics_count_tokens_and_the_time_to_the_first(
    address: str, client: openai.OpenAI
) -> None:
    def counted() -> dict[str, float]:
        lines = asked(address, "/metrics").text.splitlines()
        rows = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name: float(number) for name, number in rows}

    names = (
        "weft:prompt_tokens_total",
        "weft:generation_tokens_total",
        "weft:time_to_first_token_seconds_count",
        "weft:request_queue_time_seconds_count",
    )
    values: Any = {"model": MODEL, "prompt": "The cat", "seed": 2, "max_tokens": 6}
    num_read = len(tokenizer().encode("The cat"))
    for is_stream in (False, True):
        before = counted()
        answer = client.completions.create(
            **values, logit_bias={str(EOS_ID): -100}, stream=is_stream
        )
        if is_stream:
            list(answer)
        more: list[float] = []
        until = time.monotonic() + 30
        # a request is counted when its answer is over
        while more != [num_read, 6, 1, 1]:
            assert time.monotonic() < until, more
            after = counted()
            more = [after[name] - before.get(name, 0.0) for name in names]


# The tokenizer
# --------------------------------------------------------------------------------------


def get(address: str, path: str) -> Any:
    answer = asked(address, path)
    assert answer.status == 200
    return json.loads(answer.text)


def test_the_tokenizer_is_that_of_the_model(address: str, whim: LanguageModel) -> None:
    ids = whim.tokenizer.encode("A dog 猫")
    status, answer = post(
        address, "/tokenize", prompt="A dog 猫", return_token_strs=True
    )
    assert status == 200
    assert answer["tokens"] == [EOS_ID, *ids]
    assert answer["count"] == len(ids) + 1
    assert answer["max_model_len"] == WINDOW
    assert answer["token_strs"][0] == "<eos>"
    plain = {"prompt": "A dog 猫", "add_special_tokens": False}
    assert post(address, "/tokenize", **plain)[1]["tokens"] == ids
    info = get(address, "/tokenizer_info")
    assert info["bos_token"] is None
    end = {"prompt": info["eos_token"], "add_special_tokens": False}
    assert post(address, "/tokenize", **end)[1]["tokens"] == [EOS_ID]
    # inside a text its name is text
    inside = {"prompt": f"a {info['eos_token']}", "add_special_tokens": False}
    assert EOS_ID not in post(address, "/tokenize", **inside)[1]["tokens"]
    found = post(address, "/detokenize", tokens=[EOS_ID, *ids])
    assert found == (200, {"prompt": "A dog 猫"})
    for wrong in ("a", [1.5], [True], [99999], None):
        assert post(address, "/detokenize", tokens=wrong)[0] == 400
    assert post(address, "/tokenize", prompt="a" * 501)[0] == 413
    assert post(address, "/detokenize", tokens=[5] * 501)[0] == 413
    assert post(address, "/tokenize", messages=[])[0] == 400


TASK = """
task: weft_texts
dataset_path: json
dataset_kwargs:
  data_files:
    test: {path}
test_split: test
output_type: {kind}
doc_to_text: {before}
doc_to_target: {after}
metric_list:
  - metric: {metric}
"""


def lm_eval() -> str:
    """An interpreter that has lm-evaluation-harness: this one, or that of WEFT_LM_EVAL."""
    if find_spec("lm_eval") is not None:
        return sys.executable
    if "WEFT_LM_EVAL" not in os.environ:
        pytest.skip(
            "lm_eval is not installed; WEFT_LM_EVAL can name a Python that has it"
        )
    return os.environ["WEFT_LM_EVAL"]


def evaluated(
    model: str, url: str, folder: Path, rows: list[dict[str, str]], task: dict[str, str]
) -> list[Any]:
    """The log-likelihoods that `lm_eval` finds, and whether each text is the likeliest one."""
    python = lm_eval()
    folder.mkdir()
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "texts.jsonl").write_text(lines, "utf-8")
    filled = TASK.format(path=folder / "texts.jsonl", **task)
    (folder / "weft_texts.yaml").write_text(filled, "utf-8")
    arguments = f"model={model},base_url={url}/v1/completions"
    options = ["--model", "local-completions", "--model_args", arguments]
    options += ["--tasks", "weft_texts", "--include_path", str(folder)]
    options += ["--log_samples", "--output_path", str(folder / "out")]
    offline = {
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder),
    }
    environment = {**os.environ, **offline}
    environment.pop("PYTHONPATH", None)
    subprocess.run(
        [python, "-m", "lm_eval", "run", *options],
        check=True,
        env=environment,
        cwd=folder,
        timeout=300,
    )
    (samples,) = (folder / "out").rglob("samples_*.jsonl")
    found = {}
    for line in samples.read_text("utf-8").splitlines():
        sample = json.loads(line)
        ((answer,),) = sample["resps"]
        found[sample["doc_id"]] = answer
    return [found[number] for number in sorted(found)]


ROLLING = {
    "kind": "loglikelihood_rolling",
    "before": '""',
    "after": '"{{text}}"',
    "metric": "bits_per_byte",
}
PAIRS = {
    "kind": "loglikelihood",
    "before": '"{{before}}"',
    "after": '"{{after}}"',
    "metric": "perplexity",
}


@pytest.mark.long
def test_lm_evaluation_harness_scores_texts_as_weft_score_does(
    server: Running, tmp_path: Path
) -> None:
    texts = [*LINES, " ".join(LINES) * 9, "A"]
    rows = [{"text": text} for text in texts]
    found = evaluated("plays", server.url, tmp_path / "texts", rows, ROLLING)
    model = weft.load(server.models["plays"])
    assert len(model.tokenizer.encode(texts[3])) > model.window_len
    for number, score in zip(found, model.score(texts), strict=True):
        # the harness leaves the end symbol of packed documents out
        end = -1 if model.packed else None
        expected = math.fsum(score.token_log_probs[:end])
        assert float(number) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
def test_lm_evaluation_harness_knows_what_follows_and_what_is_likeliest(
    address: str, whim: LanguageModel, tmp_path: Path
) -> None:
    pairs = [("The cat", " sat on"), ("A dog sees the", " cat"), ("1, 2", ", 3")]
    best = whim.generate("The dog", temperature=0, max_new_tokens=3)
    pairs.append(("The dog", best.text))
    rows = [{"before": before, "after": after} for before, after in pairs]
    url = f"http://{address}"
    found = evaluated(MODEL, url, tmp_path / "pairs", rows, PAIRS)
    for (before, after), (log_prob, is_greedy) in zip(pairs, found, strict=True):
        (score,) = whim.score(before + after)
        num_before = len(whim.tokenizer.encode(before))
        expected = math.fsum(score.token_log_probs[num_before:])
        assert float(log_prob) == pytest.approx(expected, rel=1e-9)
        assert (str(is_greedy) == "True") == (after == best.text)


# Refusals
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"prompt": []}, "prompt", "prompt must be"),
        ({"prompt": ["a", 1]}, "prompt", "prompt must be"),
        ({"prompt": [True]}, "prompt", "prompt must be"),
        ({"prompt": [[1], "a"]}, "prompt", "prompt must be"),
        ({"prompt": {}}, "prompt", "prompt must be"),
        ({"prompt": 7}, "prompt", "prompt must be"),
        ({"prompt": [100_000]}, "prompt", "an id of the prompt"),
        ({"prompt": [-1]}, "prompt", "an id of the prompt"),
        ({"suffix": "end"}, "suffix", "suffix"),
        ({"use_beam_search": True}, "use_beam_search", "beams are for translators"),
        ({"max_tokens": -1}, "max_tokens", "must be from 0 to 200"),
        ({"max_tokens": 201}, "max_tokens", "must be from 0 to 200"),
        ({"max_tokens": "many"}, "max_tokens", "whole number"),
        ({"n": 5}, "n", "must be from 1 to 4"),
        ({"n": 3, "best_of": 2}, "best_of", "must be from 3 to 4"),
        ({"best_of": 2, "stream": True}, "best_of", "cannot be streamed"),
        ({"logprobs": -1}, "logprobs", "must be from 0 to 20"),
        ({"logprobs": True}, "logprobs", "whole number"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "needs stream"),
        ({"stop": ["a"] * 5}, "stop", "at most 4"),
        ({"stop": [""]}, "stop", "empty"),
        ({"stop": 5}, "stop", "string"),
        ({"temperature": -0.1}, "temperature", "must be from 0 to 100"),
        ({"top_p": 0}, "top_p", "above 0"),
        ({"min_p": 1}, "min_p", "below 1"),
        ({"repetition_penalty": 1e-300}, "repetition_penalty", "from 0.01"),
        ({"presence_penalty": 3}, "presence_penalty", "from -2 to 2"),
        ({"logit_bias": {"a": 1}}, "logit_bias", "ids"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5", "from -100 to 100"),
        ({"logit_bias": {"99999": 1}}, "logit_bias", "from 0 to"),
        ({"logit_bias": [5]}, "logit_bias", "object"),
        ({"model": "en-de"}, "model", "use POST /translate"),
        ({"model": "spam"}, "model", "use POST /classify"),
        ({"model": 5}, "model", "string"),
    ],
)
def test_what_is_wrong_is_said_with_the_field(
    address: str, fields: dict[str, Any], param: str, words: str
) -> None:
    status, answer = post(address, **{"prompt": "The", **fields})
    assert status == 400, answer
    error = answer["error"]
    assert words in error["message"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert set(error) == {"message", "type", "param", "code"}


ODD = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([0, 1, 2, 1e-300, 5e-324, -1e300, 2**64, "1", "5"]),
        st.text(max_size=9),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["5", "0", "include_usage", "a"]), inner),
    ),
    max_leaves=6,
)
NAMES = (
    *("prompt", "max_tokens", "temperature", "top_p", "top_k", "min_p", "n", "best_of"),
    *("repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias"),
    *("logprobs", "echo", "seed", "stop", "stream", "stream_options", "suffix", "user"),
)


@tried(max_examples=150, deadline=None)
@given(fields=st.dictionaries(st.sampled_from(NAMES), ODD, max_size=5))
def test_no_request_is_a_mistake_of_the_server(
    address: str, fields: dict[str, Any]
) -> None:
    body = {"model": MODEL, "max_tokens": 2, **fields}
    answer = asked(address, "/v1/completions", body)
    assert answer.status in (200, 400, 413), answer.text
    assert '"server_error"' not in answer.text


def test_what_is_too_large_is_413(address: str) -> None:
    for prompt in ("a" * 501, [5] * 501, ["a"] * 21):
        status, answer = post(address, prompt=prompt)
        assert status == 413
        assert answer["error"]["code"] == "too_large"
    assert post(address, prompt=["a"] * 6, n=4)[0] == 413


def test_an_unknown_model_is_404_and_chat_is_refused_with_the_reason(
    address: str, client: openai.OpenAI
) -> None:
    status, answer = post(address, model="none", prompt="a")
    assert status == 404
    assert answer["error"]["code"] == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="no chat template"):
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "Hello"}]
        )


def test_an_address_without_its_version_is_told(address: str) -> None:
    client = openai.OpenAI(base_url=f"http://{address}", api_key="none", max_retries=0)
    for ask in (
        lambda: client.completions.create(model=MODEL, prompt="The"),
        client.models.list,
    ):
        with pytest.raises(openai.NotFoundError, match="base_url ends in /v1"):
            ask()


def test_the_first_language_model_serves_who_names_none(address: str) -> None:
    status, answer = post(address, model="", prompt="The", max_tokens=1)
    assert status == 200
    assert answer["model"] == MODEL


def test_clients_are_told_when_and_whether_to_come_again() -> None:
    expected: list[tuple[Refusal, int, str | None, str | None, str]] = [
        (Overloaded(0.2), 503, "1", None, "server_error"),
        (Overloaded(7.3), 503, "8", None, "server_error"),
        (Overloaded(5000.0), 503, "120", None, "server_error"),
        (TooManyRequests(61.0), 429, "61", None, "rate_limit_error"),
        (Stopping(), 503, "5", None, "server_error"),
        (TooLate(), 503, "5", "false", "server_error"),
        (Broken("no"), 500, None, "false", "server_error"),
        (Impossible("no"), 400, None, None, "invalid_request_error"),
        (Unauthorized("no"), 401, None, None, "authentication_error"),
        (UnknownModel("a"), 404, None, None, "not_found_error"),
    ]
    for refusal, status, retry_after, retries, kind in expected:
        response = dialect.refuse(refusal)
        assert response.status_code == status
        assert response.headers.get("retry-after") == retry_after
        assert response.headers.get("x-should-retry") == retries
        assert json.loads(bytes(response.body))["error"]["type"] == kind


def test_its_paths_are_its_own() -> None:
    for path in (
        "/v1/completions",
        "/v1/models/a/b",
        "/v1/chat/completions",
        "/v1/models",
    ):
        assert dialect.owns(path)
    for path in ("/v1/inspect", "/translate", "/v1/completionsX", "/"):
        assert not dialect.owns(path)
