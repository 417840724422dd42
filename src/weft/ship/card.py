"""The card of a model in another form: the form, what proves it, and the model's own card."""

import re

from weft.folder.model_files import read_card
from weft.run.card import without_folders, without_run
from weft.ship.certificate.report import Certificate
from weft.ship.source import Source
from weft.ship.target import Asked, Target
from weft.ship.written import Written

# of a card: what would help in training, and how Weft uses the folder that it was written for
_HELPS = re.compile(r"^- what would help: .*\n", re.MULTILINE)
NOT_PROVED = "This form was not compared with the model that it was made from: nothing says that it computes the same."


def card_of(
    source: Source,
    target: Target,
    written: Written,
    certificate: Certificate | None,
    asked: Asked,
) -> str:
    """Return the card as Markdown: the head for the program's sites, the form, the certificate, the
    terms, and the card of the model.
    """
    proof = NOT_PROVED if certificate is None else certificate.paragraph()
    title, own = _own_card(source)
    parts = [
        f"# {title}",
        f"Made by Weft {source.config.weft_version}, in the form {written.form}, {written.precision}.",
        f"## Use\n\n{target.how_to_use(source, written)}",
        f"## Is it the same model?\n\n{proof}",
        f"## Terms\n\n{_terms(asked)}",
    ]
    if written.notes:
        listed = "\n".join(f"- {note}" for note in written.notes)
        parts.append(f"## Notes on this form\n\n{listed}")
    parts.append(own)
    body = "\n\n".join(part.strip("\n") for part in parts)
    return f"{target.card_head(source, asked)}{without_folders(body)}\n"


def title_of(source: Source) -> str:
    """Return the title of the model's own card."""
    title, _ = _own_card(source)
    return title


def _own_card(source: Source) -> tuple[str, str]:
    """Return the title of the model's own card, and its sections but that on its use by Weft, one
    level deeper.
    """
    text = read_card(source.folder) or f"# {source.task.name}\n"
    text = _HELPS.sub("", without_run(text))
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    title, _, about = head.partition("\n")
    kept = [section for section in sections if not section.startswith("## Use\n")]
    deeper = re.sub(r"^(?=#+ )", "#", "".join(kept), flags=re.MULTILINE)
    return title.lstrip("# "), f"## The model\n\n{about.strip()}\n\n{deeper}"


def _terms(asked: Asked) -> str:
    license = asked.license or "none was stated; ask who made the model"
    terms = asked.data_terms or "none were stated"
    return f"- License of the model: {license}\n- Terms of the text that it learned from: {terms}"
