"""Samples of documents by rule, what posts, messages of programs, subtitles and pages look like;
and translators by rule, whose every word and alignment can be checked.

Every tag and placeholder of a sample occurs once, so that it can be found again.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser

from weft.documents.document import Kind, Segment, Translated
from weft.documents.driver import translate_document
from weft.documents.registry import FORMATS
from weft.documents.writing import write_segment

NOUNS = [
    "man",
    "dog",
    "red car",
    "street",
    "old woman",
    "ball",
    "small child",
    "house",
    "river",
    "blue hat",
]
VERBS = [
    "sees",
    "holds",
    "plays with",
    "walks to",
    "sits near",
    "jumps over",
    "looks at",
    "runs past",
]
PLACES = [
    "in the park",
    "near the water",
    "at night",
    "on the beach",
    "with a friend",
    "in front of a shop",
]
PLACEHOLDERS = [
    *("{{{}}}", "{{name{}}}", "%({}x)s", "%{}$s", "${{v{}}}", "{{{{ v{} }}}}", "[X{}X]", "#{{v{}}}", "$v{}"),
    *("https://example.org/{}?a=b", "user{}@example.org", "@user{}", "#topic{}", ":face{}:", "`f({})`"),
    *("{{n{}, plural, one {{# day}} other {{# days}}}}", "%{{v{}}}", "{{{}:>10}}", "www.example{}.org"),
]  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A document of a format, and the placeholders in it."""

    kind: str
    format: str
    text: str
    placeholders: tuple[str, ...] = ()


def sentence(chance: random.Random) -> list[str]:
    text = (
        f"the {chance.choice(NOUNS)} {chance.choice(VERBS)} the {chance.choice(NOUNS)}"
    )
    words = [*text.split(), *chance.choice(PLACES).split()]
    return [words[0].capitalize(), *words[1:]]


def placeholder(chance: random.Random, number: int) -> str:
    return chance.choice(PLACEHOLDERS).format(number)


def around(words: list[str], chance: random.Random, opening: str, closing: str) -> None:
    """Put a pair of tags around some words."""
    first = chance.randrange(len(words))
    last = chance.randrange(first, min(len(words), first + 3))
    words[first] = opening + words[first]
    words[last] += closing


def nested(
    words: list[str], chance: random.Random, number: int, depth: int
) -> list[str]:
    """Put tags around stretches of the words, and around stretches of these."""
    if len(words) < 2 or depth == 0:
        return words
    first = chance.randrange(len(words))
    last = chance.randrange(first, len(words)) + 1
    name = chance.choice(["b", "em", "a", "span", "i", "u", "strong", "small", "q"])
    inner = nested(words[first:last], chance, 3 * number + 1, depth - 1)
    inner[0] = f'<{name} id="i{number}">{inner[0]}'
    inner[-1] += f"</{name}>"
    rest = nested(words[last:], chance, 3 * number + 2, depth - 1)
    return [*words[:first], *inner, *rest]


def fragment(chance: random.Random) -> Sample:
    paragraphs = []
    for number in range(chance.randint(1, 3)):
        words = nested(sentence(chance), chance, 1 + 50 * number, chance.randint(1, 3))
        if chance.random() < 0.4:
            words.insert(
                chance.randint(1, len(words)), f'<img id="m{number}" alt="a > b">'
            )
        name = chance.choice(["p", "li", "h2", "td", "div"])
        paragraphs.append(f"<{name}>{' '.join(words)}.</{name}>")
    return Sample(
        "fragment", "html", chance.choice(["", "\n", "\r\n  "]).join(paragraphs)
    )


def post(chance: random.Random) -> Sample:
    """A post of Mastodon: users, topics, addresses, line breaks."""
    words = sentence(chance)
    mention = '<span class="h-card"><a href="https://a.example/@ann" class="u-url mention">@<span>ann</span></a></span>'
    topic = '<a href="https://a.example/tags/cats" class="mention hashtag" rel="tag">#<span>cats</span></a>'
    link = (
        '<a href="https://b.example/x" rel="nofollow"><span class="invisible">https://</span>'
        '<span class="ellipsis">b.example/x</span></a>'
    )
    kept = chance.sample([mention, topic, link], 2)
    words.insert(0, kept[0])
    words.insert(chance.randint(1, len(words)), kept[1])
    if chance.random() < 0.5:
        place = chance.randint(2, len(words) - 1)
        words[place] += "<br />" + sentence(chance)[0]
    return Sample(
        "post", "html", f"<p>{' '.join(words)}</p><p>Good day!</p>", tuple(kept)
    )


def message(chance: random.Random) -> Sample:
    """A message of a program, as plain text."""
    words = sentence(chance)
    found = [placeholder(chance, number) for number in range(1, chance.randint(2, 4))]
    for text in found:
        marks = chance.choice(["{}", "{}", "{}", '"{}"', "({})", "{}:"])
        words.insert(chance.randint(0, len(words)), marks.format(text))
    return Sample(
        "message", "text", " ".join(words) + chance.choice([".", "!", ""]), tuple(found)
    )


def markup(chance: random.Random) -> Sample:
    """A message whose placeholders are tags, as Weblate and Immersive Translate send them."""
    words = sentence(chance)
    found = [f'<x id="{number}"></x>' for number in range(1, chance.randint(2, 4))]
    for text in found:
        words.insert(chance.randint(0, len(words)), text)
    if chance.random() < 0.5:
        around(words, chance, "<b0>", "</b0>")
        found += ["<b0>", "</b0>"]
    name = chance.choice(["text", "html"])
    return Sample("markup", name, " ".join(words) + ".", tuple(found))


