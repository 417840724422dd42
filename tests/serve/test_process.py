"""The server as a process: it starts, says where it is, and ends in grace."""

import json
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

from tiny_server import MODELS, Running

Command = Callable[..., Any]


def test_the_server_of_all_tests_has_a_model_of_every_task(server: Running) -> None:
    with urlopen(f"{server.url}/info") as answer:
        info = json.load(answer)
    assert [model["id"] for model in info["models"]] == list(MODELS)
    tasks = {model["id"]: model["task"] for model in info["models"]}
    assert tasks["en-zh"] == "translation"
    assert tasks["plays"] == "language-modelling"
    assert tasks["languages"] == "classification"
    assert info["pairs"] == [["en", "de"], ["de", "en"], ["en", "zh"]]
    assert "en-de: translation en-de, by " in server.said()
