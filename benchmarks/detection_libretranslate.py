"""LibreTranslate's detector, for detection.py: reads lines of JSON, languages and texts, and writes
the code of each text.

Runs in the peer's Python. Its file is loaded by itself, as its package loads a server.
"""

import importlib.util
import json
import sys
from pathlib import Path


def main() -> None:
    package = importlib.util.find_spec("libretranslate")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("libretranslate is not installed here")
    path = Path(next(iter(package.submodule_search_locations))) / "detect.py"
    spec = importlib.util.spec_from_file_location("libretranslate_detect", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for line in sys.stdin:
        languages, texts = json.loads(line)
        # both of its codes for Chinese count
        codes = [*languages, *(["zt"] if "zh" in languages else [])]
        detector = module.Detector(tuple(codes))
        found = [detector.detect(text)[0].code for text in texts]
        print(
            json.dumps(["zh" if code == "zt" else code for code in found]), flush=True
        )


if __name__ == "__main__":
    main()
