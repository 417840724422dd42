"""Every changed number is found: random changes of one number in the files of every form, by the
check of weights alone.

A form of `TARGETS` is tried in each of its precisions, with a model of each task that has a home
there. One whose `arrays` are not as they stand in its files has a row in `AS_WRITTEN`.
"""

import base64
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

import random_models
from pushed import of_which
from weft.errors import MissingPackage, UnfitPackage
from weft.ship.certificate.checks import check_weights
from weft.ship.ctranslate2 import model_file
from weft.ship.opened import Opened
from weft.ship.source import Source, open_source
from weft.ship.target import Asked, refuse_unfit
from weft.ship.targets import TARGETS, target_named
from weft.ship.tensors import Array, Arrays
from weft.ship.written import Written

QUICK, MANY = 5, 200
# of each task models that may have a home, the first one that has is taken
MODELS: dict[str, tuple[tuple[str, ...], ...]] = {
    "translation": (
        ("en-de",),
        ("en-de", 'tokenizer.kind="unigram"'),
        ("en-de-modern",),
    ),
    "language-modelling": (
        ("lm-modern", 'tokenizer.kind="bpe"', "tokenizer.leading_space=false"),
        ("lm-modern", 'tokenizer.kind="unigram"'),
    ),
    "classification": (("classify-modern",), ("imdb-classifier",)),
}
WEIGHTS_OF_A_PAGE = "weights-*.js"
BASE64 = "in base64"  # in the place of a member of a zip
FORMS = [
    (name, precision) for name in TARGETS for precision in target_named(name).precisions
]
# what another precision of theirs shows as well
ALSO = {("argos", "int8"), ("gguf", "bf16"), ("gguf", "f16")}


@dataclass(frozen=True)
class Form:
    """A model that was written in a form, and is opened there."""

    name: str
    source: Source
    place: Path
    written: Written
    opened: Opened

    def is_sound(self) -> bool:
        """Whether the check of weights finds nothing."""
        return check_weights(self.written, self.opened, self.source.arrays).is_passed

    def arrays(self) -> dict[str, Array]:
        """The arrays as they stand in the files; none changes with a file."""
        found = dict(self.opened.arrays())
        if self.name in AS_WRITTEN:
            found |= AS_WRITTEN[self.name](self.place)
        return {name: np.array(array) for name, array in found.items()}

    def array(self, name: str) -> Array:
        """One of them; nothing where the files can no longer be read."""
        with suppress(Exception):
            return self.arrays()[name]
        return np.zeros(0)


@cache
def sources(root: Path) -> dict[tuple[str, ...], Source]:
    """A tiny model of each recipe."""
    found = {}
    for number, model in enumerate(one for models in MODELS.values() for one in models):
        place = root / str(number)
        found[model] = open_source(
            random_models.write_folder(model[0], place, *model[1:])
        )
    return found


def forms_of(name: str, precision: str, root: Path) -> Iterator[Form]:
    """A model of each task, in a form that has a home for one."""
    target = target_named(name)
    models = sources(root)
    for ways in MODELS.values():
        home = next((way for way in ways if not target.why_not(models[way])), None)
        if home is None:
            continue
        place = Path(mkdtemp(dir=root))
        source = models[home]
        written = target.write(source, place, Asked(precision=precision))
        source = target.compared(source)
        yield Form(name, source, place, written, target.open(source, place, written))


def changed(array: Array, place: int, generator: Any) -> bytes:
    """The bytes of an array with another number: one step of whole ones, one bit of all others."""
    copy = array.flatten()
    if copy.dtype == np.int8:
        copy[place] += 1 if copy[place] < 0 else -1
    else:
        numbers = copy.view(f"u{copy.itemsize}")
        bit = int(generator.integers(8 * copy.itemsize))
        numbers[place] ^= numbers.dtype.type(1 << bit)
    return copy.tobytes()


def is_at(place: int, before: Array, after: Array) -> bool:
    """Whether an array is another one than before at this place, and there alone."""
    if (before.shape, before.dtype) != (after.shape, after.dtype):
        return False
    kind = f"u{before.itemsize}"
    differs = before.flatten().view(kind) != after.flatten().view(kind)
    return np.flatnonzero(differs).tolist() == [place]


