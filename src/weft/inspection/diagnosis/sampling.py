"""The part of a text that a model is tried on."""

from dataclasses import replace

from weft.data.documents import Documents

MOST_ROWS = 400  # of a text are looked at, spread over all of it
FEW_GIVEN = 20  # rows of a text from which on what is seen there is hardly chance
MOST_CHARACTERS = 20_000  # of documents, of which one may be a whole library


def beginnings(documents: Documents) -> Documents:
    """Return the beginnings of some documents, equally long, together MOST_CHARACTERS at most."""
    some = documents.sample(MOST_ROWS)
    most = MOST_CHARACTERS // len(some)
    return replace(some, texts=[document[:most] for document in some.texts])
