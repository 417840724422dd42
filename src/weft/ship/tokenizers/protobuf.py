"""The few kinds of fields of a protocol buffer that a sentencepiece model has, as bytes.

Source of the encoding: protobuf.dev, "Encoding". Fields may come in any order; of a field that
comes twice the last counts, so that what is appended to a message changes it.
"""

import struct
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | bytes

_VARINT = 0
_LENGTH = 2
_FLOAT = 5


def field(number: int, value: Value) -> bytes:
    """Return a field of a message: an integer or truth value, a float of 32 bits, or a text, bytes
    or inner message.
    """
    if isinstance(value, float):
        return _varint(number << 3 | _FLOAT) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content


def message(fields: dict[int, Value]) -> bytes:
    """Return a message of fields, each by its number."""
    return b"".join(field(number, value) for number, value in fields.items())


def _varint(value: int) -> bytes:
    """Return seven bits in each byte, the lowest first; all but the last have the eighth bit."""
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)
