"""Text that is not UTF-8: the likely encoding is named, and the command that converts it does."""

import gzip
import subprocess
from pathlib import Path

import pytest

from weft.data.corpus import read_pairs
from weft.data.formats.encoding import conversion, probable_encoding
from weft.data.formats.filenames import from_name
from weft.errors import DataError

TEXTS = {
    "German": "Die Bestellung läuft über das Büro in Köln. Schöne Grüße, Jörg Müller.",
    "French": "« Où êtes-vous allé cet été ? » – L’hôtel coûte 50 € à Nîmes, naïve garçon.",
    "Polish": "Zażółć gęślą jaźń, proszę pana. Łódź jest piękna, a wąż śpi.",
    "Czech": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Russian": "Сегодня хорошая погода, и мы пойдём гулять в парк. Привет, Москва!",
    "Greek": "Καλημέρα, τι κάνεις σήμερα; Η Αθήνα είναι όμορφη.",
    "Hebrew": "שלום, מה שלומך היום? אני תלמיד בבית הספר.",
    "Japanese": "今日は天気がいいので、公園へ行きましょう。これはテストです。",
    "Chinese": "今天天气很好，我们去公园吧。这是一个测试，请看说明。",
    "Taiwanese": "今天天氣很好，我們去公園吧。這是一個測試，請看說明。",
    "Korean": "안녕하세요, 오늘 날씨가 좋네요. 저는 학생입니다.",
}
KNOWN = [
    ("German", "WINDOWS-1252"),
    ("French", "WINDOWS-1252"),
    ("Polish", "WINDOWS-1250"),
    ("Czech", "WINDOWS-1250"),
    ("Russian", "WINDOWS-1251"),
    ("Russian", "KOI8-R"),
    ("Russian", "CP866"),
    ("Greek", "WINDOWS-1253"),
    ("Hebrew", "WINDOWS-1255"),
    ("Japanese", "SHIFT_JIS"),
    ("Japanese", "EUC-JP"),
    ("Chinese", "GB18030"),
    ("Taiwanese", "BIG5"),
    ("Korean", "EUC-KR"),
]


@pytest.mark.parametrize(("language", "encoding"), KNOWN)
def test_the_likely_encoding_is_named_and_its_command_converts(
    tmp_path: Path, language: str, encoding: str
) -> None:
    text = f"word\tWort\n{TEXTS[language]}\t{TEXTS[language]}\nlast\tletztes\n"
    path = tmp_path / "my pairs.tsv"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(DataError) as caught:
        read_pairs(str(path))
    message = str(caught.value)
    assert "my pairs.tsv:2: not UTF-8 at the text's byte " in message
    assert (
        f"; it looks like {encoding}; save it as UTF-8 where it was written (a spreadsheet: "
        in message
    )
    assert (
        f"Notepad: Save as, encoding UTF-8), or convert it: iconv -f {encoding} -t UTF-8 '"
        in message
    )
    command = message.rpartition("convert it: ")[2]
    subprocess.run(["bash", "-c", command], check=True)
    assert read_pairs(str(tmp_path / "utf8.my pairs.tsv")).src == [
        "word",
        TEXTS[language],
        "last",
    ]


def test_packed_and_piped_text_have_their_commands(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv.gz"
    path.write_bytes(gzip.compress("Köln\tKöln\n".encode("cp1252")))
    with pytest.raises(DataError, match="zcat") as caught:
        read_pairs(str(path))
    subprocess.run(
        ["bash", "-c", str(caught.value).rpartition("convert it: ")[2]], check=True
    )
    assert read_pairs(str(tmp_path / "utf8.p.tsv")).src == ["Köln"]
    assert conversion(None, "KOI8-R") == "iconv -f KOI8-R -t UTF-8"
    assert conversion(Path("train"), "").endswith(" train > utf8.train")


@pytest.mark.parametrize(
    "name",
    ["p.en-de.tsv", "en-de.tsv.gz", "p_en-de.txt", "p.en-de", "en_de.tab"],
)
def test_the_command_keeps_the_languages_of_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = "Köln\tKöln\n".encode("utf-16")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    command = f"cd {tmp_path} && {conversion(Path(name), 'UTF-16')}"
    subprocess.run(["bash", "-c", command], check=True)
    path.unlink()
    (new,) = tmp_path.iterdir()
    text = read_pairs(str(new))
    assert (text.src, text.src_lang, text.tgt_lang) == (["Köln"], "en", "de")
    for one in ("train.en", "en.txt", "en", "a.en.txt.gz"):
        assert from_name(conversion(Path(one), "").rpartition(" ")[2]) == "en"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_wide_encodings_have_their_commands(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes("a\tb\nc\td\n".encode(encoding))
    with pytest.raises(DataError) as caught:
        read_pairs(str(path))
    wide = "UTF-32" if "32" in encoding else "UTF-16"
    assert f"looks like {wide}" in str(caught.value)
    assert "Save as, CSV UTF-8" in str(caught.value)
    subprocess.run(
        ["bash", "-c", str(caught.value).rpartition("convert it: ")[2]], check=True
    )
    assert read_pairs(str(tmp_path / "utf8.p.tsv")).src == ["a", "c"]


@pytest.mark.parametrize(
    "data", [b"", b"plain", b"\xff", b"\x81\xff\x8d\n", bytes(range(128, 256))]
)
def test_what_nothing_speaks_for_is_left_open(data: bytes) -> None:
    assert probable_encoding(data) == ""
