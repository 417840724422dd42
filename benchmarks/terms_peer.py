"""A glossary's terms in Weft's search and in Sockeye's: `python benchmarks/terms_peer.py FOLDER
--sockeye PYTHON`.

FOLDER is a translator from English to German, whose weights both have; PYTHON is a Python that has
Sockeye 2.3.24 (see terms_sockeye.py; left out, Weft stands alone). The text is a part of Multi30k:
the sentences that have a term, an English noun and the one of its renderings in the training pairs
that the reference has once. Each sentence has a glossary of its own, and is translated alone. The
table has the share of terms that stand exactly once as a word, not at all, and more often, BLEU,
and seconds of CPU for all sentences. Also said is how many greedy translations of both are equal.
With --other each term is a rendering that neither the reference has nor the model without terms:
the table then also says how many left the word standing that the model would have written. By a
model that was trained with `data.terms`, the terms are also read in the source, alone and with the
search.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu
from side_by_side import DATA, refuse_missing

from weft.data.glossary import Entry, Glossary
from weft.engine.weights import named_arrays
from weft.predict.translator import TermsBy, Translator
from weft.tasks.opening import load_task

HERE = Path(__file__).resolve().parent
PARTS = "val", "test_2016_flickr"
WORD = re.compile(r"\w+")
LEAST_PAIRS = 5  # training pairs with a word and its rendering
FREQUENCIES = 10, 900  # how many training sources have a word
LEAST_DICE = 0.12
LEAST_SHARE = 0.3  # of a rendering's sentences that have the word in the source
MOST_RENDERINGS = 5
BEAM = 5
LARGE_BEAM = 20  # what Sockeye recommends for constraints
LENGTH_PENALTY = 1.0
SEARCH: dict[str, Any] = {"beam_size": BEAM, "length_penalty": LENGTH_PENALTY}
SEARCHED = "Weft, terms"
WAYS: dict[str, TermsBy] = {
    SEARCHED: "search",
    "Weft, terms read": "source",
    "Weft, terms read and searched": "both",
}


@dataclass(frozen=True)
class Demand:
    """A source word and what it becomes; in the place of what, if that is known."""

    word: str
    noun: str
    own: str = ""


@dataclass(frozen=True)
class Sentence:
    """A pair of texts, and terms of it."""

    source: str
    reference: str
    terms: tuple[Demand, ...]

    @property
    def glossary(self) -> Glossary:
        """Return the terms alone."""
        return Glossary(tuple(Entry((one.word,), (one.noun,)) for one in self.terms))


@dataclass(frozen=True)
class Outcome:
    """The translations of all sentences, and the seconds of CPU that they took."""

    name: str
    texts: Sequence[str]
    seconds: float


def read_pairs(name: str) -> list[tuple[str, str]]:
    """Read a part of Multi30k."""
    sides = []
    for language in ("en", "de"):
        path = DATA / "multi30k" / f"{name}.{language}"
        sides.append(path.read_text("utf-8").split("\n"))
    return list(zip(*sides, strict=True))


def renderings(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return English words that have several German renderings, nouns, with these."""
    words: Counter[str] = Counter()
    nouns: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for source, target in pairs:
        here = set(WORD.findall(source.lower()))
        there = set(WORD.findall(target))
        words.update(here)
        nouns.update(there)
        capitals = [noun for noun in there if noun[:1].isupper() and len(noun) > 3]
        together.update(product(here, capitals))
    found = defaultdict(list)
    lowest, highest = FREQUENCIES
    for (word, noun), count in together.items():
        dice = 2 * count / (words[word] + nouns[noun])
        is_usual = lowest <= words[word] <= highest and count >= LEAST_PAIRS
        if is_usual and dice > LEAST_DICE and count / nouns[noun] > LEAST_SHARE:
            found[word].append((dice, noun))
    return {
        word: [noun for _, noun in sorted(each, reverse=True)[:MOST_RENDERINGS]]
        for word, each in found.items()
        if len(each) > 1
    }


