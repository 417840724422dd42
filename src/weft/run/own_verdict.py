"""The verdict of a run on its own model, after a diagnosis that found nothing."""

from pathlib import Path

from weft.folder.layout import RunFolder
from weft.run.judging.judgement import DRAFT, NOT_YET
from weft.run.record import read_verdict


def own_verdict(folder: Path) -> list[str]:
    """Return why the run called its model less than usable, to follow "nothing found", and lines on
    what would help; an empty text alone where it did not.
    """
    verdict = read_verdict(RunFolder(folder).verdict)
    judgement = (verdict and verdict.judgement) or {}
    word = judgement.get("verdict")
    reasons = judgement.get("says")
    if word not in (DRAFT, NOT_YET) or not reasons:
        return [""]
    said = f"; by its run it is {word}: {reasons[0]}"
    helps = judgement.get("helps") or ()
    return [said, *(f"  what would help: {one}" for one in helps)]
