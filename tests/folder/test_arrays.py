"""Reading safetensors: compared with the library of its authors, on sound and damaged files."""

import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load, save

from weft.errors import FolderError
from weft.folder.arrays import arrays_of, stored_arrays

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.arange(-4, 4, dtype=np.int8),
    "c": np.zeros((0, 3), np.float32),
    "d": np.arange(3, dtype=np.int64),
    "e": np.array(2.5, np.float32),
}
SOUND = save(ARRAYS, {"made": "here"})
PLACE = Path("x.safetensors")


def with_header(header: object) -> bytes:
    content = json.dumps(header).encode()
    (length,) = struct.unpack("<Q", SOUND[:8])
    return struct.pack("<Q", len(content)) + content + SOUND[8 + length :]


def is_read(content: bytes) -> bool:
    try:
        arrays_of(memoryview(content), PLACE)
    except FolderError as error:
        said = str(error)
    else:
        return True
    assert said.startswith("x.safetensors: not a sound safetensors file (")
    assert len(said) < 200
    return False


def is_read_by_its_authors(content: bytes) -> bool:
    try:
        load(content)
    except (SafetensorError, ValueError, KeyError):
        return False
    return True


def test_a_sound_file_is_read_as_its_authors_read_it() -> None:
    found = arrays_of(memoryview(SOUND), PLACE)
    wanted = load(SOUND)
    assert found.keys() == wanted.keys() == ARRAYS.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert np.array_equal(found[name], array)
        assert not found[name].flags.writeable


def test_nothing_is_read_that_its_authors_refuse() -> None:
    """Of thousands of files with damaged headers, most of which both refuse."""
    draws = random.Random(7)
    (length,) = struct.unpack("<Q", SOUND[:8])
    counts = {True: 0, False: 0}
    for _ in range(4000):
        content = bytearray(SOUND)
        for _ in range(draws.choice((1, 1, 2))):
            content[draws.randrange(8 + length)] = draws.choice(b'0123456789,[]{}":FI ')
        damaged = bytes(content[: draws.choice((len(content), len(content) - 1))])
        read = is_read(damaged)
        counts[read] += 1
        assert not read or is_read_by_its_authors(damaged)
    assert min(counts.values()) > 20


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2, 2]},
        {"shape": [2, 3.0]},
        {"shape": [2, True]},
        {"shape": [-2, -3]},
        {"shape": [2**62, 0]},
        {"shape": [1] * 40},
        {"shape": 6},
        {"dtype": "F64"},
        {"dtype": ["F32"]},
        {"dtype": "PICKLE"},
        {"data_offsets": [0]},
        {"data_offsets": [24, 0]},
        {"data_offsets": [0, 24, 24]},
    ],
    ids=str,
)
def test_an_entry_that_says_something_else_is_refused(
    change: dict[str, object],
) -> None:
    (length,) = struct.unpack("<Q", SOUND[:8])
    header = json.loads(SOUND[8 : 8 + length])
    assert is_read(with_header(header))
    header["a"] |= change
    assert not is_read(with_header(header))


def test_a_name_twice_is_refused() -> None:
    entry = '{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = f'{{"a":{entry},"a":{entry}}}'.encode()
    assert not is_read(struct.pack("<Q", len(header)) + header)


def test_a_type_that_no_model_has_is_named() -> None:
    content = save({"a": np.zeros(2, np.float64)})
    assert stored_arrays(memoryview(content), PLACE)["a"].kind == "F64"
    with pytest.raises(FolderError, match="'a' is F64"):
        arrays_of(memoryview(content), PLACE)


def test_an_array_where_no_number_can_lie_is_copied() -> None:
    """A file of ours has large numbers first; another one need not."""
    entry = {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]}
    other = {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]}
    header = json.dumps({"a": entry, "b": other}).encode().ljust(128)
    numbers = np.array([1.5, -2], np.float32)
    content = struct.pack("<Q", 128) + header + b"\7" + numbers.tobytes()
    found = arrays_of(memoryview(content), PLACE)
    assert found["b"].flags.aligned
    assert found["b"].tolist() == [1.5, -2]
