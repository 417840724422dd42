"""The use of a folder of this form, in lines of Python for its card."""

from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.ship.ctranslate2.opened import TGT_TOKENIZER
from weft.ship.source import Source
from weft.ship.tokenizers.hub import TOKENIZER

_USE = """\
`pip install {packages}`, then in Python:

```python
{lines}
```"""
_TRANSLATE = """\
import json
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer

settings = json.loads(Path("THIS_FOLDER/weft.json").read_text("utf-8"))
source = Tokenizer.from_file("THIS_FOLDER/tokenizer.json")
source.enable_truncation(settings["max_ids"])
target = Tokenizer.from_file("THIS_FOLDER/{target}")
translator = ctranslate2.Translator("THIS_FOLDER")
tokens = [source.encode(text).tokens for text in ["A sentence.", "Another one."]]
for found in translator.translate_batch(tokens, **settings["search"]):
    ids = [target.token_to_id(token) for token in found.hypotheses[0]]
    print(target.decode(ids))"""
_WRITE = """\
import json
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer

settings = json.loads(Path("THIS_FOLDER/weft.json").read_text("utf-8"))
tokenizer = Tokenizer.from_file("THIS_FOLDER/tokenizer.json")
generator = ctranslate2.Generator("THIS_FOLDER")
begun = tokenizer.encode("A beginning").tokens
(found,) = generator.generate_batch([begun], **settings["search"])
print("A beginning" + tokenizer.decode(found.sequences_ids[0]))"""
_CLASSIFY = """\
import json
from pathlib import Path

import ctranslate2
import numpy as np
from tokenizers import Tokenizer

settings = json.loads(Path("THIS_FOLDER/weft.json").read_text("utf-8"))
head = np.load("THIS_FOLDER/head.npz")
tokenizer = Tokenizer.from_file("THIS_FOLDER/tokenizer.json")
tokenizer.enable_truncation(settings["max_ids"])
encoder = ctranslate2.Encoder("THIS_FOLDER")
ids = tokenizer.encode("A text.").ids
vector = np.zeros(head["weight"].shape[1])  # of a text without ids, at which the encoder would crash
if ids:
    (states,) = np.array(encoder.forward_batch([ids]).last_hidden_state)
    vector = states.mean(0) if settings["pooling"] == "mean" else states[0]
logits = head["weight"] @ vector + head["bias"]
print({chosen})"""
_ONE = 'settings["labels"][logits.argmax()]'
_SEVERAL = '[label for label, logit in zip(settings["labels"], logits) if logit >= 0]'


def use_of(source: Source) -> str:
    """Return the section of the card."""
    packages = "ctranslate2 tokenizers"
    if isinstance(source.config, ClassificationConfig):
        packages += " numpy"
    return _USE.format(packages=packages, lines=_lines_of(source))


def _lines_of(source: Source) -> str:
    config = source.config
    if isinstance(config, TranslationConfig):
        target = TOKENIZER if source.is_joint else TGT_TOKENIZER
        return _TRANSLATE.format(target=target)
    if isinstance(config, LanguageConfig):
        return _WRITE
    assert isinstance(config, ClassificationConfig)
    return _CLASSIFY.format(chosen=_SEVERAL if config.multi_label else _ONE)
