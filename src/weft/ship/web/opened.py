"""A page's model, opened: its arrays from its files, and what its own scripts compute in a
browser.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from weft.console import stages
from weft.ship.certificate.used import used_by_weft
from weft.ship.opened import Floats, Opened, Row, Wanted
from weft.ship.source import Source
from weft.ship.target import versions_of
from weft.ship.tensors import Array
from weft.ship.web.browser import Page
from weft.ship.web.page import read_page

_NO_BROWSER = "no browser could be started: it takes playwright and Chromium"


class OpenedFiles(Opened):
    """The files of a page, without a browser; what a person gets is what Weft makes of the same
    weights.
    """

    unchecked: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("ids", "logits", "greedy", "beam"), _NO_BROWSER
    )

    def __init__(self, source: Source, place: Path) -> None:
        self.source = source
        self.place = place

    @property
    def versions(self) -> Mapping[str, str]:
        return {}

    def arrays(self) -> Iterator[tuple[str, Array]]:
        yield from read_page(self.place).arrays()

    def use(self, texts: Sequence[str]) -> list[Any]:
        return used_by_weft(self.source.task, texts)


class OpenedInBrowser(OpenedFiles):
    """A page's scripts at work."""

    unchecked: ClassVar[Mapping[str, str]] = {}

    def __init__(self, source: Source, place: Path, page: Page) -> None:
        super().__init__(source, place)
        self.page = page
        page.evaluate(_LOAD)
        self.task = source.task.name

    @property
    def versions(self) -> Mapping[str, str]:
        return {"Chromium": self.page.version, **versions_of("playwright")}

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.page.evaluate("(text) => encoded(text)", text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.page.evaluate("(ids) => decoded(ids)", _plain(ids))
        return text

    def logits(self, row: Row) -> Floats:
        asked = [_plain(row.ids), _plain(row.tgt_in)]
        numbers = self.page.evaluate("(row) => logitsOf(...row)", asked)
        found = np.frombuffer(base64.b64decode(numbers), np.float32)
        length = len(row.tgt_in) or len(row.ids)
        is_text = self.task == "classification"
        return found if is_text else found.reshape(length, -1)

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        found = []
        for row in stages.each(rows, "rows"):
            asked = [_plain(row.ids), row.limit, beam_size]
            ids = self.page.evaluate("(row) => searched(...row)", asked)
            found.append(ids)
        return found

    def close(self) -> None:
        self.page.close()


def _plain(ids: Sequence[int]) -> list[int]:
    """Return ids as numbers of Python's."""
    return [int(number) for number in ids]


# the model by the page's own scripts, and what a certificate asks of it
_LOAD = """() => {
  const engine = weftEngine();
  const whole = new Uint8Array(weftModel.size);
  let at = 0;
  for (const part of weftParts) {
    const bytes = engine.bytesOf(part);
    whole.set(bytes, at);
    at += bytes.length;
  }
  const model = engine.loadModel(weftModel.card, whole.buffer);
  const { task } = weftModel.card;
  const src = model.tokenizers[0];
  const tgt = model.tokenizers.at(-1);

  window.encoded = (text) => [...src.encode(task === "language-modelling" ? text : engine.oneLine(text))];

  window.decoded = (ids) => {
    if (task === "translation") return tgt.decode(ids);
    const bytes = Uint8Array.from(ids.flatMap((id) => [...tgt.bytes(id)]));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  };

  window.logitsOf = (ids, written) => {
    if (task === "classification") return base64Of(Float32Array.from(model.logits(ids)));
    const transformer = model.model;
    const isTranslator = task === "translation";
    const read = isTranslator ? written : ids;
    const past = isTranslator ? transformer.start(transformer.encode(ids)) : transformer.start();
    const states = transformer.decode(read, read.map(() => past));
    return base64Of(transformer.output(states, read.length));
  };

  window.searched = (ids, limit, beamSize) => {
    if (task === "translation") return model.search(ids, { beamSize, lengthPenalty: 0 }).ids;
    const found = [];
    let { past, logits } = model.read(ids);
    while (found.length < limit) {
      for (const id of [0, 1, 2]) logits[id] = -Infinity;
      const newest = logits.indexOf(logits.reduce((most, logit) => Math.max(most, logit)));
      if (newest === 3) break;
      found.push(newest);
      logits = model.last(model.model.decode([newest], [past]));
    }
    return found;
  };

  function base64Of(floats) {
    const bytes = new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength);
    let letters = "";
    for (let from = 0; from < bytes.length; from += 32768) {
      letters += String.fromCharCode(...bytes.subarray(from, from + 32768));
    }
    return btoa(letters);
  }
}"""
