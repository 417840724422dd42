"""The checks of a certificate: a model in another form beside the one that it was made from.

Each gives what it found as a `Check`; none raises for a difference.
"""

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.console import stages
from weft.data.tokenizer import Tokenizer
from weft.ship.certificate.reference import Reference
from weft.ship.certificate.report import Check
from weft.ship.certificate.trial import Trial
from weft.ship.opened import Opened, Wanted
from weft.ship.tensors import Array, Arrays
from weft.ship.written import Written

_SHOWN = 60  # characters of a text in a message


def check_weights(written: Written, opened: Opened, arrays: Arrays) -> Check:
    """Compare every number in the target's files with Weft's, bit for bit, both ways.

    What is in the files must be what is made of Weft's weights, and Weft's weights must be found in
    the files again: those of a `loose` tensor to its tolerance, all but numbers that are `hidden`,
    which are counted.
    """
    tensors = {tensor.name: tensor for tensor in written.tensors}
    missing = dict.fromkeys(tensors)
    wanting = set(arrays)
    compared = equal = num_hidden = 0
    largest = 0.0
    first = ""
    for name, array in opened.arrays():
        if name not in missing:
            first = first or f"{name} is no array of this form, or comes twice"
            continue
        del missing[name]
        tensor = tensors[name]
        expected = tensor.made(arrays)
        compared += expected.size
        same = count_same(array, expected)
        equal += same
        if same < expected.size:
            first = first or first_difference(name, array, expected)
            continue
        for own, part in tensor.found(array):
            loose = written.loose.get(name, 0.0)
            is_hidden = np.isnan(part)
            num_hidden += int(is_hidden.sum())
            if part.shape == arrays[own].shape:
                part = np.where(is_hidden, arrays[own], part)  # noqa: PLW2901
            difference = largest_difference(part, arrays[own])
            largest = max(largest, difference)
            if difference > loose or part.shape != arrays[own].shape:
                first = first or first_difference(own, part, arrays[own])
            wanting.discard(own)
    for name in itertools.chain(missing, sorted(wanting)):
        first = first or f"{name} is not in the files"
    num_own = sum(array.size for array in arrays.values())
    rounded = f"as rounding to {written.precision} gives them"
    return Check(
        "weights",
        compared,
        equal,
        "numbers",
        is_passed=not first,
        first=first,
        about=_about_own(written.why_loose, largest, num_own, num_hidden),
        equal_how=rounded if written.is_rounded else "equal",
    )


def check_ids(written: Written, opened: Opened, trial: Trial) -> Check:
    """Compare the ids of texts, and the texts of ids.

    A text that the program is known to read or to write otherwise may differ; those are counted.
    """
    equal = 0
    first = ""
    known: Counter[str] = Counter()
    for text, ids in trial.texts.items():
        expected = [*written.before, *written.ids.to("src", ids), *written.after]
        found = opened.encode(text)
        if list(found) == expected:
            equal += 1
        elif why := opened.reads_otherwise(text):
            known[why] += 1
        else:
            first = first or (
                f"{_shown(text)} has the ids {_some(found)}, not {_some(expected)}"
            )
    for row, wanted in trial.written.items():
        text = opened.decode(written.ids.to("tgt", row).tolist())
        if text == wanted:
            equal += 1
        elif why := opened.writes_otherwise(wanted):
            known[why] += 1
        else:
            first = first or (
                f"the ids {_some(row)} are the text {_shown(text)}, not {_shown(wanted)}"
            )
    compared = len(trial.texts) + len(trial.written)
    told = (f"{count:,} differ for {why}" for why, count in known.most_common())
    return Check(
        "ids",
        compared,
        equal,
        "texts",
        is_passed=equal + known.total() == compared,
        first=first,
        about=", ".join(told),
    )


def check_logits(
    written: Written,
    opened: Opened,
    trial: Trial,
    reference: Reference,
    read: Callable[[Sequence[int]], str],
    tolerance: float | None,
) -> Check:
    """Compare the logits of rows, forced to read the same ids; without a tolerance only measure
    those that are numbers.

    `read` gives the text of a row.
    """
    largest = 0.0
    first = ""
    allowed = sys.float_info.max if tolerance is None else tolerance
    rows = [*trial.rows, *trial.probes]
    places = 0
    equal = 0
    for row in stages.each(rows, "rows"):
        own = written.own_logits(opened.logits(written.to_target(row)))
        found = written.without_banned(own)
        wanted: NDArray[Any] = written.without_banned(reference.logits(row))
        if opened.computes_log_probs:
            wanted = log_softmax(wanted)
        difference = np.abs(found.astype(np.float64) - wanted)
        most = float(difference.max())
        if not np.isfinite(most):
            most = float("inf")
        places += len(np.atleast_2d(wanted))
        equal += int((found.argmax(-1) == wanted.argmax(-1)).sum())
        if most > max(largest, allowed):
            first = f"{_shown(read(row.ids))} has logits that differ by {most:.1e}"
        if written.lets_through(own):
            first = first or "an id that Weft never writes could be written"
        largest = max(largest, most)
    agreement = f"the same best token at {100 * equal / max(places, 1):.2f} %"
    about = f"{written.approximate}, {agreement}" if written.approximate else agreement
    return Check(
        "logits",
        places,
        equal,
        "positions",
        is_passed=not first,
        largest=largest,
        tolerance=tolerance,
        first=first,
        about="" if tolerance else about,
    )


