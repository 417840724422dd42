"""Arguments and options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

# what serve says of these, too
TERMS = (
    "Terms that translations must have: a row has source and target, in TSV, CSV or TBX; "
    "a term without a target stays as it is."
)
UNITS = "Pairs translated before, in TMX, XLIFF, PO, TSV, CSV or JSON lines: exact matches are taken, near ones told."

Folder = Annotated[Path, typer.Argument(help="A model folder, or a pack of one.")]
FolderOrDemo = Annotated[
    Path | None,
    typer.Argument(help="A model folder, or a pack of one; none with --demo."),
]
FromDemo = Annotated[
    bool,
    typer.Option(
        "--demo",
        help="Take the small translator, English to Chinese, that comes with Weft.",
    ),
]
Texts = Annotated[
    list[str] | None,
    typer.Argument(help="Texts. Default: read --input or standard input."),
]
Input = Annotated[
    Path | None,
    typer.Option("--input", help="Input file, one text per line; or a table."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", help="Output file. Default: standard output."),
]
TextsOrDocument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT",
        help="Texts, or the file of a document. Default: read --input or standard input.",
    ),
]
InputOrDocument = Annotated[
    Path | None,
    typer.Option(
        "--input", help="Input file, one text per line; or a table, or a document."
    ),
]
OutputOrDocument = Annotated[
    Path | None,
    typer.Option(
        "--output",
        help="Output file. Default: standard output; for report.docx report.de.docx beside it.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="With a table as --input: the column to translate, by name or number; "
        "of a document repeatable.",
    ),
]
AsDocument = Annotated[
    bool,
    typer.Option(
        "--document",
        help="Take the input as a document, also where its ending is .txt or that of a table; "
        "--column is then what is translated in it.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write one JSON object per line.")]

# text that is to be trained on
TextToTrainOn = Annotated[
    list[str],
    typer.Argument(help="Text to train on: pairs, documents or labelled rows."),
]
RecipeOrGuessed = Annotated[
    str | None,
    typer.Option("--recipe", help="The recipe that the text is for. Default: guessed."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Set a key of the recipe, section.key=value; repeatable."
    ),
]

# search
BeamSize = Annotated[
    int | None,
    typer.Option(
        "--beam-size",
        min=1,
        help="Beam size; 1 is greedy search. Default: from the recipe.",
    ),
]
LengthPenalty = Annotated[
    float | None,
    typer.Option(
        help="Exponent of the length normalization; 0 prefers short translations. "
        "Default: from the recipe."
    ),
]
NumBest = Annotated[
    int,
    typer.Option(
        min=1,
        help="Translations per text, with --mbr different ones, perhaps fewer; from 2 on, "
        "a line has line number, score and text.",
    ),
]
Exhaustive = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Search all translations of up to N tokens; for tiny vocabularies only.",
    ),
]
CoveragePenalty = Annotated[
    float,
    typer.Option(help="Rerank the beam by source coverage, with this weight."),
]
Prefix = Annotated[
    str, typer.Option(help="Text that every translation must begin with.")
]
NoRepeatNgrams = Annotated[
    int,
    typer.Option(min=0, help="Never repeat an n-gram of N tokens; 0: no limit."),
]
GlossaryFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--glossary",
        metavar="FILE",
        help=f"{TERMS} Repeatable.",
    ),
]
MemoryFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--memory",
        metavar="FILE",
        help=f"{UNITS} Repeatable.",
    ),
]
NoGlossary = Annotated[
    bool,
    typer.Option("--no-glossary", help="Leave out the glossary that a pack has."),
]
NoMemory = Annotated[
    bool,
    typer.Option("--no-memory", help="Leave out the memory that a pack has."),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="LANG",
        help="Language to translate into, of a model that writes several.",
    ),
]
Tag = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Translate like the training text with this tag (weft train FILE@:NAME).",
    ),
]
UsesShortlist = Annotated[
    bool | None,
    typer.Option(
        "--shortlist/--no-shortlist",
        help="Restrict the output to the model's lexical shortlist, which is faster. "
        "Default: the model's setting.",
    ),
]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(
        help="Another model with the same tokenizers, to average probabilities with; repeatable."
    ),
]
Alignments = Annotated[
    bool,
    typer.Option(
        "--alignments",
        help="With --json: add the source token that wrote most of each target token, and the words with "
        "their places, probabilities and source words.",
    ),
]
Doubts = Annotated[
    bool,
    typer.Option(
        "--doubts/--no-doubts",
        help="Estimate which words are wrong and what is left out, where the model has learned that "
        "of itself; without, it is a little faster.",
    ),
]
ReviewFile = Annotated[
    Path | None,
    typer.Option(
        "--review",
        metavar="FILE",
        help="Write a page (.html) of sources and translations side by side, doubtful words marked.",
    ),
]
GivenFile = Annotated[
    Path | None,
    typer.Option(
        "--given",
        metavar="FILE",
        help="Judge these translations, one a line, in place of writing some: with --review, --json, or "
        "by the notes on standard error.",
    ),
]

# sampling
Temperature = Annotated[
    float | None,
    typer.Option(
        help="Sample --n-best translations at this temperature instead of searching."
    ),
]
TopK = Annotated[
    int | None, typer.Option(min=1, help="Sample from the N most probable tokens.")
]
TopP = Annotated[
    float | None,
    typer.Option(help="Sample from the fewest tokens with this total probability."),
]
MinP = Annotated[
    float | None,
    typer.Option(
        help="Exclude tokens less probable than this fraction of the most probable one."
    ),
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Random seed of the samples. Default: 1.")
]
Mbr = Annotated[
    int | None,
    typer.Option(
        help="Minimum Bayes risk: draw N samples and choose the one most similar to the others."
    ),
]
UtilityName = Annotated[
    str | None,
    typer.Option(help="Similarity measure of --mbr: chrf or bleu. Default: chrf."),
]

# computing
Precision = Annotated[
    str,
    typer.Option(
        help="Precision of matrix products: float32, bfloat16, or auto "
        "for the fastest; int8 models use int8."
    ),
]
Kernels = Annotated[
    str,
    typer.Option(
        help="auto: the fastest code for this machine; torch: plain PyTorch, for debugging."
    ),
]
