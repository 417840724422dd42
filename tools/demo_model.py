"""Makes the translator that the package carries: `python tools/demo_model.py [FOLDER]`.

It is trained on the built-in corpus as `weft demo` does, for more steps, and stored in int8,
without what its run left behind. `weft serve --demo` opens it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import weft
from weft.ship.quantization import quantize

DEMO = Path(weft.__file__).parent / "demo"
STEPS = 1500
SETTINGS = (
    f"training.max_steps={STEPS}",
    "training.eval_every=500",
    "training.precision=float32",
    "data.src_lang=en",
    "data.tgt_lang=zh",
    "tokenizer.src.kind=word",
    "tokenizer.tgt.kind=character",
)
MOST_BYTES = 2 * 2**20


def main(folder: Path) -> None:
    """Train, store and check the model, and put it into the folder."""
    with tempfile.TemporaryDirectory() as there:
        trained, small = Path(there, "demo"), Path(there, "small")
        verdict = weft.train(recipe="demo", out=trained, settings=SETTINGS)
        print(verdict.test_summary)
        quantize(trained, [], small)
        shutil.rmtree(small / "run")
        (small / "parity.json").unlink()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(small, folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{folder}: {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"more than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else DEMO)
