"""The translation memories of a server: one for each pair of languages, of one file or several."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from weft.data.check.finding import counted
from weft.data.corpus import split_at_comma
from weft.data.formats.filenames import from_two_names, pair_from_name
from weft.data.formats.tmx import read_contents
from weft.data.languages import pair_of, primary
from weft.data.memory import Memory, read_memory
from weft.documents.units import parts_for
from weft.errors import UsageError

Pair: TypeAlias = tuple[str, str]


def open_memories(
    words: Sequence[str],
    forms: Mapping[Pair, Sequence[Collection[str]]],
    say: Callable[[str], None],
) -> dict[Pair, Memory]:
    """Read the files of a command line for the pairs of the models, and say what is in them: `FILE`
    or `en-de=FILE`. Units of later files count more. Each model of a pair reads placeholders of
    some `forms`.

    Raises UsageError where it is not known which pair a file is for, and where it is for none;
    DataError for what cannot be read.
    """
    pairs = list(forms)
    by_pair: dict[Pair, list[str]] = {}
    for word in words:
        data, own = _meant(word, pairs)
        if not own:
            have = ", ".join("-".join(pair) for pair in pairs) or "none"
            raise UsageError(
                f"--memory {word}: it is for none of the languages here, which are {have}"
            )
        for pair in own:
            by_pair.setdefault(pair, []).append(data)
    found = {}
    for pair, files in by_pair.items():
        memory = read_memory(files, *pair, parts_for(*set(map(tuple, forms[pair]))))
        memory.prepare()
        units = counted(memory.num_whole, "units")
        say(f"memory {'-'.join(pair)}: {units} of {', '.join(files)}")
        for note in (*memory.notes, *memory.doubts):
            say(note)
        found[pair] = memory
    return found


def _meant(word: str, pairs: Sequence[Pair]) -> tuple[str, list[Pair]]:
    """Return the data of a word, and those of the pairs that it is for."""
    said, equals, rest = word.partition("=")
    if equals and not Path(word).is_file():
        pair = pair_of(said)
        if pair is None:
            raise UsageError(
                f"--memory {word}: {said!r} names no two languages; write them as in en-de={rest}"
            )
        return rest, _alike(pairs, pair)
    paths = split_at_comma(word)
    if ".tmx" in paths[0].suffixes and paths[0].is_file():
        held = set(map(primary, read_contents(paths[0]).languages))
        return word, [pair for pair in pairs if held.issuperset(map(primary, pair))]
    named = _named(paths)
    if named is not None:
        return word, _alike(pairs, named)
    if len(pairs) != 1:
        raise UsageError(
            f"--memory {word}: say which languages it is for, as in en-de={word}"
        )
    return word, list(pairs)


def _named(paths: Sequence[Path]) -> Pair | None:
    """Return the languages that names say."""
    if len(paths) == 1:
        return pair_from_name(paths[0].name)
    src, tgt = from_two_names(paths[0].name, paths[1].name)
    return (src, tgt) if src and tgt else None


def _alike(pairs: Sequence[Pair], said: Pair) -> list[Pair]:
    """Return the pairs of the same two languages, whatever their regions."""
    wanted = list(map(primary, said))
    return [pair for pair in pairs if list(map(primary, pair)) == wanted]