def check_search(
    written: Written,
    opened: Opened,
    trial: Trial,
    reference: Reference,
    tokenizers: Sequence[Tokenizer],
    beam_size: int,
    is_exact: bool,
) -> Check:
    """Compare what is found for rows, under the same limit for each: greedily, or by a beam."""
    rows = trial.searched
    wanted = reference.search(rows, beam_size)
    asked = [Wanted(written.ids_of_source(row.ids), row.limit) for row in rows]
    found = opened.search(asked, beam_size)
    own = [written.ids.back("tgt", ids).tolist() for ids in found]
    different = [i for i, ids in enumerate(own) if list(ids) != list(wanted[i])]
    first = ""
    if different:
        i = different[0]
        text = tokenizers[0].decode(rows[i].ids)
        tgt = tokenizers[-1]
        first = f"{_shown(text)} gives {_shown(tgt.decode(own[i]))}, not {_shown(tgt.decode(wanted[i]))}"
    return Check(
        "greedy" if beam_size == 1 else "beam",
        len(rows),
        len(rows) - len(different),
        "rows",
        is_passed=not (different and is_exact),
        first=first,
        about="" if beam_size == 1 else f"beam size {beam_size}",
    )


def check_use(
    opened: Opened,
    texts: Sequence[str],
    wanted: Sequence[Any],
    scores: Callable[[Sequence[Any]], Mapping[str, float]],
) -> Check:
    """Compare what a person gets from the model as it is shipped with what Weft gives; equality is
    not required, as other programs search by other rules.
    """
    found = opened.use(texts)
    pairs = list(zip(texts, wanted, found, strict=True))
    different = [pair for pair in pairs if pair[1] != pair[2]]
    first = ""
    if different:
        text, own, other = different[0]
        first = f"{_shown(text)} gives {_shown(str(other))}, not {_shown(str(own))}"
    return Check(
        "use",
        len(pairs),
        len(pairs) - len(different),
        "texts",
        is_passed=True,
        first=first,
        scores={
            **{f"{name} of Weft": value for name, value in scores(wanted).items()},
            **{f"{name} of this form": value for name, value in scores(found).items()},
        },
    )


def count_same(found: Array, wanted: Array) -> int:
    """Count the numbers that are equal to the last bit: 0 and -0 differ, a NaN equals itself."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return 0
    return int((_bits(found) == _bits(wanted)).sum())


def first_difference(name: str, found: Array, wanted: Array) -> str:
    """Say where two arrays differ first."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return (
            f"{name} is {found.dtype} {found.shape}, not {wanted.dtype} {wanted.shape}"
        )
    places = np.argwhere(_bits(found) != _bits(wanted))
    if not len(places):
        return ""
    place = tuple(places[0].tolist())
    return f"{name}{list(place)} is {found[place]!s}, not {wanted[place]!s}"


def log_softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Compute the logarithm of the softmax of each row, in float64."""
    shifted = logits.astype(np.float64)
    shifted = shifted - shifted.max(-1, keepdims=True)
    total: NDArray[np.float64] = np.exp(shifted).sum(-1, keepdims=True)
    return shifted - np.log(total)


def _about_own(why: str, largest: float, num_own: int, num_hidden: int) -> str:
    """Say how many numbers the model itself has, how far off those in the files are at most, if
    any, and how many are not there.
    """
    own = f"the model's {num_own:,}"
    about = f"{own} among them"
    if largest:
        about = f"{why}: at most {largest:.1e} from {own}"
    return f"{about}, of which {num_hidden:,} are not there" if num_hidden else about


def _bits(array: Array) -> NDArray[np.uint8 | np.uint16 | np.uint32 | np.uint64]:
    """Return an array's numbers as whole ones of the same size."""
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return bits.reshape(array.shape)  # a single number has become a row of one


def largest_difference(found: Array, wanted: Array) -> float:
    """Return the largest difference; 0.0 only where all bits are equal."""
    if found.shape != wanted.shape:
        return float("inf")
    if count_same(found, wanted) == wanted.size:
        return 0.0
    difference = float(np.abs(found.astype(np.float64) - wanted).max())
    return difference or float(np.finfo(np.float32).tiny)


def _some(ids: Sequence[int]) -> list[int]:
    return [int(number) for number in ids[:12]]


def _shown(text: str) -> str:
    """Return a text in quotes, cut where it is long."""
    cut = f"{text[:_SHOWN]}..." if len(text) > _SHOWN else text
    return repr(cut)