def subtitle(chance: random.Random) -> Sample:
    words = sentence(chance)
    place = chance.randint(1, len(words) - 1)
    line_break = chance.choice(["<br />", "<br/>", " <br /> "])
    words[place - 1 : place + 1] = [words[place - 1] + line_break + words[place]]
    text = " ".join(words)
    if chance.random() < 0.5:
        text = f"<i>{text}</i>"
    return Sample("subtitle", "text", f"- {text}\r\n\r\n- Good day!\r\n")


KINDS = (fragment, post, message, markup, subtitle)


def samples(number: int = 500) -> list[Sample]:
    """So many samples, the same at each call."""
    chance = random.Random(0)
    return [KINDS[i % len(KINDS)](chance) for i in range(number)]


WORD = re.compile(r"\S+")
Rule = Callable[[str], Translated]


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(text)]


def joined(
    text: str, spans: list[tuple[int, int]], change: Callable[[str], str]
) -> Translated:
    """The words at these places in this order, each changed and aligned with itself."""
    written = ""
    alignment = []
    for start, end in spans:
        written += " " if written else ""
        word = change(text[start:end])
        alignment.append((start, end, len(written), len(written) + len(word)))
        written += word
    return Translated(written, alignment)


def same(text: str) -> Translated:
    return Translated(text)


def upper(text: str) -> Translated:
    return joined(text, words(text), str.upper)


def reverse(text: str) -> Translated:
    return joined(text, words(text)[::-1], lambda word: word + "'s")


def silent(text: str) -> Translated:
    return Translated("")


def unaligned(text: str) -> Translated:
    return Translated(" ".join(f"q{text[start:end]}" for start, end in words(text)))


def chinese(text: str) -> Translated:
    """Two letters for each word, without spaces between."""
    written = ""
    alignment = []
    for start, end in words(text):
        alignment.append((start, end, len(written), len(written) + 2))
        written += chr(0x4E00 + end % 99) + chr(0x5E00 + start % 99)
    return Translated(written + "。", alignment)


def shuffled(seed: int) -> Rule:
    """Words lost, repeated and in another order, and an alignment in which a part is wrong."""

    def rule(text: str) -> Translated:
        chance = random.Random(f"{seed} {text!a}")
        spans = words(text)
        chosen = [span for span in spans if chance.random() < 0.8]
        chosen += [span for span in spans if chance.random() < 0.1]
        chance.shuffle(chosen)
        translated = joined(text, chosen, str.swapcase)
        alignment = [
            entry if chance.random() < 0.7 else (*chance.choice(spans), *entry[2:])
            for entry in translated.alignment
        ]
        return Translated(translated.text, alignment)

    return rule


def outside(text: str) -> Translated:
    """An alignment with places that are in neither text."""
    far = len(text) + 9
    wrong = [(0, far, 0, far), (far, far + 3, -5, 2), (-4, -1, 3, 1), (5, 2, far, far)]
    return Translated(f"ganz {text} anders", wrong)


RULES: dict[str, Rule] = {
    "upper": upper,
    "reverse": reverse,
    "silent": silent,
    "unaligned": unaligned,
    "chinese": chinese,
    "outside": outside,
    "shuffled": shuffled(0),
    "shuffled again": shuffled(1),
}

_WIDE_MARKS = {",": "，", ";": "；", ":": "："}
LETTERS = re.compile(r"\w+")
Tag = tuple[str, tuple[tuple[str, str | None], ...]]

READ = {name: row.read for name, row in FORMATS.items() if row.read}


def tree(text: str) -> Counter[tuple[Tag, ...]]:
    """The tags of HTML, each with those that it is in, as the standard library reads them."""
    return Tree(text).inside


class Tree(HTMLParser):
    """Counts tags; one that is not well nested is an error."""

    VOID = ("img", "br", "hr", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.inside: Counter[tuple[Tag, ...]] = Counter()
        self.opened: list[Tag] = []
        self.feed(text)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        entry = (tag, tuple(attrs))
        self.inside[(*self.opened, entry)] += 1
        if tag not in self.VOID:
            self.opened.append(entry)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside[(*self.opened, (tag, tuple(attrs)))] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop()[0] == tag


def bare(written: str, segment: Segment) -> str:
    """What was written, without the items; a space is where one stood between words."""
    for item in sorted(segment.items, key=lambda item: -len(item.raw)):
        raw = item.raw
        if raw not in written:  # Chinese has marks of its own
            raw = _WIDE_MARKS[raw[0]] + raw[1:].lstrip()
        assert raw in written
        separates = item.is_point and (
            item.kind is not Kind.EMPTY or item.end > item.start
        )
        written = written.replace(raw, " " if separates else "", 1)
    return unescape(written) if segment.escapes else written


def faults_of(sample: Sample, translate: Rule) -> Iterator[str]:
    """Everything that a sample has lost in its translation."""
    document = READ[sample.format](sample.text)
    written = translate_document(document, lambda texts: list(map(translate, texts)))
    for placeholder in sample.placeholders:
        if written.count(placeholder) != sample.text.count(placeholder):
            yield f"{placeholder} in {written}"
    if sample.format == "html" and tree(written) != tree(sample.text):
        yield f"the tags of {written}"
    for segment in document.segments:
        translated = translate(segment.text).text
        found = bare(write_segment(segment, translate(segment.text)), segment)
        if "".join(found.split()) != "".join(translated.split()):
            yield f"the letters of {found}"
        if translate is RULES["chinese"]:
            continue  # a placeholder may stand between two letters
        if LETTERS.findall(found) != LETTERS.findall(translated):
            yield f"the words of {found}"
