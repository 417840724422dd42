"""A server of tiny models, and all that should not be sent to it: rows S1 to S11."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any
from urllib.parse import urlencode

import pytest

from pushed import of_which
from tiny_server import Running
from weft.data.tokenizer import EOS_ID
from weft.serve.keys import new_key

from .traffic import FORM, JSON, ODD, SCANS, SECRET

Launch = Callable[..., Running]
SLACK = 30.0  # seconds, on a busy machine


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    server: Running,
    method: str,
    path: str,
    body: bytes | Iterator[bytes] | None = None,
    **headers: str,
) -> Answer:
    """One request on a connection of its own."""
    connection = HTTPConnection(*server.address, timeout=300)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read())
    finally:
        connection.close()


def post(server: Running, path: str, value: Any, **headers: str) -> Answer:
    body = json.dumps(value).encode()
    return ask(server, "POST", path, body, content_type=JSON, **headers)


def translate(server: Running, q: Any, **more: Any) -> Answer:
    return post(server, "/translate", {"q": q, "source": "en", "target": "de", **more})


def complete(server: Running, prompt: Any, **more: Any) -> Answer:
    wanted = {"model": "plays", "prompt": prompt, "temperature": 0, **more}
    return post(server, "/v1/completions", wanted)


def number(server: Running, name: str, **headers: str) -> float:
    """A number of /metrics."""
    page = ask(server, "GET", "/metrics", **headers).body.decode()
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in page.split("\n")
        if line.startswith(name)
    )


def rows_now(server: Running) -> float:
    return number(server, "weft:num_rows_running") + number(
        server, "weft:num_rows_waiting"
    )


def wait_for(condition: Callable[[], bool], seconds: float = SLACK) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not happen"
        time.sleep(0.05)
    return time.monotonic() - began


def memory(server: Running, kind: str = "VmRSS") -> int:
    """The memory of the server's process, in KiB; VmHWM is the most that it ever had."""
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    return int(status.partition(f"{kind}:")[2].split()[0])


def open_names(server: Running) -> list[str]:
    """What the server has open, where the system tells that."""
    folder = Path(f"/proc/{server.process.pid}/fd")
    names = []
    for one in folder.iterdir() if folder.exists() else ():
        with suppress(OSError):  # closed in between
            names.append(os.readlink(one))
    return names


def written_on(server: Running) -> bool:
    """Whether the server still answers, and rightly."""
    return (
        ask(server, "GET", "/health").status == 200
        and translate(server, "A man.").status == 200
    )


FIELDS = (
    "q", "source", "target", "text", "texts", "text_list", "inputs", "input", "prompt",
    "target_lang", "source_lang", "model", "prefix", "max_tokens", "n", "alternatives",
    "format", "file", "s", "parameters",
)  # fmt: skip
WRONG: list[Any] = [
    None,
    True,
    5,
    -1,
    1e300,
    "",
    "zz",
    [],
    {},
    [None],
    [["a"]],
    [5, "a"],
]


def routes(server: Running) -> Iterator[tuple[str, str]]:
    described = ask(server, "GET", "/openapi.json").json
    for path, methods in described["paths"].items():
        filled = path.replace("{", "").replace("}", "")
        for method in methods:
            yield method.upper(), filled


def test_S1_odd_bodies_are_refused_at_every_address(server: Running) -> None:
    found = list(routes(server))
    paths = {path for _, path in found}
    assert {"/translate", "/v2/translate", "/v1/completions", "/classify"} <= paths
    assert "/MtRestService/TranslateJson" in paths
    may_be_none = (b"", b"[]", b"=&&;=Geheimnisse")  # no fields, which some routes take
    taken = ("/MtRestService/PreOrderBatch", b'["Geheimnisse"]')
    wrong = []
    for method, path in found:
        for kind, body in ODD:
            answer = ask(server, method, path, body, content_type=kind)
            is_refused = 400 <= answer.status < 500
            is_refused &= answer.headers.get("content-type", "").startswith(JSON)
            is_refused &= SECRET.encode() not in answer.body
            is_harmless = method == "GET" or body in may_be_none
            is_harmless |= (path, body) == taken and not answer.body
            if not is_refused and not (is_harmless and answer.status < 500):
                wrong.append((method, path, kind, body[:20], answer.status))
    assert wrong == []
    assert written_on(server)


