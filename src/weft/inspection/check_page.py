"""The report of the data check, as one page that needs only a browser, or as its data."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from weft.data.check.finding import MOST_PLACES, Example, Finding, counted
from weft.data.checkup import Checkup
from weft.folder import durable
from weft.inspection.assets import asset, fingerprint, stylesheet
from weft.inspection.suffixes import FORMATS, refuse_other_suffixes

_WORDS = {"fatal": "Fatal", "warning": "Warning", "note": "Note"}
_MOST_BARS = 24
# around what is marked, while it becomes HTML: an excerpt has no such characters
_BEGIN, _END = "\x02", "\x03"


def write_checkup(checkup: Checkup, path: Path) -> None:
    """Write a page (.html) or data (.json), whole or not at all.

    Raises UsageError for another suffix, FolderError where it cannot be written.
    """
    refuse_other_suffixes(path, FORMATS)
    if path.suffix.lower() == ".html":
        content = page(checkup)
    else:
        content = json.dumps(checkup.to_json(), ensure_ascii=False) + "\n"
    durable.write_text(path, content)


def page(checkup: Checkup) -> str:
    """Return the whole page; no script, and no style but its own, known by its hash."""
    style = stylesheet("check.css")
    policy = f"default-src 'none'; style-src '{fingerprint(style)}'; base-uri 'none'; form-action 'none'"
    parts = {
        "policy": policy,
        "style": style,
        "verdict": _verdict(checkup),
        "findings": "\n".join(map(_finding, checkup.findings))
        or "<p>Nothing was found.</p>",
        "parts": "\n".join(
            _part(name, numbers) for name, numbers in checkup.parts.items()
        ),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("check.html"))


def _verdict(checkup: Checkup) -> str:
    names = {"fatal": "fatal findings", "warning": "warnings", "note": "notes"}
    counts = [
        counted(count, names[severity]) for severity, count in checkup.counts().items()
    ]
    words = f"{checkup.words().capitalize()}."
    kind = "fatal" if checkup.is_fatal else "sound"
    notes = "".join(f"<p>{escape(note)}</p>" for note in checkup.notes)
    return f'<div class="verdict {kind}"><p><b>{words}</b> {", ".join(counts)}.</p>{notes}</div>'


def _finding(finding: Finding) -> str:
    examples = "".join(map(_example, finding.examples))
    return f"""<article class="{finding.severity}">
  <h3><span class="severity">{_WORDS[finding.severity]}</span> <code>{escape(finding.code)}</code>
    <span class="of">{escape(finding.part)}</span></h3>
  <p>{escape(finding.message)}</p>
  <p class="remedy">{escape(finding.remedy)}</p>
  {f"<dl>{examples}</dl>" if examples else ""}
  {_lines(finding) if finding.places else ""}
</article>"""


def _lines(finding: Finding) -> str:
    """List the lines of a finding's rows, folded away until one asks for them."""
    count = len(finding.places)
    which = "the first " if count == MOST_PLACES else ""
    files = [
        f"<p>{escape(name)}: {_runs(numbers)}</p>"
        for name, numbers in finding.lines().items()
    ]
    title = f"{which}{counted(count, 'lines')}"
    return f"<details><summary>{title}</summary>{''.join(files)}</details>"


def _runs(numbers: Sequence[int]) -> str:
    """Write numbers in their order, those that follow each other as the first and the last."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs
    )


def _example(example: Example) -> str:
    about = f" <b>{escape(example.about)}</b>" if example.about else ""
    parts = escape(example.with_marks(_BEGIN, _END))
    text = parts.replace(_BEGIN, "<mark>").replace(_END, "</mark>")
    return f"<dt>{escape(example.where)}{about}</dt><dd>{text}</dd>"


def _part(name: str, numbers: Mapping[str, Any]) -> str:
    facts = [f"{numbers['rows']:,} rows", *numbers["files"], numbers["signature"]]
    facts += [
        f"{count:,} dropped: {reason}" for reason, count in numbers["dropped"].items()
    ]
    listed = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    languages = numbers.get("languages", {})
    columns = "".join(
        _column(column, found, languages)
        for column, found in numbers["columns"].items()
    )
    labels = _bars("Labels", numbers["labels"].items()) if "labels" in numbers else ""
    title = {"train": "Training text", "dev": "Dev text", "test": "Test text"}[name]
    charts = f'<div class="columns">{columns}{labels}</div>'
    return f'<section><h2>{title}</h2><ul class="facts">{listed}</ul>{charts}</section>'


def _column(name: str, column: Mapping[str, Any], languages: Mapping[str, str]) -> str:
    title = f"{name}, {languages[name]}" if name in languages else name
    scripts = [
        (script.capitalize(), count) for script, count in column["scripts"].items()
    ]
    return (
        _histogram(f"{title}: characters", column["characters"])
        + _histogram(f"{title}: words", column["words"])
        + _bars(f"{title}: letters by script", scripts)
    )


def _histogram(title: str, lengths: Mapping[str, Any]) -> str:
    bins = [(_range(b["from"], b["to"]), b["count"]) for b in lengths["histogram"]]
    about = (
        f"{lengths['total']:,} in all; shortest {lengths['shortest']:,}, median {lengths['median']:,.0f}, "
        f"longest {lengths['longest']:,}"
    )
    return _bars(title, bins, about)


def _range(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _bars(title: str, counts: Iterable[tuple[str, int]], about: str = "") -> str:
    """Return a small bar chart: a row for each name, as wide as its count."""
    rows = list(counts)[:_MOST_BARS]
    most = max((count for _, count in rows), default=1) or 1
    return (
        f"<figure><figcaption>{escape(title)}</figcaption><table>{''.join(_bar_rows(rows, most))}</table>"
        f"{f'<p>{escape(about)}</p>' if about else ''}</figure>"
    )


def _bar_rows(rows: list[tuple[str, int]], most: int) -> Iterator[str]:
    for name, count in rows:
        width = 100 * count / most
        bar = f'<rect width="{width:.2f}%" height="10" rx="1"/>'
        drawing = f'<svg width="100%" height="10" aria-hidden="true">{bar}</svg>'
        yield f'<tr><th scope="row">{escape(name)}</th><td class="bar">{drawing}</td><td>{count:,}</td></tr>'
