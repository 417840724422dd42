"""Models whose two languages are the same by name, or not known: they translate nevertheless."""

from starlette.testclient import TestClient

from weft.serve.limits import Limits

from .conftest import MODELS, StandIn, all_dialects, model, small_app

UNKNOWN = model("mine", "translation", "und", "und")
MODERN = model("modern", "translation", "en", "en")


def client_of() -> TestClient:
    service = StandIn([*MODELS, UNKNOWN, MODERN], Limits())
    return TestClient(small_app(service, all_dialects()))


def test_a_model_of_unknown_languages_translates_on_every_way() -> None:
    with client_of() as ask:
        for source in ("und", "auto"):
            fields = {"q": "a b", "source": source, "target": "und"}
            answer = ask.post("/translate", json=fields).json()
            assert answer["translatedText"] == "B A"
        answer = ask.post("/models/mine", json={"inputs": "a b"}).json()
        assert answer[0]["translation_text"] == "B A"
        for more in ({"model": "mine"}, {"source": "und", "target": "und"}):
            answer = ask.post("/v1/translate", json={"text": "a b", **more}).json()
            (found,) = answer["translations"]
            assert (found["text"], found["models"]) == ("B A", ["mine"])
        listed = {row["code"]: row["targets"] for row in ask.get("/languages").json()}
        assert listed["und"] == ["und"]
        file = {"file": ("a.txt", b"a b")}
        fields = {"source": "und", "target": "und"}
        answer = ask.post("/translate_file", files=file, data=fields).json()
        address = answer["translatedFileUrl"].removeprefix("http://testserver")
        assert ask.get(address).text == "B A"


def test_a_model_within_a_language_is_asked_and_another_text_stays() -> None:
    with client_of() as ask:
        for language, text in (("en", "B A"), ("de", "a b")):
            fields = {"q": "a b", "source": language, "target": language}
            answer = ask.post("/translate", json=fields).json()
            assert answer["translatedText"] == text