def with_terms(
    pairs: Sequence[tuple[str, str]], known: Mapping[str, Sequence[str]]
) -> list[Sentence]:
    """Return the pairs in which a word and one of its renderings stand once each."""
    sentences = []
    for source, reference in pairs:
        counts = Counter(WORD.findall(source.lower()))
        present = Counter(WORD.findall(reference))
        terms: dict[str, str] = {}  # by what they become, each once
        for word in WORD.findall(source):
            nouns = known.get(word.lower(), ())
            here = [noun for noun in nouns if present[noun] == 1]
            if counts[word.lower()] == 1 and len(here) == 1:
                terms.setdefault(here[0], word)
        if terms:
            demands = tuple(Demand(word, noun) for noun, word in terms.items())
            sentences.append(Sentence(source, reference, demands))
    return sentences


def with_others(
    sentences: Sequence[Sentence],
    known: Mapping[str, Sequence[str]],
    translations: Sequence[str],
) -> list[Sentence]:
    """Return the sentences with other terms: those that neither text has, where the translation has
    one of the others.
    """
    changed = []
    for sentence, translation in zip(sentences, translations, strict=True):
        written = Counter(WORD.findall(translation))
        present = {*written, *WORD.findall(sentence.reference)}
        demands: dict[str, Demand] = {}
        for term in sentence.terms:
            nouns = known[term.word.lower()]
            own = [noun for noun in nouns if written[noun] == 1]
            others = [noun for noun in nouns if noun not in present]
            if len(own) == 1 and others:
                demands.setdefault(others[0], Demand(term.word, others[0], own[0]))
        if demands:
            changed.append(replace(sentence, terms=tuple(demands.values())))
    return changed


def by_weft(
    name: str,
    sentences: Sequence[Sentence],
    translate: Callable[[Sentence], str],
) -> Outcome:
    """Translate each sentence alone."""
    for sentence in sentences[:5]:
        translate(sentence)
    begin = time.process_time()
    texts = [translate(sentence) for sentence in sentences]
    return Outcome(name, texts, time.process_time() - begin)


def weft_outcomes(model: Translator, sentences: Sequence[Sentence]) -> list[Outcome]:
    """Translate greedily, with a beam, and with that and each sentence's glossary in all ways."""

    def bound(sentence: Sentence, terms: TermsBy) -> str:
        reading = model.with_glossary(sentence.glossary, terms)
        return reading.translate(sentence.source, **SEARCH)[0].text

    ways = WAYS if model.takes_terms else {SEARCHED: WAYS[SEARCHED]}
    return [
        by_weft(
            "Weft, greedy",
            sentences,
            lambda one: model.translate(one.source, beam_size=1)[0].text,
        ),
        by_weft(
            "Weft, no terms",
            sentences,
            lambda one: model.translate(one.source, **SEARCH)[0].text,
        ),
        *(
            by_weft(name, sentences, partial(bound, terms=terms))
            for name, terms in ways.items()
        ),
    ]


RUNS: dict[str, dict[str, Any]] = {
    "Sockeye, greedy": {"beam": 1, "batch": 1, "terms": False},
    "Sockeye, no terms": {"beam": BEAM, "batch": 1, "terms": False},
    "Sockeye, terms": {"beam": BEAM, "batch": 1, "terms": True},
    f"Sockeye, terms, beam {LARGE_BEAM}": {
        "beam": LARGE_BEAM,
        "batch": 1,
        "terms": True,
    },
    "Sockeye, no terms, batches of 32": {"beam": BEAM, "batch": 32, "terms": False},
}


