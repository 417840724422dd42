"""The rules that rewrite a text as letters, worked out by hand."""

from weft.config import SideSection
from weft.ship.tokenizers.charsmap import rules_of_output, rules_of_text
from weft.ship.tokenizers.letters import SPACE, Endings, letters_of

LAST = {digit: chr(0xE100 + ord(digit)) for digit in "0123456789"}


def test_bytes_are_letters() -> None:
    assert letters_of("é ▁\n".encode(), SPACE) == "Ã©▁âĸģĊ"
    assert letters_of(b"\xe2\x80", SPACE) == "âĢ"


def test_a_text_becomes_its_normal_form_in_letters() -> None:
    endings = Endings(SPACE, frozenset("0"))
    rules = rules_of_text(SideSection(kind="bpe", lowercase=True), endings)
    for key, letters in {
        "é": "Ã©",
        "e\u0301": "Ã©",
        "E\u0301": "Ã©",
        "\u01fa": "Ç»",
        "A\u030a\u0301": "Ç»",
        "\u212b\u0301": "Ç»",
        "▁": "âĸģ",
        "\u1112\u1161\u11ab": "íķľ",
        "\uac00\u11a8": "ê°ģ",
        "\x01": "ā",
        "\ue000": "îĢĢ",
        "123": f"12{LAST['3']}",
    }.items():
        assert rules[key] == letters, key
    # two marks of different classes, in the order that is not the normal one
    assert rules["a\u0302\u0323"] == rules["\u1ead"]
    for key in ("a", " ", "12", "1234", "\0", "ab", "  "):
        assert key not in rules, key


def test_a_vocabulary_needs_what_its_pieces_have() -> None:
    pieces = [b"1", " ٣٤".encode(), b"a", b" ", b"\xe2\x80"]
    assert Endings.of(SPACE, pieces) == Endings(SPACE, frozenset("٠"))
    assert Endings.of(SPACE, [b"12", b"  "]) == Endings(SPACE, frozenset("0"), True)
    assert Endings.of("Ġ", [b"\t", b" a"]) == Endings("Ġ")


def test_pieces_at_the_end_of_three_digits_have_a_second_name() -> None:
    endings = Endings(SPACE, frozenset("0٠"), spaces=True)
    for name, second in {
        "3": LAST["3"],
        "23": f"2{LAST['3']}",
        "▁123": f"▁12{LAST['3']}",
        "▁12": "",
        "▁3": "",
        "1234": "",
        "a3": "",
        "£": "\ue1a3",  # the last byte of the Arabic 3
        "Ù£": "Ù\ue1a3",
        "▁▁": "\ue000\ue000",
        "▁": "\ue000",
        "▁a": "",
    }.items():
        assert endings.second_name(name) == second, name


def test_an_output_becomes_text_again() -> None:
    rules = rules_of_output()
    for letters, text in {
        "Ã©": "é",
        "âĸģ": "▁",
        "Ċ": "\n",
        "Ġ": " ",
        "Ā": "\ufffd",
        "âĢ": "\ufffd",
        "ð": "\ufffd",
        "©": "\ufffd",
        "ðŁİī": "🎉",
    }.items():
        assert rules[letters] == text, letters
    assert "a" not in rules
