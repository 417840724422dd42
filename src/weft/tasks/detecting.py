"""Model folders as detectors of their languages, by what they have kept of the training text.

A folder of an earlier version has kept nothing. Then the pieces of its tokenizers say something:
each side's own, or where both sides share one, those in a script that one side alone is written in.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from weft.data.detection import Detector
from weft.data.grams import UNKNOWN_LETTERS, script_of
from weft.data.languages import UNKNOWN, canonical
from weft.data.pipeline import SMALLEST
from weft.data.profile import Profile, profile_of_pieces
from weft.data.scripts import usual_scripts
from weft.data.tokenizer import Tokenizer
from weft.errors import FolderError
from weft.folder.layout import LANGUAGES
from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    StoredModel,
    TranslationConfig,
    open_model_folder,
)
from weft.tasks.task import load_tokenizers


@dataclass(frozen=True)
class FolderLanguages:
    """The languages that a folder's model was trained on, those of them that are `named`, by what
    is known of each.

    `is_guessed`: by the vocabulary alone.
    """

    folder: Path
    named: Sequence[str]
    profiles: Mapping[str, Profile]
    is_guessed: bool

    def note(self) -> str:
        """Say what stands against telling them apart; "" where nothing does."""
        if not self.named:
            keys = "data.src_lang and data.tgt_lang, or data.lang"
            return (
                f"{self.folder}: names no language; name it in training (--set {keys})"
            )
        if not self.is_guessed:
            return ""
        before = f"{self.folder}: was trained by an earlier version"
        if missing := [code for code in self.named if code not in self.profiles]:
            return (
                f"{before}, and its vocabulary does not tell {' from '.join(missing)}"
            )
        return f"{before}; languages are told by its vocabulary alone, less surely"


def detector_of(folders: Iterable[Path]) -> Detector:
    """Return a detector of the languages of the models in folders, all together.

    Raises FolderError for a damaged folder.
    """
    found = (languages_in(folder) for folder in folders)
    return Detector.joined(Detector.of(one.profiles) for one in found)


def languages_in(folder: Path) -> FolderLanguages:
    """Read what a folder knows of its languages. Raises FolderError where it is damaged."""
    stored = open_model_folder(folder)
    named = [code for code in _languages_of(stored) if code != UNKNOWN]
    profiles = profiles_in(stored)
    if profiles or not named:
        return FolderLanguages(folder, named, profiles, is_guessed=False)
    guessed = _profiles_of_vocabulary(stored)
    return FolderLanguages(folder, named, guessed, is_guessed=True)


def profiles_in(stored: StoredModel) -> dict[str, Profile]:
    """Read what a folder has kept of its languages; nothing where it is of an earlier version.

    Raises FolderError where that is damaged.
    """
    profiles: dict[str, Profile] = {}
    for code, rows in stored.profiles().items():
        where = f"{stored.folder / LANGUAGES}: {code[:40]!r}"
        if canonical(code) != code or code == UNKNOWN:
            raise FolderError(f"{where} is no language code; the file is damaged")
        profiles[code] = Profile.from_array(rows, where)
    return profiles


def _profiles_of_vocabulary(stored: StoredModel) -> dict[str, Profile]:
    """Guess the profiles of a folder's languages from the pieces of its tokenizers."""
    languages = _languages_of(stored)
    tokenizers = load_tokenizers(stored)
    pieces = [list(_pieces(tokenizer)) for tokenizer in tokenizers]
    if len(languages) == 2 and len(pieces) == 1:
        pieces = _by_script(pieces[0], languages)
    profiles: dict[str, Profile] = {}
    # of one language, the source side says enough
    for code, own in zip(languages, pieces, strict=False):
        profile = profile_of_pieces(own)
        if profile is not None and code != UNKNOWN:
            profiles[code] = profile
    return profiles


def _languages_of(stored: StoredModel) -> list[str]:
    """Return the languages of a folder's model, source and target; one where they are the same."""
    config = stored.config
    if isinstance(config, LanguageConfig | ClassificationConfig):
        return [config.lang]
    assert isinstance(config, TranslationConfig)
    directions = config.directions or ((config.src_lang, config.tgt_lang),)
    return list(dict.fromkeys(chain.from_iterable(directions)))


def _pieces(tokenizer: Tokenizer) -> Iterator[str]:
    """Yield the learned pieces in order, with marks where their words may go on."""
    kind = tokenizer.settings.kind
    first = 0 if kind == "byte" else SMALLEST
    for number in range(first, tokenizer.vocab_size):
        try:
            piece = tokenizer.spell([number], begins=False).decode("utf-8")
        except UnicodeDecodeError:  # a part of a letter
            continue
        word = piece.strip()
        if word:
            before = "" if piece.startswith(" ") else UNKNOWN_LETTERS
            # most pieces of several letters may end a word
            behind = UNKNOWN_LETTERS if kind == "character" else ""
            yield f"{before}{word}{behind}"


def _by_script(pieces: Sequence[str], languages: Sequence[str]) -> list[list[str]]:
    """Return the pieces that are in the scripts of each language; none where the languages have the
    same, or one is not known.
    """
    scripts = [usual_scripts(code) for code in languages]
    if UNKNOWN in languages or scripts[0] == scripts[1]:
        return [[] for _ in languages]
    return [list(_in_scripts(pieces, own)) for own in scripts]


def _in_scripts(pieces: Sequence[str], scripts: frozenset[str]) -> Iterator[str]:
    for piece in pieces:
        letters = piece.replace(UNKNOWN_LETTERS, "")
        if all(script_of(letter) in scripts for letter in letters):
            yield piece