def test_S1_fields_of_wrong_types_are_refused_and_never_a_fault(
    server: Running,
) -> None:
    good = {
        "/translate": {"q": "A man.", "source": "en", "target": "de"},
        "/detect": {"q": "A man."},
        "/v2/translate": {"text": ["A man."], "target_lang": "DE"},
        "/v1/completions": {"model": "plays", "prompt": "A", "max_tokens": 2},
        "/v1/translate": {"texts": ["A man."], "source": "en", "target": "de"},
        "/v1/detect": {"text": "A man."},
        "/classify": {"model": "languages", "input": "A man."},
        "/predict": {"inputs": "A man."},
    }
    wrong = []
    for path, body in good.items():
        assert post(server, path, body).status == 200, path
        for name in {*FIELDS, *body}:
            for value in WRONG if name in body else WRONG[6:8]:
                answer = post(server, path, {**body, name: value})
                if answer.status >= 500:
                    wrong.append((path, name, value, answer.status))
    assert wrong == []


@pytest.mark.long
def test_S1_schemathesis_finds_no_fault(server: Running, tmp_path: Path) -> None:
    """Requests made up from the server's own description, valid and not."""
    order = [Path(sys.executable).with_name("schemathesis"), "run"]
    options = ["--checks", "not_a_server_error", "--max-examples", "20", "--seed", "1"]
    done = subprocess.run(
        [
            *order,
            f"{server.url}/openapi.json",
            *options,
            "--generation-database",
            "none",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,  # it keeps what it found there
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout
    assert written_on(server)


def test_S2_a_body_of_100_mb_is_not_read(server: Running) -> None:
    sent = 0

    def body() -> Iterator[bytes]:
        nonlocal sent
        yield b'{"q": "'
        for _ in range(1600):
            sent += 65_536
            yield b"x" * 65_536

    before = memory(server)
    for path in ("/translate", "/v1/completions", "/classify"):
        try:
            answer = ask(server, "POST", path, body(), content_type=JSON)
            assert answer.status == 413
        except (ConnectionError, HTTPException):
            pass  # the server closed the connection: the answer may be lost then
    told = {"content_type": JSON, "content_length": str(100 * 2**20)}
    with socket.create_connection(server.address, timeout=SLACK) as one:
        head = "POST /translate HTTP/1.1\r\nHost: localhost\r\n"
        head += "".join(f"{a.replace('_', '-')}: {b}\r\n" for a, b in told.items())
        one.sendall(head.encode() + b"\r\n")
        assert one.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert memory(server) - before < 50_000
    assert written_on(server)


def test_S2_numbers_out_of_bounds_are_refused(server: Running) -> None:
    limits = ask(server, "GET", "/info").json["limits"]
    for name, status, answer in (
        ("texts", 400, translate(server, ["a"] * 100_000)),
        ("characters", 400, translate(server, "a " * limits["max_characters"])),
        ("alternatives", 400, translate(server, "a", alternatives=10_000)),
        ("max_tokens", 400, complete(server, "a", max_tokens=-1)),
        ("max_tokens", 400, complete(server, "a", max_tokens=10**9)),
        ("n", 400, complete(server, "a", n=10**6, temperature=1)),
        ("best_of", 400, complete(server, "a", best_of=10**6)),
        ("temperature", 400, complete(server, "a", temperature="NaN")),
        ("prompts", 413, complete(server, ["a"] * 100_000)),
        ("ids", 400, complete(server, [10**9])),
        ("ids", 400, complete(server, [-1])),
    ):
        assert answer.status == status, (name, answer.body[:300])
    assert limits["max_alternatives"] < 10_000
    assert written_on(server)


ODD_TEXTS = [
    "", " ", "\n", "\t\t", "a\x00b", "👩‍👩‍👧‍👦🏳️‍🌈", "\u202eABC\u202c", "שלום עולם", "مرحبا",
    "e" + "\u0301" * 10_000, "a" * 10_000, "\ufeff", "\ufffe", "\u2028\u2029", "</s><pad>",
    "{0} <b0></b0> %s ${x}", "\U0010ffff", "ﷺ" * 100, ". . . . .", "1" * 500,
]  # fmt: skip


def test_S3_odd_texts_come_back_as_strings_in_order(server: Running) -> None:
    answer = translate(server, ODD_TEXTS)
    assert answer.status == 200, answer.body
    texts = answer.json["translatedText"]
    assert len(texts) == len(ODD_TEXTS)
    assert all(isinstance(text, str) for text in texts)
    assert texts[:4] == ODD_TEXTS[:4], "nothing in, nothing out"
    order = ["A man.", "", "A dog.", " ", "A man."]
    texts = translate(server, order).json["translatedText"]
    assert (texts[1], texts[3]) == ("", " ")
    assert texts[0] == texts[4] == translate(server, "A man.").json["translatedText"]
    for text in ODD_TEXTS:
        assert complete(server, text, max_tokens=2).status in (200, 400)
    assert post(server, "/classify", {"input": ODD_TEXTS}).status in (200, 400)
    body = b'{"q": "a\\ud800", "source": "en", "target": "de"}'
    assert ask(server, "POST", "/translate", body, content_type=JSON).status == 400


# of a slow server: minutes, if nobody ends it
LONG_WORK = {
    "model": "plays",
    "prompt": ["A man and a dog"] * 400,
    "max_tokens": 200,
    "temperature": 1,
    "seed": 1,
    "logit_bias": {str(EOS_ID): -100},
}


@pytest.mark.parametrize("streams", of_which([False, True], True))
def test_S4_the_work_of_a_client_that_leaves_ends(
    launch: Launch, streams: bool
) -> None:
    server = launch(names=("plays", "en-de"), slow=True)
    body = json.dumps({**LONG_WORK, "stream": streams}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(server.address, timeout=SLACK) as one:
        one.sendall(head.encode() + body)
        wait_for(lambda: rows_now(server) > 300)
        if streams:
            assert b"200 OK" in one.recv(4096)
    wait_for(lambda: rows_now(server) == 0)
    aborted = 'weft:request_success_total{finished_reason="abort"}'
    wait_for(lambda: number(server, aborted) == 1)
    assert written_on(server)


def test_S4_clients_that_say_nothing_hold_nobody_up(launch: Launch) -> None:
    server = launch()
    silent = [socket.create_connection(server.address) for _ in range(200)]
    for i, one in enumerate(silent):
        one.sendall((b"", b"POST /tr", b"GET / HTTP/1.1\r\nX: ")[i % 3])
    halves = [socket.create_connection(server.address) for _ in range(50)]
    for one in halves:
        one.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n{"
        )
    began = time.monotonic()
    assert written_on(server)
    # a silent one is waited for 10 seconds, half a body 60
    assert time.monotonic() - began < SLACK
    for one in silent + halves:
        one.close()


@pytest.mark.long
def test_S4_slow_connections_are_closed_in_time(launch: Launch) -> None:
    server = launch()
    for data, seconds in (
        (b"", 10),
        (b"GET / HTTP/1.1\r\n", 10),
        (
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
            60,
        ),
    ):
        with socket.create_connection(server.address, timeout=seconds + SLACK) as one:
            one.sendall(data)
            began = time.monotonic()
            while one.recv(4096):
                pass
            assert seconds - 1 < time.monotonic() - began < seconds + SLACK


@pytest.mark.long
def test_S4_a_head_in_drops_and_answers_that_nobody_reads_are_given_up(
    launch: Launch,
) -> None:
    server = launch()
    with socket.create_connection(server.address, timeout=0.5) as one:
        one.sendall(b"GET / HTTP/1.1\r\n")
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 10 + SLACK and not received(one):
                one.sendall(b"X-A: b\r\n")
        assert 9 < time.monotonic() - began < 10 + SLACK
    before = len(open_names(server))
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        one.settimeout(SLACK)
        one.connect(server.address)
        one.sendall(b"GET /page/serve/app.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)
        began = time.monotonic()
        wait_for(lambda: len(open_names(server)) > before)
        assert written_on(server)
        wait_for(lambda: len(open_names(server)) <= before, 30 + 2 * SLACK)
        assert time.monotonic() - began > 25


def received(one: socket.socket) -> bool:
    """Whether something has come, or the end."""
    try:
        one.recv(4096)
    except TimeoutError:
        return False
    return True


def test_S5_more_than_can_be_done_is_refused_at_once(launch: Launch) -> None:
    server = launch("--max-waiting", "40", names=("plays",), slow=True)
    texts = [f"A man and {i} dogs are running in the snow." for i in range(30)]

    def ask_for(_: int) -> Answer:
        return complete(server, texts, max_tokens=2)

    with ThreadPoolExecutor(16) as clients:
        kept = list(clients.map(ask_for, range(48)))
    done = [answer for answer in kept if answer.status == 200]
    refused = [answer for answer in kept if answer.status != 200]
    assert done
    assert refused, "the fault did not land"
    for answer in refused:
        assert answer.status == 503
        assert 1 <= int(answer.headers["retry-after"]) <= 120
    wait_for(lambda: rows_now(server) == 0)
    alone = ask_for(0).json["choices"]
    assert all(answer.json["choices"] == alone for answer in done)


def test_S5_what_cannot_be_done_in_time_is_refused_or_given_up(launch: Launch) -> None:
    server = launch("--deadline", "3", names=("plays", "en-de"), slow=True)
    for work, said in (
        (LONG_WORK, "busy"),
        # few texts, of which nobody knows beforehand that they take so long
        ({**LONG_WORK, "prompt": ["A man", "A dog", "Anna"]}, "not done within"),
    ):
        began = time.monotonic()
        answer = post(server, "/v1/completions", work)
        seconds = time.monotonic() - began
        assert answer.status == 503
        assert said in answer.json["error"]["message"]
        assert 1 <= int(answer.headers["retry-after"]) <= 120
        assert seconds < SLACK
        wait_for(lambda: rows_now(server) == 0)
    assert seconds > 2
    assert written_on(server)


POISONED = """
import sys
from weft.predict.classifier import Classifier
from weft.predict.translator import Translator
plan, sentence, classify = Translator.plan, Translator.sentence, Classifier.classify
poison = set()
def planning(self, texts, *more, **named):
    planned = plan(self, texts, *more, **named)
    for text in texts:
        if "poison" in text:
            poison.update(row.ids for row in planned.plans[text].rows)
    return planned
def reading(self, row, settings, number=None):
    if number is not None and row.ids in poison:
        raise MemoryError
    return sentence(self, row, settings, *(() if number is None else (number,)))
def classifying(self, texts, *more, **named):
    if any("poison" in text for text in texts):
        raise RuntimeError(texts)
    return classify(self, texts, *more, **named)
Translator.plan, Translator.sentence = planning, reading
Classifier.classify = classifying
sys.argv = ["weft", "serve", *sys.argv[1:], "--port", "0", "--threads", "1"]
from weft.__main__ import main
main()
"""


def test_S6_a_text_that_breaks_a_model_harms_no_other(
    tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    server = run_script(
        POISONED, [tiny_models["en-de"], tiny_models["languages"]], tmp_path
    )
    texts = [f"A man and {i} dogs." for i in range(12)]
    poison = "A man and his poison."
    try:
        alone = [translate(server, text).body for text in texts]
        named = [
            post(server, "/classify", {"input": text}).json["data"] for text in texts
        ]
        with ThreadPoolExecutor(16) as clients:
            bad = [clients.submit(translate, server, poison) for _ in range(4)]
            good = [clients.submit(translate, server, text) for text in texts]
            bad += [
                clients.submit(post, server, "/classify", {"input": poison})
                for _ in range(4)
            ]
            classified = [
                clients.submit(post, server, "/classify", {"input": text})
                for text in texts
            ]
            assert {one.result().status for one in bad} == {500}
            assert [one.result().body for one in good] == alone
            assert [one.result().json["data"] for one in classified] == named
        assert "poison" not in server.said()
        assert translate(server, texts[0]).body == alone[0]
    finally:
        server.stop()


def run_script(script: str, folders: list[Path], tmp_path: Path) -> Running:
    """Start a server whose program is changed."""
    log = tmp_path / "log.txt"
    with log.open("w", encoding="utf-8") as written:
        process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, folders)],
            stdout=written,
            stderr=written,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    server = Running(process, log)
    wait_for(lambda: "open http://" in server.said() or process.poll() is not None, 120)
    server.url = server.said().partition("open ")[2].partition("/\n")[0]
    return server


def test_S7_a_text_that_never_ends_is_cut_and_said(server: Running) -> None:
    prompts = ["A man", "Two dogs", "The old", "Anna", "In the"]
    wanted = {"temperature": 1, "seed": 1, "max_tokens": 3, "logprobs": 1}
    choices = complete(server, prompts, **wanted).json["choices"]
    endless = [one for one in choices if one["finish_reason"] == "length"]
    assert endless, "the fault did not land"
    assert {len(one["logprobs"]["tokens"]) for one in endless} == {3}
    wanted = {"texts": ["A man is running."] * 2, "source": "en", "target": "de"}
    answer = post(server, "/v1/translate", wanted).json
    for translation in answer["translations"]:
        assert len(translation["text"]) < 2000
        assert {"cut", "empty", "repetition", "short"} & set(translation["marks"])


def test_S8_requests_at_one_moment_are_answered_as_alone(server: Running) -> None:
    texts = [
        "A man.",
        "Two dogs are running through the snow and a woman looks at them.",
        "The house.",
        "A child plays the guitar while the old man reads a book in the garden.",
        "Anna has a book.",
    ]
    alone = [translate(server, text, alternatives=2).body for text in texts]
    written = [
        complete(server, text, max_tokens=12, logprobs=2).json["choices"]
        for text in texts
    ]
    with ThreadPoolExecutor(15) as clients:
        answers = [
            clients.submit(translate, server, text, alternatives=2)
            for text in texts * 4
        ]
        others = [
            clients.submit(complete, server, text, max_tokens=12, logprobs=2)
            for text in texts * 4
        ]
        assert [answer.result().body for answer in answers] == alone * 4
        assert [one.result().json["choices"] for one in others] == written * 4


@pytest.mark.parametrize(
    "how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
@pytest.mark.long
def test_S9_what_runs_is_finished_and_then_the_server_ends(
    launch: Launch, how: signal.Signals
) -> None:
    server = launch(names=("plays", "en-de"), slow=True)
    work = {**LONG_WORK, "prompt": ["A man and a dog"] * 60, "max_tokens": 40}
    with ThreadPoolExecutor(1) as clients:
        working = clients.submit(post, server, "/v1/completions", work)
        wait_for(lambda: rows_now(server) > 20)
        server.process.send_signal(how)
        answer = working.result()
    assert answer.status == 200
    assert len(answer.json["choices"]) == 60
    assert server.process.wait(SLACK) == 0
    assert "stopping" in server.said()
    with pytest.raises(OSError, match=r"refused|reset"):
        ask(server, "GET", "/health")


def test_S9_while_it_ends_the_server_lives_and_is_not_ready(launch: Launch) -> None:
    server = launch(names=("plays", "en-de"))
    assert ask(server, "GET", "/ready").json == {"status": "ok"}
    with ThreadPoolExecutor(1) as clients:
        wanted = {**LONG_WORK, "max_tokens": 100}
        working = clients.submit(post, server, "/v1/completions", wanted)
        wait_for(lambda: rows_now(server) > 100)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in server.said())
        ready = ask(server, "GET", "/ready")
        assert (ready.status, ready.json) == (503, {"status": "stopping"})
        assert ask(server, "GET", "/health").status == 200
        assert translate(server, "A man.").status == 503
        assert working.result().status == 200
    assert server.process.wait(SLACK) == 0


def test_S9_a_second_signal_leaves_at_once(launch: Launch) -> None:
    server = launch(names=("plays",), slow=True)
    body = json.dumps(LONG_WORK).encode()
    with socket.create_connection(server.address, timeout=SLACK) as one:
        head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n"
        one.sendall(head.encode() + body)
        wait_for(lambda: rows_now(server) > 300)
        server.process.send_signal(signal.SIGINT)
        wait_for(lambda: "stopping" in server.said())
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(SLACK) == 130
    assert server.said().endswith("weft: left at once\n")


def test_S9_a_server_without_work_ends_at_once(launch: Launch) -> None:
    server = launch()
    with socket.create_connection(server.address, timeout=SLACK) as idle:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(SLACK) == 0
        # reset where the server ended before it took the connection
        with contextlib.suppress(ConnectionResetError):
            assert idle.recv(10) == b""
    assert "Traceback" not in server.said()


LATE = """
import sys, time
import uvicorn
made = uvicorn.Server.__init__
def late(*arguments, **named):
    time.sleep(1)
    made(*arguments, **named)
uvicorn.Server.__init__ = late
sys.argv = ["weft", "serve", sys.argv[1], "--port", "0"]
from weft.__main__ import main
main()
"""


def test_S9_a_signal_is_heeded_as_soon_as_the_server_has_said_where_it_is(
    tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    server = run_script(LATE, [tiny_models["en-de"]], tmp_path)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(SLACK) == 0


DYING = """
import sys
from weft.serve import pool
step = pool._Worker._step
def dying(worker):
    step(worker)
    raise SystemExit
pool._Worker._step = dying
sys.argv = ["weft", "serve", sys.argv[1], "--port", "0"]
from weft.__main__ import main
main()
"""


def test_S10_a_server_whose_thread_has_died_ends_with_an_error(
    tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    server = run_script(DYING, [tiny_models["en-de"]], tmp_path)
    try:
        with suppress(OSError, HTTPException):
            translate(server, "A man.")
        code = server.process.wait(SLACK)
    finally:
        server.process.kill()
        server.process.wait()
    assert code == 1
    assert "a thread of the server has ended" in server.said()
    assert "Traceback" not in server.said()


def test_S10_a_model_is_replaced_while_it_is_used(
    launch: Launch, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "served"
    copytree(tiny_models["en-de"], folder)
    server = launch(f"mine={folder}", names=("de-en",))
    other = {"source": "en", "target": "de"}
    before = translate(server, "A man.", **other).body
    failed: list[int] = []
    over = threading.Event()

    def use() -> None:
        while not over.is_set():
            answer = translate(server, "A man.", **other)
            if answer.status != 200:
                failed.append(answer.status)
            time.sleep(0.1)

    with ThreadPoolExecutor(2) as clients:
        using = [clients.submit(use) for _ in range(2)]
        try:
            rmtree(folder)
            time.sleep(2.5)
            assert translate(server, "A man.", **other).body == before
            folder.mkdir()
            (folder / "manifest.json").write_text("{", "utf-8")
            wait_for(lambda: "mine goes on as it was" in server.said())
            assert translate(server, "A man.", **other).body == before
            rmtree(folder)
            copytree(tiny_models["en-de"], folder)
            later = time.time() + 5
            os.utime(folder / "manifest.json", (later, later))
            wait_for(
                lambda: (
                    "has a new model; now mine: translation en-de, by " in server.said()
                )
            )
            assert translate(server, "A man.", **other).body == before
        finally:
            over.set()
        for one in using:
            one.result()
    assert failed == []
    # the former model is not kept
    wait_for(lambda: not any("(deleted)" in name for name in open_names(server)))


def test_S11_every_address_but_a_few_needs_a_key(
    launch: Launch, tmp_path: Path
) -> None:
    key, line = new_key("laptop")
    keys = tmp_path / "keys.txt"
    keys.write_text(f"{line}\n", "utf-8")
    keys.chmod(0o600)
    server = launch("--keys", str(keys), names=("en-de", "plays", "languages"))
    named = {"authorization": f"Bearer {key}"}
    described = ask(server, "GET", "/openapi.json", **named).json["paths"]
    open_paths = {"/health", "/ready", "/languages", "/frontend/settings"}
    assert open_paths < set(described)
    for path, methods in described.items():
        for method in methods:
            filled = path.replace("{", "").replace("}", "")
            answer = ask(server, method.upper(), filled, b"", content_type=JSON)
            is_open = method == "get" and path in open_paths
            assert (answer.status == 200) == is_open, (method, path, answer.status)
            assert is_open or answer.status in (400, 401, 403), answer.status
    for path in SCANS:
        assert 400 <= ask(server, "GET", path).status < 500 or path.startswith("/?")
    assert ask(server, "GET", "/").status == 200
    wrong, _ = new_key("other")
    for _ in range(3):
        answer = translate(server, SECRET, api_key=wrong)
        assert answer.status in (400, 401, 403)
    query = urlencode({"q": SECRET, "source": "en", "target": "de", "api_key": key})
    assert ask(server, "POST", f"/translate?{query}").status == 200
    answer = post(server, "/translate", {"q": SECRET}, **named)
    assert answer.status == 400
    ask(server, "POST", f"/{SECRET}", b"", user_agent=SECRET, referer=SECRET, **named)
    page = ask(server, "GET", "/metrics", **named).body.decode()
    digest = line.split(":")[1]
    for told in (server.said(), page):
        assert "/translate" in told
        for secret in (
            SECRET,
            key,
            wrong,
            digest,
            "127.0.0.1:",
            "127.0.0.1 ",
            "laptop",
        ):
            shown = told.replace(f"open {server.url}/", "")
            assert secret not in shown
    assert "Traceback" not in server.said()
    assert server.process.poll() is None


def test_S11_no_foreign_page_or_name_is_let_in(server: Running) -> None:
    body = urlencode({"q": "A man.", "source": "en", "target": "de"}).encode()
    for headers in (
        {"host": "evil.example"},
        {"host": f"evil.example:{server.address[1]}"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
    ):
        for method, path in (("POST", "/translate"), ("GET", "/info")):
            answer = ask(server, method, path, body, content_type=FORM, **headers)
            assert answer.status == 403, headers
            assert "access-control-allow-origin" not in answer.headers
    own = {"origin": server.url, "sec_fetch_site": "same-origin"}
    assert (
        ask(server, "POST", "/translate", body, content_type=FORM, **own).status == 200
    )


def test_S11_a_range_of_a_file_costs_nothing(server: Running) -> None:
    """CVE-2025-62727: parts of a range were merged in quadratic time."""
    parts = ",".join(f"{i}-{i}" for i in range(0, 12_000, 2))
    began = time.monotonic()
    answer = ask(server, "GET", "/page/serve/app.js", range=f"bytes={parts}")
    assert answer.status in (200, 400, 416)
    assert time.monotonic() - began < SLACK
