"""The card of a model in another form: what it is for a stranger, and what proves it."""

from collections.abc import Iterable, Iterator, Sequence

from weft.folder.model_folder import TranslationConfig
from weft.ship.certificate.report import Certificate
from weft.ship.head import head_of
from weft.ship.licenses import license_of
from weft.ship.own_card import ON_TEST, OwnCard, read_own_card
from weft.ship.source import Source
from weft.ship.target import Asked, Target
from weft.ship.written import Written

NOT_PROVED = "This form was not compared with the model that it was made from: nothing says that it computes the same."
HERE = "`THIS_FOLDER` is the folder that this card is in."
# lists the hashes of the manifest, and compares the files with them
UNCHANGED = (
    """python -c 'import json; [print(e["sha256"], "", n) for n, e in """
    """json.load(open("manifest.json"))["files"].items()]' | sha256sum -c"""
)
MADE_BY = "Weft (the Python package `weft-text`)"
# what a stranger asks first, of the sections of a model's own card
_FIRST = ("What it is good for", ON_TEST)
# what sections are called where the form has one of that name, too
_CALLED = {"Notes": "Notes on the training"}


def card_of(
    source: Source,
    target: Target,
    written: Written,
    certificate: Certificate | None,
    asked: Asked,
) -> str:
    """Return the card as Markdown: the head for the Hub, the use of the form, what the
    model is good for, the terms, the certificate, and how the model was made.
    """
    own = read_own_card(source.folder, source.task.name)
    here = f"the form {written.form}, with weights in {written.precision}"
    parts = [
        f"# {own.title}",
        own.about,
        f"It was made by {MADE_BY}. Here it has {here}, and is used without Weft.",
        _section("Use", _use(source, target, written)),
        *_sections(own, first=True),
        _section("Terms", terms(asked)),
        _section("Is it the same model?", _proof(certificate)),
        _on_scores(own, written, target.used_otherwise(source)),
        f"Whether a file has changed since it was written, this tells in the folder:\n\n```bash\n{UNCHANGED}\n```",
    ]
    if written.notes:
        parts.append(_section("Notes on this form", _bullets(written.notes)))
    parts += _sections(own, first=False)
    body = "\n\n".join(part.strip("\n") for part in parts if part)
    head = head_of(source, asked, target.library) if target.library else ""
    return f"{head}{body}\n"


def card_for_weft(own: OwnCard, use: Sequence[str], asked: Asked) -> str:
    """Return the card of a model that stays as Weft opens it, without a head: `use` are the
    commands.
    """
    parts = [
        f"# {own.title}",
        own.about,
        f"It was made by {MADE_BY}, which opens it.",
        _section("Use", "\n".join(("```bash", *use, "```"))),
        *_sections(own, first=True),
        _section("Terms", terms(asked)),
        *_sections(own, first=False),
    ]
    body = "\n\n".join(part.strip("\n") for part in parts if part)
    return f"{body}\n"


def title_of(source: Source) -> str:
    """Return the title of the model's own card."""
    return read_own_card(source.folder, source.task.name).title


def terms(asked: Asked) -> str:
    """Say under which terms the model is had, and its text was: nothing but what was stated."""
    license = license_of(asked.license)
    if license is None:
        model = "none was stated; ask who made the model"
    elif license.name:
        model = f"[{license.name}]({license.link})"
    else:
        model = license.id
    data = asked.data_terms or "none were stated"
    return _bullets(
        (
            f"License of the model: {model}",
            f"Terms of the text that it learned from: {data}",
        )
    )


def _use(source: Source, target: Target, written: Written) -> str:
    """Say how the form is used, and of a translator how much it takes at a time."""
    use = target.how_to_use(source, written).strip("\n")
    if "THIS_FOLDER" in use:
        use += f"\n\n{HERE}"
    config = source.config
    if not isinstance(config, TranslationConfig) or target.divides_texts:
        return use
    if config.single_sentences:
        how = (
            "Give it one sentence at a time: it has learned from single ones, and of several it may translate the "
            "first alone. Weft cuts a text into sentences before it translates"
        )
    else:
        how = (
            f"Give it a line of at most {config.usual_src_len} tokens at a time, as it has learned from such. Weft "
            "divides longer ones where sentences end"
        )
    return (
        f"{use}\n\n{how}; here what is beyond {config.max_src_len} tokens is cut off. Leave out empty texts: "
        "Weft has no translation of one, and here the model makes something up."
    )


def _proof(certificate: Certificate | None) -> str:
    """Say what was compared and found."""
    if certificate is None:
        return NOT_PROVED
    about = "`parity.json` has all numbers."
    return f"{certificate.sentence()}\n\n{_bullets(certificate.lines())}\n\n{about}"


def _on_scores(own: OwnCard, written: Written, otherwise: str) -> str:
    """Say by whom the scores on test are, and how an output comes about `otherwise` here."""
    said = []
    if own.scored_by:
        here = ""
        if written.precision != "float32":
            here = f"; here the weights are in {written.precision}"
        said.append(
            f"The scores on test are Weft's own, with its settings ({own.scored_by}){here}."
        )
    return " ".join([*said, otherwise]).strip()


def _sections(own: OwnCard, first: bool) -> Iterator[str]:
    """Yield the sections of the model's own card that come first, in the order of `_FIRST`, or
    else the others.
    """
    rest = (heading for heading in own.sections if heading not in _FIRST)
    for heading in _FIRST if first else rest:
        content = own.sections.get(heading, "")
        if content:
            yield _section(_CALLED.get(heading, heading), content)


def _section(heading: str, content: str) -> str:
    return f"## {heading}\n\n{content}"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
