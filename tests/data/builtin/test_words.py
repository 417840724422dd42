import pytest

from weft.data.builtin.words import (
    adjective,
    described,
    english_verb,
    german_verb,
    noun,
    verb_phrase,
    with_article,
)


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("wash", ("washes", "washing", "washed", "washed")),
        ("carry", ("carries", "carrying", "carried", "carried")),
        (
            "play chess",
            ("plays chess", "playing chess", "played chess", "played chess"),
        ),
        ("write/writing/wrote/written", ("writes", "writing", "wrote", "written")),
        ("have/having/had fun", ("has fun", "having fun", "had fun", "had fun")),
    ],
)
def test_english_verbs(text, forms):
    verb = english_verb(text)
    assert tuple(verb[name] for name in ("s", "ing", "past", "pp")) == forms


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        ("apple", "an apple"),
        ("uniform", "a uniform"),
        ("hour", "an hour"),
        ("old uniform", "an old uniform"),
    ],
)
def test_english_articles(words, phrase):
    assert with_article(words) == phrase


def test_german_separable_verb():
    verb = german_verb("auf-räumen räumst räumt aufgeräumt")
    assert verb["fin"] == ("räume", "räumst", "räumt", "räumt", "räumen", "räumen")
    assert verb["end"][3] == "aufräumt"
    assert (verb["pre"], verb["inf"], verb["zu"], verb["part"]) == (
        "auf",
        "aufräumen",
        "aufzuräumen",
        "aufgeräumt",
    )
    assert verb["aux"][0] == "habe"


def test_german_verb_of_motion_is_conjugated_with_sein():
    verb = german_verb("fahren fährst fährt ist gefahren")
    assert verb["aux"] == ("bin", "bist", "ist", "ist", "sind", "sind")
    assert verb["zu"] == "zu fahren"


@pytest.mark.parametrize(
    ("text", "imperative"),
    [
        ("waschen wäschst wäscht gewaschen", "wasch"),
        ("warten wartest wartet gewartet", "warte"),
        ("öffnen öffnest öffnet geöffnet", "öffne"),
        ("füttern fütterst füttert gefüttert", "füttere"),
        ("lesen liest liest !lies gelesen", "lies"),
    ],
)
def test_german_imperatives(text, imperative):
    assert german_verb(text)["imp"] == imperative


@pytest.mark.parametrize(
    ("row", "definite", "indefinite", "negated"),
    [
        (
            "coat | 大衣 件 | der Mantel/Mäntel",
            ("der Mantel", "den Mantel", "dem Mantel"),
            "einen",
            "keinen",
        ),
        (
            "bag | 包 | die Tasche/Taschen",
            ("die Tasche", "die Tasche", "der Tasche"),
            "eine",
            "keine",
        ),
        (
            "book | 书 本 | das Buch/Bücher",
            ("das Buch", "das Buch", "dem Buch"),
            "ein",
            "kein",
        ),
        (
            "bear | 熊 头 | der Bär/=Bären",
            ("der Bär", "den Bären", "dem Bären"),
            "einen",
            "keinen",
        ),
    ],
)
def test_german_cases(row, definite, indefinite, negated):
    german = noun(row).forms["de"]
    assert tuple(german[f"def.{case}"] for case in ("nom", "acc", "dat")) == definite
    assert german["indef.acc"].split()[0] == indefinite
    assert german["kein.acc"].split()[0] == negated


def test_german_dative_plural():
    assert (
        noun("wolf/wolves | 狼 只 | der Wolf/Wölfe").forms["de"]["bare.dat"] == "Wölfen"
    )
    assert (
        noun("+parents | 父母 | pl Eltern").forms["de"]["poss.dat"][0]
        == "meinen Eltern"
    )


@pytest.mark.parametrize(
    ("form", "phrase"),
    [
        ("indef.nom", "ein teurer Mantel"),
        ("indef.acc", "einen teuren Mantel"),
        ("def.nom", "der teure Mantel"),
        ("this.acc", "diesen teuren Mantel"),
    ],
)
def test_german_adjective_endings(form, phrase):
    coat, dear = (
        noun("coat | 大衣 件 | der Mantel/Mäntel"),
        adjective("expensive | 贵/很贵的 | teuer/teur"),
    )
    assert described("de", coat, form, dear) == phrase
    assert described("en", coat, "indef", dear) == "an expensive coat"
    assert described("zh", coat, "indef", dear) == "一件很贵的大衣"


def test_mass_nouns_have_no_plural():
    tea = noun("tea | 茶 | der Tee")
    assert (
        tea.forms["en"]["bare"],
        tea.forms["de"]["bare"],
        tea.forms["de"]["nopl"],
    ) == (
        "tea",
        "Tee",
        "keinen Tee",
    )


def test_object_of_a_verb_agrees_and_is_negated():
    keys = noun("+keys | 钥匙 把 | pl Schlüssel")
    lose = verb_phrase(
        "lose/losing/lost | 弄丢 | verlieren verlierst verliert verloren", keys, "poss"
    )
    assert lose.forms["en"]["past"][2:4] == ("lost his keys", "lost her keys")
    assert lose.forms["en"]["pres"][0] == "lose my keys"
    assert lose.forms["zh"]["past"][3] == "弄丢了她的钥匙"
    assert lose.forms["de"]["obj"][3] == "ihre Schlüssel"
    assert lose.forms["de"]["yet"][0] == "meine Schlüssel noch nicht"


def test_frame_verbs_and_prepositions():
    mother = noun("mother | 妈妈 | die Mutter/Mütter", people=True)
    call = verb_phrase(
        "call | 给_打电话/给_打了电话 | an-rufen rufst ruft angerufen", mother, "poss"
    )
    assert call.forms["zh"]["past"][2] == "给他妈妈打了电话"
    assert call.forms["zh"]["exp"][2] == "给他妈妈打过电话"
    talk = verb_phrase(
        "talk to | 跟_聊天 | sprechen sprichst spricht gesprochen +mit.dat",
        mother,
        "poss",
    )
    assert talk.forms["de"]["obj"][1] == "mit deiner Mutter"
    assert talk.forms["de"]["neg"][1] == "nicht mit deiner Mutter"


def test_chinese_relations_keep_their_particle_after_a_plural():
    poss = noun("mother | 妈妈 | die Mutter/Mütter", people=True).forms["zh"]["poss"]
    assert poss == ("我妈妈", "你妈妈", "他妈妈", "她妈妈", "我们的妈妈", "他们的妈妈")
    assert (
        noun("coat | 大衣 件 | der Mantel/Mäntel").forms["zh"]["poss"][0] == "我的大衣"
    )


def test_verb_with_its_own_object():
    chess = verb_phrase(
        "play chess | 下+棋 | spielen spielst spielt gespielt : Schach, kein Schach"
    )
    assert [chess.forms["zh"][form] for form in ("", "past", "exp")] == [
        "下棋",
        "下了棋",
        "下过棋",
    ]
    assert (chess.forms["de"]["obj"], chess.forms["de"]["yet"]) == (
        "Schach",
        "noch kein Schach",
    )


def test_german_first_person_can_be_given():
    fish = german_verb("angeln ich=angle angelst angelt geangelt")
    assert fish["fin"] == ("angle", "angelst", "angelt", "angelt", "angeln", "angeln")