def sockeye_outcomes(
    python: str,
    runs: Sequence[str],
    task: Any,
    model: Translator,
    sentences: Sequence[Sentence],
) -> list[Outcome]:
    """Let Sockeye translate with the same weights and ids."""
    src, tgt = model.src_tokenizer, model.tgt_tokenizer
    weights = task.weights
    if weights.activation != "relu" or not weights.norm_first or weights.rotary:
        raise SystemExit(
            "the model has no counterpart in Sockeye: its block is another"
        )
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        arrays, job, answers = (
            Path(scratch, name) for name in ("weights.npz", "job.json", "answers.json")
        )
        np.savez(arrays, **dict(named_arrays(weights)))
        content = {
            "weights": str(arrays),
            "num_heads": weights.num_heads,
            "eps": weights.eps,
            "scale": weights.embedding_scale,
            "length_penalty": LENGTH_PENALTY,
            "sources": [src.encode(one.source) for one in sentences],
            "terms": [
                [tgt.encode(term.noun) for term in one.terms] for one in sentences
            ],
            "runs": [RUNS[name] for name in runs],
        }
        job.write_text(json.dumps(content), "utf-8")
        command = [python, str(HERE / "terms_sockeye.py"), str(job), str(answers)]
        env = {**os.environ, "PYTHONPATH": ""}
        subprocess.run(command, check=True, env=env)
        found = json.loads(answers.read_text("utf-8"))
    outcomes = []
    for name, answer in zip(runs, found, strict=True):
        texts = [tgt.decode(ids).strip() for ids in answer["ids"]]
        outcomes.append(Outcome(name, texts, answer["seconds"]))
    return outcomes


def row(outcome: Outcome, sentences: Sequence[Sentence], measure: float) -> str:
    """Return a row of the table; seconds also as a multiple of `measure`."""
    counts: Counter[int] = Counter()
    num_own = 0
    for sentence, text in zip(sentences, outcome.texts, strict=True):
        words = WORD.findall(text)
        counts.update(min(words.count(term.noun), 2) for term in sentence.terms)
        num_own += sum(term.own in words for term in sentence.terms)
    shares = [f"{counts[times] / counts.total():.1%}" for times in (1, 0, 2)]
    own = f"{num_own / counts.total():.1%}" if sentences[0].terms[0].own else ""
    references = [[sentence.reference for sentence in sentences]]
    bleu = sacrebleu.corpus_bleu(list(outcome.texts), references).score
    cells = [outcome.name, *shares, own, f"{bleu:.1f}", f"{outcome.seconds:.1f}"]
    return f"| {' | '.join(cells)} | {outcome.seconds / measure:.1f} |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", help="a translator from English to German")
    parser.add_argument("--sockeye", help="a Python that has Sockeye 2.3.24")
    parser.add_argument("--part", choices=PARTS, default=PARTS[0])
    parser.add_argument(
        "--other", action="store_true", help="terms that no one would have written"
    )
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument("--sentences", type=int, help="the first so many alone")
    parser.add_argument("--outputs", type=Path, help="a file for all translations")
    asked = parser.parse_args()
    parts = [
        DATA / "multi30k" / f"{part}.{language}"
        for part, language in product(("train", asked.part), ("en", "de"))
    ]
    refuse_missing(*parts)
    if asked.sockeye and not Path(asked.sockeye).is_file():
        raise SystemExit(f"{asked.sockeye} is absent")
    known = renderings(read_pairs("train"))
    sentences = with_terms(read_pairs(asked.part), known)[: asked.sentences]
    task = load_task(Path(asked.folder), "float32", "auto")
    model = task.predictor()
    if asked.other:
        plain = model.translate([one.source for one in sentences], **SEARCH)
        sentences = with_others(sentences, known, [one.text for one in plain])
    outcomes = weft_outcomes(model, sentences)
    measure = next(one.seconds for one in outcomes if one.name == SEARCHED)
    if asked.sockeye:
        outcomes += sockeye_outcomes(asked.sockeye, asked.runs, task, model, sentences)
    count = sum(len(sentence.terms) for sentence in sentences)
    print(f"{len(sentences)} sentences, {count} terms\n")
    print("| | once | absent | twice | own | BLEU | seconds | times Weft with terms |")
    print("|---|---|---|---|---|---|---|---|")
    for outcome in outcomes:
        print(row(outcome, sentences, measure))
    greedy = [one.texts for one in outcomes if one.name.endswith("greedy")]
    if len(greedy) > 1:
        same = sum(one == other for one, other in zip(*greedy, strict=True))
        print(f"\ngreedy translations that are equal: {same} of {len(sentences)}")
    if asked.outputs:
        texts = {one.name: one.texts for one in outcomes}
        written = json.dumps(texts, ensure_ascii=False, indent=1)
        asked.outputs.write_text(written, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
