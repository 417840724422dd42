"""BLEU as papers on Multi30k give it: `python benchmarks/moses_bleu.py TRANSLATIONS REFERENCES
LANGUAGE`.

Both texts are lower-cased and cut by the Moses tokenizer for the language, which for French splits
at apostrophes where sacreBLEU's own does not; BLEU is sacreBLEU's, of the tokens as they are. Needs
the package sacremoses, which Weft itself does not.
"""

import sys
from pathlib import Path

import sacrebleu

try:
    from sacremoses import MosesTokenizer
except ImportError:
    sys.exit("skipped: sacremoses is absent (pip install sacremoses)")


def main() -> None:
    """Print the score, and beside it the one of sacreBLEU's own tokens."""
    *files, language = sys.argv[1:]
    translations, references = (
        [
            line.strip().lower()
            for line in Path(name).read_text("utf-8").split("\n")[:-1]
        ]
        for name in files
    )
    if len(translations) != len(references):
        sys.exit(
            f"{files[0]} has {len(translations)} lines, {files[1]} {len(references)}"
        )
    tokenizer = MosesTokenizer(language)
    cut = [
        [tokenizer.tokenize(t, return_str=True, escape=False) for t in text]
        for text in (translations, references)
    ]
    moses = sacrebleu.corpus_bleu(cut[0], [cut[1]], tokenize="none", force=True).score
    own = sacrebleu.corpus_bleu(translations, [references]).score
    print(
        f"lower-cased BLEU of {len(translations):,} lines: Moses tokens {moses:.2f}, sacreBLEU's 13a {own:.2f}"
    )


if __name__ == "__main__":
    main()
