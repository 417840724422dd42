"""The glossary and the translation memory that a pack of a translator may have with it."""

from pathlib import Path

from weft.data.glossary import Glossary
from weft.data.json_lines import glossary_of_lines, units_of_lines
from weft.data.memory import Memory, PartsOf
from weft.errors import DataError, FolderError
from weft.folder.layout import GLOSSARY, MEMORY
from weft.folder.model_files import files_of
from weft.folder.model_folder import TranslationConfig, config_in
from weft.predict.translator import Translator


def packed_glossary(model: Path) -> Glossary | None:
    """Read the glossary of a pack; None where it has none, as a folder. Raises FolderError where it
    is damaged.
    """
    files = files_of(model)
    content = files.listed(GLOSSARY)
    if content is None:
        return None
    try:
        return glossary_of_lines(content, str(files.place(GLOSSARY)))
    except DataError as error:
        raise FolderError(f"{error}; the pack is damaged") from None


def packed_memory(model: Path, parts_of: PartsOf | None = None) -> Memory | None:
    """Read the translation memory of a pack; None where it has none, as a folder. `parts_of` as in
    `read_memory`. Raises FolderError where it is damaged.
    """
    files = files_of(model)
    content = files.listed(MEMORY)
    config = config_in(files)
    if content is None or not isinstance(config, TranslationConfig):
        return None
    try:
        units = units_of_lines(content, str(files.place(MEMORY)))
    except DataError as error:
        raise FolderError(f"{error}; the pack is damaged") from None
    if parts_of is not None:
        units = units.with_parts(parts_of)
    return Memory(units, config.tgt_lang)


def with_packed(translator: Translator, model: Path) -> Translator:
    """Return the translator of a pack with its glossary and its memory. Raises FolderError where
    they are damaged.
    """
    if glossary := packed_glossary(model):
        translator = translator.with_glossary(glossary)
    if memory := packed_memory(model):
        translator = translator.with_memory(memory)
    return translator
