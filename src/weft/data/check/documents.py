"""The checks of documents, one short function each: what in them would spoil a language model."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from weft.data.check.finding import (
    NUM_EXAMPLES,
    Example,
    Finding,
    Rows,
    as_read,
    counted,
    excerpt,
    gravest_first,
    marked_excerpts,
)
from weft.data.check.repeats import near_repeats, repeats
from weft.data.check.words import Vocabulary, Words
from weft.data.check.writing import (
    UNSEEN,
    UNSEEN_REMEDY,
    markup,
    misread,
    unseen_in,
    wrong_script,
)
from weft.data.documents import Documents

MIN_CHARS = 10_000
ENORMOUS_CHARS = 1_000_000


def look_over_documents(
    documents: Documents, in_training: bool = True
) -> list[Finding]:
    """Check one text for a language model; findings come gravest first. Of dev and test, what
    concerns learning alone is left out.
    """
    rows = Rows(
        len(documents), "documents", documents.where, lambda i: (documents.texts[i],)
    )
    lines, texts = _by_lines(documents)
    findings = [
        # how it was read, before what that may have caused
        *as_read(rows, documents.files, documents.dropped, documents.notes, warn=2.0),
        *(_too_small(documents) if in_training else ()),
        *_repeated(documents, rows, in_training),
        *_control_characters(documents, lines),
        *misread(lines, (texts,)),
        *markup(lines, (texts,)),
        *wrong_script(lines, (texts,)),
        *_enormous(documents, rows),
    ]
    return gravest_first(findings)


def _too_small(documents: Documents) -> Iterator[Finding]:
    size = sum(map(len, documents.texts))
    if size < MIN_CHARS:
        yield Finding(
            "warning",
            "too-small",
            f"{', '.join(documents.files)}: too small: {size:,} characters are too few to learn a language from",
            f"use at least {MIN_CHARS:,} characters for a first try, and millions for fluent text",
            size,
        )


def _repeated(documents: Documents, rows: Rows, also_nearly: bool) -> Iterator[Finding]:
    """Find documents that occur again, as they are or but for a word."""
    if rows.size < 2:
        return
    words = Words(documents.texts, Vocabulary())
    again, before = repeats(words.folded)
    first = rows.first_at(dict(zip(again, before, strict=True)))
    remedy = "remove duplicates, unless they should have more weight in training"
    yield from rows.shares(
        again,
        "duplicates",
        "the document has occurred before",
        remedy,
        0.2,
        evidence=first,
    )
    likes = near_repeats(words) if also_nearly else {}
    near = sorted(likes.keys() - set(again))
    what = "the document has occurred before, with a few words different"
    yield from rows.shares(
        near, "near-duplicates", what, remedy, 0.2, evidence=rows.first_at(likes)
    )


def _control_characters(documents: Documents, lines: Rows) -> Iterator[Finding]:
    counts = [len(unseen_in(text).findall(text)) for text in documents.texts]
    found = [i for i, count in enumerate(counts) if count]
    if found:
        examples = _first_unseen(documents, found)
        total = sum(counts)
        size = sum(map(len, documents.texts))
        bad_lines = _lines_with_unseen(documents)
        yield Finding(
            "warning" if total * 1_000 > size else "note",
            "control-characters",
            f"{examples[0].where}: {UNSEEN} ({total:,} characters; the first is shown)",
            UNSEEN_REMEDY,
            total,
            tuple(found),
            examples,
            places=lines.places(bad_lines),
        )


def _by_lines(documents: Documents) -> tuple[Rows, list[str]]:
    """Take every line as a row of its own, so that a bad one in a long document is one of many, and
    named.
    """
    texts = [line for text in documents.texts for line in text.split("\n")]
    begins = [0, *accumulate(text.count("\n") + 1 for text in documents.texts)]

    def where(line: int) -> str:
        document = bisect_right(begins, line) - 1
        file = documents.files[documents.file_of[document]]
        return f"{file}:{documents.lines[document] + line - begins[document]}"

    return Rows(len(texts), "lines", where, lambda i: (texts[i],)), texts


def _lines_with_unseen(documents: Documents) -> list[int]:
    """Find the lines, among those of all documents, with characters that nobody reads."""
    found = []
    line = 0
    for text in documents.texts:
        pattern = unseen_in(text)
        for part in text.split("\n"):
            if pattern.search(part):
                found.append(line)
            line += 1
    return found


def _first_unseen(documents: Documents, found: Sequence[int]) -> tuple[Example, ...]:
    """Show the first character that nobody reads in each of the documents, with its `file:line` and
    its surroundings.
    """
    examples = []
    for i in found[:NUM_EXAMPLES]:
        text = documents.texts[i]
        match = unseen_in(text).search(text)
        start = match.start() if match else 0
        size = len(match[0]) if match else 0
        about = excerpt(match[0]) if match else ""
        line = documents.lines[i] + text.count("\n", 0, start)
        where = f"{documents.files[documents.file_of[i]]}:{line}"
        shown, marked = marked_excerpts([text], [start], [size])
        examples.append(Example(where, shown, about, marked))
    return tuple(examples)


def _enormous(documents: Documents, rows: Rows) -> Iterator[Finding]:
    found = [i for i, text in enumerate(documents.texts) if len(text) > ENORMOUS_CHARS]
    if found:
        size = len(documents.texts[found[0]])
        yield Finding(
            "note",
            "enormous-document",
            f"{rows.where(found[0])}: a document of {size:,} characters ({counted(len(found), 'documents')} over "
            f"{ENORMOUS_CHARS:,})",
            "nothing to do if it is one text; otherwise set data.documents to what ends a document",
            len(found),
            tuple(found),
            rows.examples(found),
            places=rows.places(found),
        )
