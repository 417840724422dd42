"""LibreTranslate's own server over CTranslate2, for serving.py: `python
benchmarks/serving_libretranslate.py MODEL TOKENIZERS SRC TGT PORT KIND`.

MODEL is what ctranslate2_model.py wrote, TOKENIZERS the one or two tokenizer files of the same Weft
folder, joined by a comma. Runs LibreTranslate's `app.py` under waitress with its four threads, as
its `main.py` does; in the place of Argos Translate, which would download models, stand the few
classes that the app asks for, with Argos's settings: a beam of at least 4, a length penalty of 0.2
of CTranslate2's, a sentence at a time. Sentences are not split: the benchmark sends single ones.
Needs LibreTranslate's packages and CTranslate2, nothing of Weft's.
"""

import argparse
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import ctranslate2
from tokenizers import Tokenizer


class Translation:
    """What the app calls a translation: from one language to another."""

    def __init__(self, engine: Any, tokenizers: list[Tokenizer], to_lang: Any) -> None:
        self.engine = engine
        self.src, self.tgt = tokenizers[0], tokenizers[-1]
        self.to_lang = to_lang

    def hypotheses(self, text: str, count: int) -> list[Any]:
        """The best translations of a text."""
        ids = self.src.encode(text, add_special_tokens=False).ids
        rows = [[*map(str, ids), "3"]]
        found = self.engine.translate_batch(
            rows,
            beam_size=max(count, 4),
            num_hypotheses=count,
            length_penalty=0.2,
            max_batch_size=32,
        )
        return [
            SimpleNamespace(value=self.tgt.decode([int(one) for one in row]).strip())
            for row in found[0].hypotheses
        ]


def stand_in(name: str, **content: Any) -> ModuleType:
    """A module under a name that others import."""
    module = ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module
    return module


def install(languages: list[Any]) -> None:
    """The modules that the app imports of Argos Translate."""
    translate = stand_in(
        "argostranslate.translate", get_installed_languages=lambda: languages
    )
    package = stand_in(
        "argostranslate.package", get_installed_packages=lambda: languages
    )
    stand_in("argostranslate", translate=translate, package=package)
    stand_in("minisbd", download_models=lambda *_: None)
    stand_in("argostranslatefiles", get_supported_formats=lambda: [])
    stand_in(
        "argostranslatefiles.translatehtml",
        translate_html=lambda translation, text: (
            translation.hypotheses(text, 1)[0].value
        ),
    )


def main() -> None:
    """Serve until killed."""
    model, tokenizers, src, tgt, port, kind = sys.argv[1:]
    engine = ctranslate2.Translator(
        model, device="cpu", compute_type=kind, inter_threads=2, intra_threads=1
    )
    loaded = [Tokenizer.from_file(path) for path in tokenizers.split(",")]
    target = SimpleNamespace(code=tgt, name=tgt, translations_from=[])
    translation = Translation(engine, loaded, target)
    source = SimpleNamespace(
        code=src,
        name=src,
        translations_from=[translation],
        get_translation=lambda to: translation,
    )
    target.get_translation = lambda to: None
    install([source, target])
    from libretranslate.app import create_app  # noqa: PLC0415  (after the stand-ins)
    from libretranslate.main import get_parser  # noqa: PLC0415
    from waitress import serve  # noqa: PLC0415

    args: argparse.Namespace = get_parser().parse_args(["--disable-web-ui"])
    app = create_app(args)
    serve(app, host="127.0.0.1", port=int(port), threads=args.threads)


if __name__ == "__main__":
    main()
