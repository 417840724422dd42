"""The headings, examples and pages of the verbs in the help."""

GROUPS = {
    "Train a model": ("demo", "check", "clean", "train", "finish", "sweep"),
    "Use a model": ("translate", "generate", "classify", "detect", "serve"),
    "Evaluate a model": ("evaluate", "compare", "score"),
    "Look inside": ("inspect", "diagnose", "selfcheck", "plot"),
    "Make another model from it": ("quantize", "average", "distill", "backtranslate"),
    "Take it elsewhere": ("pack", "export", "push"),
}

FIRST_STEPS = (
    ("weft demo", "train a small translator, in a minute or two"),
    ("weft check memory.tmx", "find the problems of your text"),
    ("weft train memory.tmx", "train a translator on it, in runs/memory"),
    ('weft translate runs/memory "..."', "use the translator"),
)

EXAMPLES = {
    "demo": ("weft demo", "weft demo --from zh --to en"),
    "check": (
        "weft check memory.tmx",
        "weft check train.en,train.de --test test.en,test.de",
        "weft check reviews.csv --output report.html",
    ),
    "clean": (
        "weft clean memory.tmx --output clean.tsv",
        "weft clean a.en,a.de --output clean.en,clean.de",
        "weft clean reviews.csv --dry-run",
    ),
    "train": (
        "weft train memory.tmx",
        "weft train a.en,a.de --recipe en-de --output runs/mine",
        "weft train reviews.csv --set data.label_column=stars",
        "weft train pairs.tsv --mono yo=news.txt --output runs/yo",
    ),
    "finish": ("weft finish runs/mine",),
    "sweep": (
        "weft sweep widths.toml",
        "weft sweep widths.toml --table --on test --format latex",
    ),
    "translate": (
        'weft translate runs/mine "A man is standing."',
        "weft translate runs/mine --input a.txt --output b.txt",
        "weft translate runs/mine page.html --output seite.html",
        "weft translate runs/mine --input a.txt --on ray --output o",
    ),
    "generate": ("weft generate runs/plays --prompt ROMEO: --temperature 0.7",),
    "classify": (
        'weft classify runs/reviews "A fantastic movie!" --all',
        "weft classify runs/reviews --input a.csv --output b.csv",
    ),
    "detect": (
        'weft detect runs/mine "Guten Morgen"',
        "weft detect runs/en-de runs/en-zh --input a.txt",
    ),
    "serve": (
        "weft serve --demo",
        "weft serve runs/mine",
        "weft serve runs/en-de runs/de-en books=runs/plays",
        "weft serve runs/mine --host 0.0.0.0 --keys keys.txt",
    ),
    "evaluate": ("weft evaluate runs/mine test.en,test.de",),
    "compare": ("weft compare runs/mine runs/other test.en,test.de",),
    "score": ("weft score runs/plays lines.txt",),
    "inspect": (
        'weft inspect --demo "My sister is drinking tea."',
        'weft inspect runs/mine "A man."',
        'weft inspect runs/mine "A man." --output inside.html',
        'weft inspect runs/mine "A man." --json',
    ),
    "diagnose": ("weft diagnose runs/mine test.en,test.de",),
    "selfcheck": ("weft selfcheck runs/mine",),
    "plot": (
        "weft plot history runs/a runs/b --output history.png",
        "weft plot positions --output positions.svg",
    ),
    "quantize": ("weft quantize runs/mine a.en,a.de --output runs/small",),
    "average": ("weft average runs/mine --last 2 --output runs/average",),
    "pack": ("weft pack runs/mine --output mine.weft",),
    "export": (
        "weft export runs/mine --to huggingface --output hub",
        "weft export runs/mine --to onnx --output o --license mit",
        "weft export runs/mine --to web --output site",
        "weft export --demo --to web --output site",
    ),
    "push": (
        "weft push runs/mine me/en-de",
        "weft push runs/mine me/en-de --public --license mit",
    ),
    "distill": ("weft distill runs/big text.en --output runs/small",),
    "backtranslate": (
        "weft backtranslate runs/yo-en news.yo --output made.tsv",
        "weft backtranslate runs/yo-en a.yo --output b.tsv --sample",
    ),
}

# Options that beginners do not need, under a heading of their own.
RESEARCH = {
    "translate": {
        "--length-penalty",
        "--exhaustive",
        "--temperature",
        "--top-k",
        "--top-p",
        "--min-p",
        "--seed",
        "--mbr",
        "--utility",
        "--coverage-penalty",
        "--alignments",
        "--ensemble",
    },
    "evaluate": {"--length-penalty", "--mbr", "--utility", "--ensemble"},
}

# Placeholders of options' values, where the type says too little.
VALUES = {
    "--allow-host": "NAME",
    "--column": "NAME",
    "--cors-origin": "ORIGIN",
    "--dev": "DATA",
    "--draft": "NAME",
    "--drop": "RULE",
    "--ensemble": "FOLDER",
    "--from": "FOLDER",
    "--host": "ADDRESS",
    "--kernels": "NAME",
    "--keep": "RULE",
    "--keys": "FILE",
    "--mono": "LANG=FILE",
    "--log-level": "LEVEL",
    "--new-key": "NAME",
    "--precision": "NAME",
    "--pivot": "LANGUAGE",
    "--proxy": "ADDRESS",
    "--recipe": "NAME",
    "--set": "KEY=VALUE",
    "--shortlist": "DATA",
    "--test": "DATA",
    "--train": "DATA",
    "--utility": "NAME",
}

PAGES = {
    "check": "docs/checking.md",
    "clean": "docs/checking.md#cleaning",
    "train": "docs/translation.md, docs/classification.md, docs/language-modelling.md; every key: docs/recipes.md",
    "finish": "docs/translation.md#continuing-a-run",
    "sweep": "docs/sweeps.md",
    "translate": "docs/translation.md#translating, docs/documents.md, docs/scale.md",
    "generate": "docs/language-modelling.md#generating-text",
    "classify": "docs/classification.md#using-it",
    "detect": "docs/translation.md#which-language-is-it",
    "serve": "docs/serving.md",
    "evaluate": "docs/translation.md, docs/classification.md#scoring, docs/language-modelling.md#scoring",
    "compare": "docs/translation.md#comparing-two-models",
    "score": "docs/language-modelling.md#scoring",
    "inspect": "docs/translation.md#looking-inside",
    "diagnose": "docs/translation.md#why-is-my-model-bad",
    "push": "docs/interop.md#to-the-hub",
    "selfcheck": "docs/translation.md#looking-inside",
    "plot": "docs/systems.md#figures-for-a-lesson; learning curves: docs/systems.md",
    "quantize": "docs/translation.md#smaller-and-faster-int8",
    "average": "docs/translation.md#averaging",
    "distill": "docs/translation.md#from-a-teacher",
    "backtranslate": "docs/translation.md#text-in-one-language",
    "pack": "docs/serving.md#handing-a-model-on",
    "export": "docs/interop.md; pages: docs/web.md",
}
