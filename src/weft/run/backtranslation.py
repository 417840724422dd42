"""Pairs from text of one language: a model translates a person's sentences, and each of its
translations becomes the source of a pair whose target is the person's sentence.

That is back-translation (Sennrich et al. 2016, "Improving Neural Machine Translation Models with
Monolingual Data", section 3). Whoever learns from such pairs writes sentences of people; what the
machine got wrong stands where it is only read.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.data.check.finding import counted
from weft.data.corpus import SourceText, read_sources
from weft.data.formats.header import find_header_of
from weft.data.normalize import replace_surrogates
from weft.errors import DataError
from weft.folder import durable
from weft.run.translations import (
    COPIES,
    Made,
    Maker,
    Progress,
    Search,
    Writer,
    fault,
    is_copy,
    left_out_notes,
    no_bar,
    read_translations,
    reading_notes,
    write_translations,
)

SAME = "the same pair as before"
_SAMPLE = 100  # pairs by which a reader tells names of columns from a pair
_BREAKS = re.compile(r"[\t\r\n]+")


@dataclass(frozen=True)
class MadePairs:
    """The pairs that were written, and what is to be said of them.

    Sources are a machine's, in the language `src_lang`; targets are people's, in `tgt_lang`.
    """

    path: Path
    src_lang: str
    tgt_lang: str
    count: int
    left_out: Counter[str]
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """Say what was left out and what was written, and which side is whose."""
        sides = f"sources ({self.src_lang}) by the model, targets ({self.tgt_lang}) by people"
        wrote = f"wrote {self.path}: {counted(self.count, 'pairs')}, {sides}"
        return [*self.notes, wrote]


def backtranslate(
    folder: Path,
    mono: Sequence[str],
    output: Path,
    search: Search | None = None,
    note: Callable[[str], None] = lambda text: None,
    progress: Progress = no_bar,
    to: str | None = None,
    write: Writer = write_translations,
) -> MadePairs:
    """Let the model in `folder` translate the sentences of `mono`, which are in its source
    language, and write pairs of its translations and these sentences as TSV.

    What is translated so far stands beside `output` until it is written: the same call goes on
    where it was stopped. A model of several directions is told into which language (`to`). Left out
    are translations that are empty, cut or repeat themselves, that hardly differ from the sentence,
    and pairs that were there before. `note` is told what is being done, `progress` as in
    `weft.run.distillation.distill`; `write` has the translations made. Raises WeftError, by kind.
    """
    work = "translate text to learn from"
    maker = Maker.open(folder, search or Search(), work, to)
    text = read_sources(mono, maker.config.src_lang, maker.config.tgt_lang)
    if not text.lines:
        raise DataError(
            f"{', '.join(mono)}: no sentence to translate; write one on each line"
        )
    return make_pairs(maker, text, output, note, progress, write=write)


def make_pairs(
    maker: Maker,
    text: SourceText,
    output: Path,
    note: Callable[[str], None],
    progress: Progress = no_bar,
    is_turned: bool = False,
    write: Writer = write_translations,
) -> MadePairs:
    """Let a model translate sentences, and write pairs as `backtranslate` does; where `is_turned`,
    the sentence is the source and the translation the target.
    """
    tgt_lang, src_lang = maker.config.src_lang, maker.config.tgt_lang
    count = len(text.lines) * maker.search.times
    searched = maker.search.describe()
    facts = {
        "model": maker.sha256,
        "text": text.sha256(),
        "search": searched,
        "names of search": [searched],
    }
    with durable.collecting(output, facts) as growing:
        file, done = growing
        if done < count:
            write(maker, text, growing, note, progress)
        file.flush()
        made = read_translations(Path(file.name), count)
        pairs, left_out = _chosen(text, made)
        if pairs:
            rows = [_heads(src_lang, tgt_lang, pairs), *pairs]
            turned = slice(None, None, -1 if is_turned else 1)
            written = "".join("\t".join(row[turned]) + "\n" for row in rows)
            durable.write_text(output, written)
    notes = (*reading_notes(text), *left_out_notes(left_out, count))
    if not pairs:
        raise DataError(
            f"no pair to learn from: {'; '.join(notes)}; is the text in {tgt_lang}, which {maker.folder} reads? "
            f"then it has learned too little: weft diagnose {maker.folder}"
        )
    return MadePairs(output, src_lang, tgt_lang, len(pairs), left_out, notes)


def _chosen(
    text: SourceText, made: Sequence[Made]
) -> tuple[list[tuple[str, str]], Counter[str]]:
    """Return the pairs to learn from, a translation and its sentence, and how many are none, by
    why.
    """
    pairs = []
    left_out = Counter[str]()
    known: set[tuple[str, str]] = set()
    for sentence, found in zip(_repeated(text, len(made)), made, strict=True):
        pair = _cell(found["text"]), _cell(sentence)
        why = fault(found) or (COPIES if is_copy(*pair) else None)
        if why is None and pair in known:
            why = SAME
        if why is None:
            known.add(pair)
            pairs.append(pair)
        else:
            left_out[why] += 1
    return pairs, left_out


def _repeated(text: SourceText, count: int) -> Iterator[str]:
    """Yield the sentences, all of them as often as they were translated."""
    for _ in range(count // len(text.lines)):
        yield from text.lines


def _heads(
    src_lang: str, tgt_lang: str, pairs: Sequence[tuple[str, str]]
) -> tuple[str, str]:
    """Return the names of the columns: the languages, where whoever reads the pairs knows them as
    such.
    """
    heads = (src_lang, tgt_lang)
    first = [list(row) for row in (heads, *pairs[:_SAMPLE])]
    found = find_header_of(first, False, None, None)
    if found is None or (found.src_lang, found.tgt_lang) != heads:
        return "source", "target"
    return heads


def _cell(text: str) -> str:
    """Return a text as a cell of TSV has it: on one line, without a TAB."""
    return _BREAKS.sub(" ", replace_surrogates(text)).strip()
