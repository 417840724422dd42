"""An export: written, read back, compared, and only then given its name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weft.console import stages
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.layout import CARD, GLOSSARY, MEMORY
from weft.folder.model_files import files_of
from weft.folder.unfinished import remove_abandoned
from weft.folder.version import installed_version
from weft.ship.card import NOT_PROVED, card_of
from weft.ship.certificate.checks import (
    check_ids,
    check_logits,
    check_search,
    check_use,
    check_weights,
)
from weft.ship.certificate.compared import ComparedText, compared_text
from weft.ship.certificate.reference import reference_of
from weft.ship.certificate.report import (
    CHECKS,
    Certificate,
    Check,
    Name,
    SourceFacts,
)
from weft.ship.certificate.trial import Trial, trial_of
from weft.ship.certificate.used import scores_of, used_by_weft
from weft.ship.licenses import LICENSE, license_of
from weft.ship.opened import Opened
from weft.ship.source import NoHome, Source, open_source
from weft.ship.target import Asked, Target, refuse_unfit
from weft.ship.tokenizing import why_no_tokenizer
from weft.ship.written import Written

PARITY = "parity.json"
BEAM_SIZE = 4  # of the beam that is compared
_NEAR = 1024  # positions to which rounding of angles is within the tolerance
_NO_TEXT = "it takes text: give DATA, or a folder whose run holds some out"
# the checks that show a text, the first that can be made of them
_SHOW: tuple[Name, ...] = ("greedy", "use")


@dataclass(frozen=True)
class Export:
    """An export that was written: its certificate, if one was made, what to know, and the bytes of
    all files.
    """

    form: str
    certificate: Certificate | None
    notes: tuple[str, ...]
    size: int

    def lines(self) -> list[str]:
        """Return what was found, for a person, in lines."""
        found = [NOT_PROVED] if self.certificate is None else self.certificate.lines()
        notes = self.notes
        if self.certificate is not None:
            notes = (*notes, *self.certificate.notes)
        return [*found, *(f"note: {note}" for note in notes)]

    def to_json(self) -> dict[str, Any]:
        """Return the same for a program."""
        certificate = self.certificate and self.certificate.to_json()
        return {**asdict(self), "certificate": certificate}


def export(
    folder: Path,
    target: Target,
    output: Path,
    data: Sequence[str] = (),
    asked: Asked | None = None,
    builtin: str = "",
) -> Export:
    """Write `output`, a folder with the model in `folder` in the form of a target.

    It is compared with the model on `data`, text that was not trained on, or the test part of a
    `builtin` corpus, or without both on what the folder's own run holds out; the certificate is
    written beside it. Raises NoHome for a model that this form does not have, MissingPackage or
    UnfitPackage where the target's library is not installed or of another version, and FolderError,
    with nothing written, where the two are not the same.
    """
    asked = asked or Asked()
    if asked.precision not in target.precisions:
        *others, last = target.precisions
        has = f"{', '.join(others)} and {last}" if others else f"{last} alone"
        raise UsageError(f"--precision {asked.precision}: --to {target.name} has {has}")
    license = license_of(asked.license)
    stages.enter("loading the model")
    source = open_source(folder)
    if reason := target.why_not(source) or why_no_tokenizer(source):
        raise NoHome(f"{folder}: has no home in {target.name}: {reason}")
    refuse_unfit(target, asked.is_certified)
    trial = text = None
    if asked.is_certified:
        text = _text(source, target, data, builtin)
    if text is not None:
        trial = trial_of(source, text.text)
    if trial is not None and (reason := target.why_not_for(source, trial.lines)):
        raise NoHome(f"{folder}: has no home in {target.name}: {reason}")
    remove_abandoned(output.parent, durable.TEMPORARY)
    with durable.writing_folder(output, target.facts(source)) as place:
        stages.enter(f"writing {target.name}")
        written = target.write(source, place, asked)
        written = replace(written, notes=(*written.notes, *_left_behind(source)))
        certificate = None
        if asked.is_certified:
            found = certify(source, target, written, place, trial)
            certificate = _dated(found, source, text)
            _refuse_failed(folder, certificate)
            durable.write_json(place / PARITY, certificate.for_others())
        if license is not None and license.file is not None:
            durable.write_bytes(place / LICENSE, license.file.read_bytes())
        card = card_of(source, target, written, certificate, asked)
        durable.write_text(place / CARD, card)
        target.finish(place)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    return Export(written.form, certificate, written.notes, size)


def certify(
    source: Source,
    target: Target,
    written: Written,
    place: Path,
    trial: Trial | None,
) -> Certificate:
    """Compare what was written with its source, check by check; without text the weights alone.

    The checks stop at the first that does not pass.
    """
    stages.enter("reading it back")
    equal = target.compared(source)
    with closing(target.open(equal, place, written)) as opened:
        if trial is None:
            weights = check_weights(written, opened, equal.arrays)
            idle = {str(name): _NO_TEXT for name in CHECKS if name != "weights"}
            return _certificate(target, written, opened, [weights], idle)
        steps = _steps(source, equal, written, opened, trial)
        unchecked = {**_idle(trial), **opened.unchecked}
        checks = _made(steps, unchecked)
        return _certificate(target, written, opened, checks, unchecked)


def _steps(
    source: Source, equal: Source, written: Written, opened: Opened, trial: Trial
) -> Mapping[Name, Callable[[], Check]]:
    """Return what makes each check; `equal` is the model that the form must be the same as."""
    reference = reference_of(equal.task, opened.bans_first)
    tokenizers = source.tokenizers
    exact = written.is_exact
    tolerance = tolerance_of(source, written, trial) if exact else None
    return {
        "weights": lambda: check_weights(written, opened, equal.arrays),
        "ids": lambda: check_ids(written, opened, trial),
        "logits": lambda: check_logits(
            written, opened, trial, reference, tokenizers[0].decode, tolerance
        ),
        "greedy": lambda: check_search(
            written, opened, trial, reference, tokenizers, 1, exact
        ),
        "beam": lambda: check_search(
            written, opened, trial, reference, tokenizers, BEAM_SIZE, exact
        ),
        "use": lambda: check_use(
            opened,
            trial.used,
            used_by_weft(source.own, trial.used),
            lambda found: scores_of(source, trial, found),
        ),
    }


def tolerance_of(source: Source, written: Written, trial: Trial) -> float:
    """Return by how much logits may differ.

    Programs compute the frequencies of rotary positions themselves, and the last bit of one turns a
    position by its number times 2^-24: more the farther out it is.
    """
    if getattr(source.shape, "positions", "") != "rotary":
        return written.tolerance
    farthest = max(len(row.ids) for row in (*trial.rows, *trial.probes))
    return written.tolerance * max(1, farthest / _NEAR)


def _made(
    steps: Mapping[Name, Callable[[], Check]], unchecked: Mapping[str, str]
) -> list[Check]:
    """Make the checks, until one does not pass."""
    checks: list[Check] = []
    for name, step in steps.items():
        if name in unchecked:
            continue
        stages.enter(f"comparing {CHECKS[name]}")
        check = step()
        if not check.is_passed:
            shown = next((one for one in _SHOW if one not in unchecked), name)
            checks.append(_with_example(check, steps[shown]))
            break
        checks.append(check)
    return checks


def _certificate(
    target: Target,
    written: Written,
    opened: Opened,
    checks: Sequence[Check],
    unchecked: Mapping[str, str],
) -> Certificate:
    return Certificate(
        target.name,
        written.form,
        written.precision,
        tuple(checks),
        unchecked,
        opened.versions,
    )


def _dated(
    certificate: Certificate, source: Source, text: ComparedText | None
) -> Certificate:
    """Return a certificate that says when, from which model and on which text it was made."""
    files = files_of(source.folder)
    facts = SourceFacts(
        files.digest(), files.weights_sha256(), source.own.config.weights
    )
    return replace(
        certificate,
        text=text.about if text else "",
        notes=text.notes if text else (),
        date=datetime.now(UTC).date().isoformat(),
        weft=installed_version(),
        source=facts,
    )


def _with_example(check: Check, use: Callable[[], Check]) -> Check:
    """Return a check that did not pass with a text that comes out otherwise, where one does."""
    if check.name in _SHOW or check.name == "beam":
        return check
    try:
        example = use().first
    except (
        RuntimeError,
        ValueError,
    ) as error:  # what is damaged may not even be computed
        example = f"{type(error).__name__}: {error}"
    if not example:
        return check
    return replace(check, first=f"{check.first}; for example {example}")


def _text(
    source: Source, target: Target, data: Sequence[str], builtin: str
) -> ComparedText | None:
    """Return the text to compare on; None where there is none, if the target does without."""
    try:
        return compared_text(source, data, builtin)
    except UsageError:
        if data or target.needs_text:
            raise
        return None


def _idle(trial: Trial) -> dict[str, str]:
    """Return the checks that the task has no use for."""
    idle = {}
    if not trial.searched:
        idle = dict.fromkeys(("greedy", "beam"), "a classifier searches for nothing")
    elif not trial.references:
        idle["beam"] = "Weft samples from language models, without beams"
    return idle


def _left_behind(source: Source) -> Iterator[str]:
    """Yield what a pack has along that no form has."""
    files = files_of(source.folder)
    for name, what, use in (
        (GLOSSARY, "glossary", "terms"),
        (MEMORY, "memory", "units"),
    ):
        if files.listed(name) is not None:
            yield f"the {what} of the pack does not come along: this form has no {use}"
    if source.left_out:
        names = ", ".join(source.left_out)
        yield f"the model's marks ({names}) do not come along: it translates as without a tag"


def _refuse_failed(folder: Path, certificate: Certificate) -> None:
    failed = certificate.failed
    if failed is None:
        return
    raise FolderError(
        f"{folder}: the form {certificate.form} is not the same model: {CHECKS[failed.name]}: {failed.first}; "
        "nothing was written"
    )
