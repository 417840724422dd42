"""The cleaning of documents: line by line what is in them, then what they repeat."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from weft.console import stages
from weft.data.check.documents import look_over_documents
from weft.data.check.finding import Finding
from weft.data.clean.cleaned import Cleaned, doomed
from weft.data.clean.mending import MENDS, has_lost
from weft.data.clean.record import Record
from weft.data.clean.rules import EMPTY, LOST, Choice
from weft.data.documents import Documents, Ends, read_documents
from weft.errors import DataError

_OF_LINES = "wrong-script"  # the finding that is about lines, not documents
LINE_RULES = (*MENDS, _OF_LINES)  # the rules that count lines


def clean_documents(
    data: Sequence[str], ends: Ends, raw: bool, choice: Choice
) -> Cleaned[Documents]:
    """Read and clean documents. Raises DataError as reading does, and where none is left."""
    text = read_documents(data, ends, raw)
    cleaner = _Cleaner(text, choice, Record())
    num_read = len(text)
    stages.enter("mending the text")
    cleaner.mend()
    left = cleaner.resolve()
    return Cleaned(cleaner.text, cleaner.record, left, num_read, text.notes)


class _Cleaner:
    """Documents that are cleaned; `_numbers` has the numbers of each one's lines in its file."""

    def __init__(self, text: Documents, choice: Choice, record: Record) -> None:
        self.text = text
        self.record = record
        self._choice = choice
        self._numbers: list[list[int]] = []
        for first, one in zip(text.lines, text.texts, strict=True):
            end = first + one.count("\n") + 1
            self._numbers.append(list(range(first, end)))

    def mend(self) -> None:
        """Change each line to what was meant; drop one that lost letters or was all markup."""
        for i, text in enumerate(self.text.texts):
            kept = []
            numbers = []
            for number, line in zip(self._numbers[i], text.split("\n"), strict=True):
                mended = self._mended(i, number, line)
                if mended is not None:
                    kept.append(mended)
                    numbers.append(number)
            self.text.texts[i] = "\n".join(kept)
            self._numbers[i] = numbers
        self._drop_blank()

    def resolve(self) -> list[Finding]:
        """Check and change the text until there is nothing to do; return what is found then."""
        while True:
            self._refuse_nothing()
            stages.enter("checking the text")
            findings = look_over_documents(self.text)
            of_lines = [found for found in findings if found.code == _OF_LINES]
            others = [found for found in findings if found.code != _OF_LINES]
            lines = doomed(of_lines, self._choice)
            rows = doomed(others, self._choice)
            if not rows and not lines:
                return findings
            self._drop_lines(sorted(lines))
            for i, rule in sorted(rows.items()):
                number = self.text.lines[i]
                self._drop(i, number, rule, self.text.texts[i])
            kept = [i for i in range(len(self.text)) if i not in rows]
            self._keep(kept)
            self._drop_blank()

    def _refuse_nothing(self) -> None:
        if not len(self.text):
            files = ", ".join(self.text.files)
            raise DataError(
                f"{files}: no document is left; weft check says what is wrong with the text"
            )

    def _mended(self, i: int, number: int, line: str) -> str | None:
        """Return a line of a document as it was meant; None for one that is dropped."""
        (mended,), rules = self._choice.mend_row((line,))
        rule = self._choice.reason_to_drop(rules)
        if self._choice.does(LOST, "mend") and has_lost(mended):
            rule = LOST
        elif rules and not mended.strip():
            rule = rules[0]
        if rule:
            self._drop(i, number, rule, line)
            return None
        if rules:
            place = self.text.file_of[i], number
            where = self._where(i, number)
            self.record.mend(place, where, rules, (line,), (mended,))
        return mended

    def _drop_lines(self, lines: Sequence[int]) -> None:
        """Drop lines by their numbers among those of all documents."""
        begins = [0, *accumulate(map(len, self._numbers))]
        gone: dict[int, set[int]] = {}
        for line in lines:
            i = bisect_right(begins, line) - 1
            gone.setdefault(i, set()).add(line - begins[i])
        for i, places in gone.items():
            texts = []
            numbers = []
            lines_of = zip(
                self._numbers[i], self.text.texts[i].split("\n"), strict=True
            )
            for place, (number, text) in enumerate(lines_of):
                if place in places:
                    self._drop(i, number, _OF_LINES, text)
                else:
                    texts.append(text)
                    numbers.append(number)
            self.text.texts[i] = "\n".join(texts)
            self._numbers[i] = numbers

    def _drop_blank(self) -> None:
        """Drop the documents of which nothing is left."""
        kept = [i for i, text in enumerate(self.text.texts) if text.strip()]
        blank = set(range(len(self.text))).difference(kept)
        for i in sorted(blank):
            number = self.text.lines[i]
            self._drop(i, number, EMPTY, self.text.texts[i])
        self._keep(kept)

    def _keep(self, rows: Sequence[int]) -> None:
        self.text = self.text.select(rows)
        self._numbers = [self._numbers[i] for i in rows]

    def _drop(self, i: int, number: int, rule: str, text: str) -> None:
        place = self.text.file_of[i], number
        where = self._where(i, number)
        self.record.drop(place, where, rule, (text,))

    def _where(self, i: int, number: int) -> str:
        file = self.text.files[self.text.file_of[i]]
        return f"{file}:{number}"


def with_ends(text: Documents, ends: Ends) -> Iterator[str]:
    """Yield documents as a file holds them: between blank lines, a line each, or as they are."""
    for i, one in enumerate(text.texts):
        if ends == "file":
            yield one
            continue
        before = "\n" if i and ends == "blank-line" else ""
        yield f"{before}{one}\n"
