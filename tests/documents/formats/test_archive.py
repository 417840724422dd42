"""Archives: what is untouched stays, what is hostile is refused before it is unpacked."""

from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest

from weft.documents.formats.office import archive
from weft.documents.formats.office.archive import read_archive
from weft.errors import UsageError


def zipped(members: dict[str, bytes], stored: str = "") -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w") as out:
        for name, content in members.items():
            info = ZipInfo(name, (2020, 1, 2, 3, 4, 6))
            info.compress_type = ZIP_STORED if name == stored else ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            out.writestr(info, content)
    return buffer.getvalue()


def test_only_what_changes_changes() -> None:
    content = zipped(
        {"mimetype": b"x/y", "a.xml": b"<a/>", "b/": b"", "b/c.png": b"\0" * 99},
        "mimetype",
    )
    found = read_archive(content, "a.docx")
    assert found.written({}) == content
    again = read_archive(found.written({"a.xml": b"<b/>", "new": b"n"}), "a.docx")
    assert [info.filename for info in again.infos] == [
        *("mimetype", "a.xml", "b/", "b/c.png", "new"),
    ]
    assert again.infos[0].compress_type == ZIP_STORED
    assert again.infos[0].date_time == (2020, 1, 2, 3, 4, 6)
    assert again.members["a.xml"] == b"<b/>"
    assert again.members["b/c.png"] == b"\0" * 99


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(content: bytes) -> str:
        with pytest.raises(UsageError) as caught:
            read_archive(content, "a.docx")
        return str(caught.value)

    assert said(b"no zip").startswith("a.docx: is not a whole archive of this format")
    whole = zipped({"a": b"x" * 1000})
    assert "is not a whole archive" in said(whole[: len(whole) // 2])
    damaged = bytearray(whole)
    damaged[33] ^= 255
    assert "is not a whole archive" in said(bytes(damaged))
    assert "has macros" in said(zipped({"word/vbaProject.bin": b"x"}))
    assert "leads out" in said(zipped({"../a": b"x"}))
    assert "1,024 times as large" in said(zipped({"a": b"\0" * (2 << 20)}))
    encrypted = bytearray(whole)
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    assert "is encrypted" in said(bytes(encrypted))
    monkeypatch.setattr(archive, "MOST_MEMBERS", 1)
    assert "has 2 members" in said(zipped({"a": b"", "b": b""}))
    monkeypatch.setattr(archive, "MOST_BYTES", 10)
    assert "is 11 bytes unpacked" in said(zipped({"a": b"0123456789a"}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_is_refused() -> None:
    buffer = BytesIO()
    with ZipFile(buffer, "w") as out:
        out.writestr("a", b"1")
        out.writestr("a", b"2")
    with pytest.raises(UsageError, match="has the member a twice"):
        read_archive(buffer.getvalue(), "a.docx")
