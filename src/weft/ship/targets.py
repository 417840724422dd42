"""The forms that `weft export` writes, by name; each is loaded when it is asked for."""

from importlib import import_module

from weft.ship.target import Target

TARGETS = {
    "argos": ("weft.ship.argos.target", "Argos"),
    "ctranslate2": ("weft.ship.ctranslate2.target", "CTranslate2"),
    "huggingface": ("weft.ship.huggingface.target", "HuggingFace"),
    "onnx": ("weft.ship.onnx.target", "Onnx"),
    "gguf": ("weft.ship.gguf.target", "Gguf"),
    "transformers.js": ("weft.ship.transformersjs.target", "TransformersJs"),
    "web": ("weft.ship.web.target", "Web"),
}


def target_named(name: str) -> Target:
    """Return a target by the name that the command line has for it."""
    module, kind = TARGETS[name]
    target: Target = getattr(import_module(module), kind)()
    return target
