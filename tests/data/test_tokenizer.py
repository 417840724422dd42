"""Training, choosing and reading labels of tokenizers."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from tokenizers import Tokenizer as RustTokenizer

from weft.config import SideSection, TokenizerSection
from weft.data import vocabulary
from weft.data.pipeline import BYTE_PIECES, SMALLEST, SPECIALS
from weft.data.tokenizer import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Tokenizer,
    build_tokenizer,
    build_tokenizers,
    choose_settings,
    load_tokenizer,
    train_tokenizer,
)
from weft.errors import DataError, UsageError

KINDS = ("bpe", "unigram", "character", "word", "byte")
ENGLISH = [
    f"the {animal} sees the {other}"
    for animal in ("dog", "cat", "cow")
    for other in ("dog", "cat", "hen")
]
GERMAN = [
    f"der {animal} sieht das {other}"
    for animal in ("Hund", "Kater")
    for other in ("Huhn", "Kalb", "Tor")
]
CHINESE = ["我看见一只狗。", "你看见一只猫。", "他们看见一头牛。"]
RUSSIAN = ["собака видит кошку", "кошка видит собаку"]


def _side(kind: str, vocab_size: int | None = None, **more: object) -> SideSection:
    return SideSection.model_validate({"kind": kind, "vocab_size": vocab_size, **more})


def _vocab(tokenizer: Tokenizer) -> dict[str, int]:
    vocab: dict[str, int] = RustTokenizer.from_str(tokenizer.to_json()).get_vocab()
    return vocab


@pytest.mark.parametrize("kind", KINDS)
def test_special_ids_come_first_and_are_not_added_tokens(kind: str) -> None:
    tokenizer = train_tokenizer(ENGLISH, _side(kind, 300))
    vocab = _vocab(tokenizer)
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)
    assert [vocab[name] for name in SPECIALS] == [0, 1, 2, 3]
    assert sorted(vocab.values()) == list(range(tokenizer.vocab_size))
    assert not RustTokenizer.from_str(tokenizer.to_json()).get_added_tokens_decoder()


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_read_back_is_the_same(kind: str) -> None:
    tokenizer = train_tokenizer(ENGLISH, _side(kind, 300))
    again = load_tokenizer(
        tokenizer.to_json().encode(), tokenizer.settings, "tokenizer.json"
    )
    assert again.to_json() == tokenizer.to_json()
    assert again.sha256 == tokenizer.sha256
    assert again.encode("the hen sees 語") == tokenizer.encode("the hen sees 語")
    other = train_tokenizer(GERMAN, _side(kind, 300, lowercase=True))
    assert other.sha256 != tokenizer.sha256


def test_a_word_at_the_start_is_the_word_in_the_middle() -> None:
    for kind in ("bpe", "unigram", "word"):
        tokenizer = train_tokenizer(ENGLISH, _side(kind, 400))
        assert tokenizer.encode("dog dog") == tokenizer.encode("dog") * 2, kind
        assert tokenizer.decode(tokenizer.encode("dog")) == "dog", kind


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_without_a_leading_space_a_text_has_the_spaces_that_it_has(kind: str) -> None:
    tokenizer = train_tokenizer(ENGLISH, _side(kind, 400, leading_space=False))
    the, dog = tokenizer.encode("the"), tokenizer.encode(" dog")
    assert tokenizer.encode("the dog") == [*the, *dog]
    assert tokenizer.encode("dog") != dog
    for text in ("dog", " dog", "  dog", " ", ""):
        ids = tokenizer.encode(text)
        assert tokenizer.encode_going_on(text) == ids
        assert tokenizer.decode(ids) == tokenizer.normalize(text) == text
        assert tokenizer.spell(ids) == tokenizer.spell(ids, begins=False)
        assert tokenizer.spell(ids) == text.encode()
    assert tokenizer.encode_inside("dog") == dog
    assert tokenizer.encode_begun("the do") == (the, b" do")
    assert tokenizer.encode_begun("do") == ([], b"do")
    assert tokenizer.pieces(dog) == ["▁dog"]
    # one that puts a space there has the same pieces for it, and no others
    usual = train_tokenizer(ENGLISH, _side(kind, 400))
    assert usual.encode_inside("dog") == usual.encode("dog")
    assert usual.pieces(usual.encode("dog")) == ["▁dog"]


def test_characters_and_bytes_have_no_leading_space_either_way() -> None:
    for kind in ("character", "byte"):
        usual = train_tokenizer(ENGLISH, _side(kind, 300))
        bare = train_tokenizer(ENGLISH, _side(kind, 300, leading_space=False))
        assert bare.to_json() == usual.to_json()
        assert bare.encode_inside("dog") == usual.encode_inside("dog")
        assert usual.encode_inside("dog") == usual.encode("dog")


def test_words_are_kept_by_frequency_then_by_code_point() -> None:
    # With the space before each text: " " x 7, b x 3, a x 2, then c and d once each; words
    # likewise.
    tokenizer = train_tokenizer(["b b b", "a a", "d", "c"], _side("word", SMALLEST + 6))
    learned = sorted(_vocab(tokenizer), key=_vocab(tokenizer).__getitem__)[SMALLEST:]
    assert learned == [" ", "b", "a", " b", " a", " c"]


def test_known_words_are_one_piece_and_others_are_spelled() -> None:
    tokenizer = train_tokenizer(["the dog, the dog"], _side("word", 400))
    vocab = _vocab(tokenizer)
    assert tokenizer.encode("the dog, the dog") == [
        vocab[w] for w in (" the", " dog", ",", " the", " dog")
    ]
    assert tokenizer.encode("dot") == [vocab[c] for c in (" ", "d", "o", "t")]


def test_characters_are_kept_by_frequency_then_by_code_point() -> None:
    tokenizer = train_tokenizer(["zzyyxw"], _side("character", SMALLEST + 3))
    vocab = _vocab(tokenizer)
    assert [vocab[c] - SMALLEST for c in "yzw"] == [0, 1, 2]
    assert "x" not in vocab
    assert tokenizer.decode(tokenizer.encode("xyz")) == "xyz"
    assert tokenizer.encode("x") == [4 + BYTE_PIECES.index("<0x78>")]


def test_min_frequency_leaves_rare_words_and_characters_to_smaller_pieces() -> None:
    texts = ["aa aa aa", "bb"]
    words = _vocab(train_tokenizer(texts, _side("word", 1000, min_frequency=2)))
    assert " aa" in words
    assert " bb" not in words
    assert "b" in words  # it occurs twice
    characters = _vocab(
        train_tokenizer(["aab"], _side("character", 1000, min_frequency=2))
    )
    assert "a" in characters
    assert "b" not in characters
    rare = {
        len(_vocab(train_tokenizer(["abab"], _side(k, 1000, min_frequency=5))))
        for k in ("bpe", "unigram")
    }
    assert rare == {SMALLEST}


def test_each_spaceless_character_is_a_word() -> None:
    tokenizer = train_tokenizer(CHINESE * 2, _side("word", 1000))
    assert tokenizer.pieces(tokenizer.encode("我看见猫"))[1:] == [
        "我",
        "看",
        "见",
        "猫",
    ]


def test_bpe_learns_the_merges_that_the_counts_dictate() -> None:
    # Words " ab" x 3 and " ac" x 2: the pair (space, a) occurs 5 times, then (space a, b) 3 times,
    # then (.., c) 2.
    tokenizer = train_tokenizer(["ab ab ab ac ac"], _side("bpe", 1000))
    tree = RustTokenizer.from_str(tokenizer.to_json())
    assert tokenizer.vocab_size == SMALLEST + 3
    assert [tree.id_to_token(SMALLEST + i) for i in range(3)] == ["Ġa", "Ġab", "Ġac"]


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "unigram" else pytest.param(kind, marks=pytest.mark.long)
        for kind in KINDS
    ],
)
def test_training_gives_the_same_bytes_in_every_process(kind: str) -> None:
    code = (
        "from weft.config import SideSection; from weft.data.tokenizer import train_tokenizer\n"
        "texts = [f'{a}{b} {b}{c} {c}{a}' for a in 'abcdé' for b in 'ghi語k' for c in 'mnopq']\n"
        f"print(train_tokenizer(texts, SideSection(kind={kind!r}, vocab_size=330)).sha256)"
    )
    hashes = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(done.stdout)
    assert len(hashes) == 1
    assert len(hashes.pop().strip()) == 64


def test_characters_for_spaceless_scripts_and_bpe_for_others() -> None:
    chosen = choose_settings(TokenizerSection(), ENGLISH, CHINESE)
    assert (chosen.src.kind, chosen.tgt.kind, chosen.joint) == (
        "bpe",
        "character",
        False,
    )
    for text in ("これはペンです。", "ภาษาไทย", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာဘာသာ"):
        assert (
            choose_settings(TokenizerSection(), ENGLISH, [text]).tgt.kind == "character"
        ), text
    for text in ("한국어 문장", "हिन्दी भाषा", "اللغة العربية", "mostly English 一"):
        assert choose_settings(TokenizerSection(), ENGLISH, [text]).tgt.kind == "bpe", (
            text
        )


def test_two_sides_share_one_tokenizer_only_where_script_and_settings_agree() -> None:
    assert choose_settings(TokenizerSection(), ENGLISH, GERMAN).joint is True
    assert choose_settings(TokenizerSection(), ENGLISH, RUSSIAN).joint is False
    lower = TokenizerSection(src=_side("bpe", lowercase=True), tgt=_side("bpe"))
    assert choose_settings(lower, ENGLISH, GERMAN).joint is False
    words = TokenizerSection(src=_side("word"), tgt=_side("word"))
    assert choose_settings(words, ENGLISH, GERMAN).joint is False
    assert (
        choose_settings(TokenizerSection(joint=False), ENGLISH, GERMAN).joint is False
    )
    forced = choose_settings(TokenizerSection(joint=True), ENGLISH, RUSSIAN)
    assert forced.joint is True
    assert forced.src == forced.tgt


def test_a_model_that_reads_both_languages_in_one_row_has_one_tokenizer() -> None:
    for target in (RUSSIAN, CHINESE):
        section = TokenizerSection()
        assert choose_settings(section, ENGLISH, target).joint is False
        chosen = choose_settings(section, ENGLISH, target, needs_joint=True)
        assert chosen == choose_settings(TokenizerSection(joint=True), ENGLISH, target)
        both = build_tokenizers(section, ENGLISH, target, needs_joint=True)
        assert both[0] is both[1]


def test_a_joint_tokenizer_is_one_object_that_knows_both_sides() -> None:
    src, tgt = build_tokenizers(TokenizerSection(), ENGLISH * 3, GERMAN * 3)
    assert src is tgt
    assert {"Ġdog", "ĠHund"} <= _vocab(src).keys()
    apart = build_tokenizers(TokenizerSection(joint=False), ENGLISH * 3, GERMAN * 3)
    assert "ĠHund" not in _vocab(apart[0])
    assert "Ġdog" not in _vocab(apart[1])


@pytest.mark.parametrize(
    ("num_pairs", "size"),
    [
        (500, 1_000),
        (5_000, 8_000),
        (30_000, 8_000),
        (200_000, 16_000),
        (1_000_000, 32_000),
        (9_000_000, 32_000),
    ],
)
def test_vocabulary_grows_with_the_corpus(num_pairs: int, size: int) -> None:
    chosen = choose_settings(TokenizerSection(), ["a"] * num_pairs, ["a"] * num_pairs)
    assert chosen.src.vocab_size == size


def test_everything_is_settled_and_what_is_set_stays() -> None:
    section = TokenizerSection(
        src=_side("unigram", 777, unicode="NFKC"), tgt=_side("auto", 999)
    )
    chosen = choose_settings(section, ENGLISH, CHINESE)
    assert chosen.src == section.src
    assert (chosen.tgt.kind, chosen.tgt.vocab_size) == ("character", 999)
    assert choose_settings(chosen, ENGLISH, CHINESE) == chosen


def test_labels_are_readable() -> None:
    tokenizer = train_tokenizer(ENGLISH * 3, _side("bpe", 400))
    ids = [BOS_ID, *tokenizer.encode("the dog語"), EOS_ID, PAD_ID]
    assert tokenizer.pieces(ids) == [
        "<bos>",
        "▁the",
        "▁dog",
        "語[1/3]",
        "語[2/3]",
        "語[3/3]",
        "<eos>",
        "<pad>",
    ]
    half = tokenizer.encode("語")[1:3]
    assert tokenizer.pieces(half) == ["\\xe8", "\\xaa"]
    assert tokenizer.decode(half) == "\ufffd"
    characters = train_tokenizer(ENGLISH, _side("character", 400))
    assert characters.pieces(characters.encode("a é")) == ["a", "▁", "é[1/2]", "é[2/2]"]


def test_traditional_characters_are_simplified_first() -> None:
    pytest.importorskip("opencc", reason="opencc is not installed")
    tokenizer = train_tokenizer(["漢語 學習"], _side("character", 400, simplified=True))
    assert tokenizer.normalize("漢語") == "汉语"
    assert tokenizer.decode(tokenizer.encode("漢語")) == "汉语"
    assert list(tokenizer.steps) == ["opencc t2s"]
    plain = train_tokenizer(["汉语 学习"], _side("character", 400))
    assert plain.to_json() == tokenizer.to_json()
    # the same file, but other ids for the same text
    assert plain.sha256 != tokenizer.sha256


def test_without_opencc_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(UsageError, match=r"pip install '\.\[zh\]' in the folder"):
        train_tokenizer(["汉语"], _side("character", simplified=True))


def test_very_large_corpora_are_sampled_evenly_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, total = vocabulary.sample_texts((str(i) for i in range(1000)), limit=7)
    assert total == 1000
    steps = {int(b) - int(a) for a, b in pairwise(kept)}
    assert len(steps) == 1
    assert 4 <= len(kept) <= 7
    assert vocabulary.sample_texts(iter("abc"), limit=3) == (["a", "b", "c"], 3)
    monkeypatch.setattr(vocabulary.sample_texts, "__defaults__", (4,))
    tokenizer = train_tokenizer(ENGLISH, _side("bpe"))
    assert any("evenly spaced texts of 9" in note for note in tokenizer.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_text_without_any_character_is_an_error(kind: str) -> None:
    for texts in ([], ["", ""]):
        with pytest.raises(DataError, match="no text to learn from"):
            train_tokenizer(texts, _side(kind))


@pytest.mark.long
def test_multi30k_is_cut_into_few_pieces() -> None:
    folder = (
        Path(os.environ.get("WEFT_DATA", Path(__file__).parents[3] / "shared" / "data"))
        / "multi30k"
    )
    if not folder.is_dir():
        pytest.skip(
            f"{folder} is absent; set WEFT_DATA to a folder that holds multi30k"
        )
    texts = (folder / "train.en").read_text("utf-8").split("\n")[:3000]
    lengths = {}
    for kind in KINDS:
        tokenizer = train_tokenizer(texts, _side(kind, 3000))
        ids = tokenizer.encode_batch(texts)
        assert [tokenizer.decode(i) for i in ids[:50]] == [
            tokenizer.normalize(t) for t in texts[:50]
        ]
        lengths[kind] = sum(map(len, ids))
    num_words = sum(len(text.split(" ")) for text in texts)
    # punctuation is apart, so no kind has fewer
    assert num_words < lengths["unigram"] < 1.3 * num_words
    assert num_words < lengths["bpe"] < 1.3 * num_words
    assert lengths["character"] == sum(map(len, texts))


def test_the_ids_of_bytes_are_the_bytes() -> None:
    tokenizer = train_tokenizer(["anything at all"], _side("byte"))
    text = "Aé語\0\n👩‍🔬  "
    assert tokenizer.vocab_size == SMALLEST == 260
    assert tokenizer.settings.vocab_size == 260
    assert tokenizer.encode(text) == [4 + byte for byte in text.encode()]
    assert tokenizer.encode("") == []
    assert tokenizer.decode([4 + byte for byte in text.encode()]) == text
    assert tokenizer.to_json() == train_tokenizer(GERMAN, _side("byte")).to_json()
    assert tokenizer.pieces(tokenizer.encode("a é")) == ["a", "▁", "é[1/2]", "é[2/2]"]


def test_sides_of_bytes_share_one_tokenizer() -> None:
    bytes_alone = TokenizerSection(src=_side("byte"), tgt=_side("byte"))
    assert choose_settings(bytes_alone, ENGLISH, GERMAN).joint is True
    assert choose_settings(bytes_alone, ENGLISH, GERMAN).src.vocab_size == 260


def test_words_between_white_space_stay_whole() -> None:
    tokenizer = train_tokenizer(
        ["I don't <unk> @-@ know"] * 2, _side("word", words="whitespace")
    )
    assert tokenizer.pieces(tokenizer.encode("<unk> don't know @-@")) == [
        "▁<unk>",
        "▁don't",
        "▁know",
        "▁@-@",
    ]
    spelled = [_vocab(tokenizer)[character] for character in " know"]
    assert tokenizer.encode("know.") == [*spelled, 4 + BYTE_PIECES.index("<0x2E>")]
    unicode = train_tokenizer(["I don't <unk> @-@ know"] * 2, _side("word"))
    assert unicode.pieces(unicode.encode("don't")) == ["▁don", "'", "t"]


def test_a_word_behind_a_tab_or_an_end_of_line_is_never_taken_for_a_byte() -> None:
    text = "a\n<0x41>\t<0x41> <0x41>\n<0xe8>"
    tokenizer = train_tokenizer([text] * 3, _side("word", words="whitespace"))
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert min(tokenizer.encode(text)) >= SMALLEST


@pytest.mark.parametrize("package", ["nltk", "spacy"])
def test_words_of_a_package_are_learned_and_given_back(package: str) -> None:
    pytest.importorskip(
        package, reason=f"{package} is not installed (pip install '.[classic]')"
    )
    tokenizer = train_tokenizer(
        ["A dog, a hen.\nAnd so on."] * 2, _side("word", words=package)
    )
    assert tokenizer.pieces(tokenizer.encode("A dog.\nAnd a hen,")) == [
        *("▁A", "▁dog", "▁.", "▁\n", "▁And", "▁a", "▁hen", "▁,")
    ]
    assert tokenizer.normalize("A dog.\nAnd") == "A dog . \n And"
    assert tokenizer.decode(tokenizer.encode("A dog.\nAnd")) == "A dog . \n And"
    again = load_tokenizer(tokenizer.to_json(), tokenizer.settings, "here")
    assert (again.steps, again.sha256) == (tokenizer.steps, tokenizer.sha256)
    plain = train_tokenizer(
        ["A dog , a hen . \n And so on ."] * 2, _side("word", words="whitespace")
    )
    assert plain.to_json() == tokenizer.to_json()
    assert plain.sha256 != tokenizer.sha256


@pytest.mark.parametrize(
    "side",
    [{"kind": kind} for kind in KINDS] + [{"kind": "word", "words": "whitespace"}],
)
def test_newlines_inside_a_text_are_kept_exactly(side: dict[str, str]) -> None:
    tokenizer = train_tokenizer(
        ["one line\nanother\n\nlast"], SideSection.model_validate(side)
    )
    for text in (
        "one\nline",
        "\n",
        "\n\n\n",
        "a\n\nb\n",
        " \n a \r\n b\r",
        "one\n\n another\n\t\n  line\n ",
    ):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_number_of_subwords_goes_by_the_amount_of_text() -> None:
    text = "".join(
        f"sentence {i} says a little about things like {i * 7919 % 1009}\n"
        for i in range(9_000)
    )
    tokenizer = build_tokenizer(SideSection(), [text])
    assert tokenizer.settings.kind == "bpe"
    assert tokenizer.settings.vocab_size == 3_500
    assert train_tokenizer([text], SideSection()).settings.vocab_size == 500
    lines = build_tokenizer(SideSection(), text.split("\n"))
    assert lines.settings == tokenizer.settings
    assert tokenizer.notes == lines.notes == []


def test_one_text_alone_is_of_characters_or_subwords_by_its_script() -> None:
    assert build_tokenizer(SideSection(), CHINESE).settings.kind == "character"
    assert build_tokenizer(SideSection(), RUSSIAN).settings.kind == "bpe"
    assert build_tokenizer(_side("word", 300), ENGLISH).settings == _side("word", 300)


def test_messages_about_one_text_name_its_section() -> None:
    with pytest.raises(DataError, match=r"^tokenizer: there is no text"):
        build_tokenizer(SideSection(), ["", ""])
    assert (
        build_tokenizer(_side("bpe", 30_000), ENGLISH)
        .notes[0]
        .startswith("tokenizer.vocab_size = 30,000:")
    )


def test_huge_documents_are_sampled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"line {i} of the text\n" for i in range(5_000))
    monkeypatch.setattr(
        vocabulary.sample_texts, "__kwdefaults__", {"characters": 30_000}
    )
    tokenizer = build_tokenizer(_side("bpe", 400), [text])
    note = re.search(
        r"learned from (\d+) evenly spaced texts of (\d+)", " ".join(tokenizer.notes)
    )
    assert note is not None
    assert int(note[1]) * 5_000 <= 30_000
    assert int(note[2]) >= len(text) // 10_000


@pytest.mark.parametrize(
    ("settings", "form", "written"),
    [
        ({}, "NFC", "\u00c9 \ufb01 A, b"),
        ({"unicode": "NFKC"}, "NFKC", "\u00c9 fi A, b"),
        ({"unicode": "raw"}, "", "E\u0301 \ufb01 A, b"),
        ({"lowercase": True}, "NFC", "\u00c9 \ufb01 A, b"),
    ],
    ids=str,
)
def test_a_reference_gets_the_code_points_of_a_translation_but_keeps_its_case(
    settings: dict[str, object], form: str, written: str
) -> None:
    tokenizer = train_tokenizer(ENGLISH, _side("bpe", 300, **settings))
    assert tokenizer.form == form
    assert tokenizer.in_form("E\u0301 \ufb01 A, b") == written
    assert tokenizer.in_form(written) == written


def test_a_reference_is_simplified_where_translations_are() -> None:
    pytest.importorskip("opencc", reason="opencc is not installed")
    tokenizer = train_tokenizer(CHINESE, _side("character", 300, simplified=True))
    assert tokenizer.form == "NFC and simplified Chinese"
    assert tokenizer.in_form("漢語, E\u0301") == "汉语, \u00c9"