def pieces_of(place: Path) -> Iterator[tuple[Path, str, bytes]]:
    """What may hold arrays: each file, or each member of a file that is a zip, or the weights in a
    script of a page.
    """
    for path in sorted(place.rglob("*")):
        if not path.is_file():
            continue
        if path.match(WEIGHTS_OF_A_PAGE):
            _, base, _ = path.read_text("ascii").split('"')
            yield path, BASE64, base64.b64decode(base)
            continue
        if not zipfile.is_zipfile(path):
            yield path, "", path.read_bytes()
            continue
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                yield path, member, archive.read(member)


def put(path: Path, member: str, content: bytes) -> None:
    """Write a file, a member of a zip, or the weights in a script anew."""
    if member == BASE64:
        before, _, after = path.read_text("ascii").split('"')
        base = base64.b64encode(content).decode()
        path.write_text(f'{before}"{base}"{after}', "ascii")
        return
    if not member:
        with path.open("r+b") as file:
            file.write(content)
        return
    with zipfile.ZipFile(path) as archive:
        members = {info: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for info, old in members.items():
            new = content if info.filename == member else old
            archive.writestr(info, new, zipfile.ZIP_STORED)


def models_in(place: Path) -> Arrays:
    """The arrays of the one model of CTranslate2 in a folder, or in a package there."""
    (content,) = (
        content
        for path, member, content in pieces_of(place)
        if Path(member or path).name == model_file.MODEL
    )
    return model_file.arrays_in(np.frombuffer(content, np.uint8), str(place))


# the arrays of a form's folder, where they are read as something else than they are written
AS_WRITTEN: dict[str, Callable[[Path], Arrays]] = dict.fromkeys(
    ("argos", "ctranslate2"), models_in
)


def places_of(old: bytes, name: str, content: bytes) -> Iterator[int]:
    """Where an array may stand in a file: behind its name first, as small ones are anywhere."""
    named = max(0, content.find(name.encode()))
    for first, last in ((named, len(content)), (0, named)):
        start = content.find(old, first, last)
        while start >= 0:
            yield start
            start = content.find(old, start + 1, last)


def is_found(form: Form, generator: Any) -> bool:
    """Change a number of an array, see that the change is in the files, ask the check, and take it
    back.
    """
    arrays = form.arrays()
    filled = [name for name, array in arrays.items() if array.size]
    name = filled[generator.integers(len(filled))]
    array = arrays[name]
    place = int(generator.integers(array.size))
    old = array.tobytes()
    new = changed(array, place, generator)
    # a file that names the array comes first
    pieces = sorted(
        pieces_of(form.place), key=lambda piece: name.encode() not in piece[2]
    )
    for path, member, content in pieces:
        for start in places_of(old, name, content):
            end = start + len(old)
            put(path, member, content[:start] + new + content[end:])
            has_landed = is_at(place, array, form.array(name))
            is_passed = has_landed and form.is_sound()
            put(path, member, content)
            if has_landed:
                return not is_passed
    raise AssertionError(f"{name} is not in the files as it is read")


def count_found(forms: Sequence[Form], count: int) -> int:
    """How many of so many changes are found, made in one form after the other."""
    generator = np.random.default_rng(count)
    for form in forms:
        assert form.is_sound()
    found = sum(is_found(forms[i % len(forms)], generator) for i in range(count))
    for form in forms:
        assert form.is_sound()
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forms")


@pytest.fixture
def forms(
    name: str, precision: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Form]:
    """Yield what `forms_of` does; skips the test where the form's packages are missing."""
    try:
        refuse_unfit(target_named(name), is_certified=True)
    except (MissingPackage, UnfitPackage) as error:
        pytest.skip(str(error))
    # numbers are read from the files of a page, whether it is open or not
    monkeypatch.setattr("weft.ship.web.target.open_scripts", lambda scripts: None)
    return forms_of(name, precision, root)


@pytest.mark.parametrize(
    ("name", "precision"),
    of_which(FORMS, *(form for form in FORMS if form not in ALSO)),
)
def test_a_changed_number_is_found(forms: Iterator[Form]) -> None:
    assert count_found([next(forms)], QUICK) == QUICK


@pytest.mark.long
@pytest.mark.parametrize(("name", "precision"), FORMS)
def test_every_changed_number_is_found(
    name: str, precision: str, forms: Iterator[Form]
) -> None:
    every = [*forms]
    found = count_found(every, MANY)
    print(f"{name}, {precision}: {found} of {MANY} found, {len(every)} models")
    assert found == MANY
