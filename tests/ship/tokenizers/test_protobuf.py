"""Fields of protocol buffers, byte by byte: the first three are those of protobuf.dev."""

from weft.ship.tokenizers.protobuf import field, message


def test_fields_are_the_bytes_that_the_format_says() -> None:
    assert field(1, 150) == bytes.fromhex("089601")
    assert field(2, "testing") == bytes.fromhex("120774657374696e67")
    assert field(3, message({1: 150})) == bytes.fromhex("1a03089601")
    assert field(2, -1.0) == bytes.fromhex("15000080bf")
    assert field(35, True) == bytes.fromhex("980201")
    assert message({1: "a", 3: 2}) == bytes.fromhex("0a01611802")
