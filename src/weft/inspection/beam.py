"""A beam search as a tree: the prefixes that it kept, those that it dropped, and how they ended."""

from dataclasses import dataclass
from math import exp
from typing import Any, Literal

from weft.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from weft.decoding.decoder import Hypothesis
from weft.decoding.reference import beam_search
from weft.engine.batched import Steps
from weft.inspection.tokens import USUAL, Limits
from weft.predict.rows import most_tokens
from weft.predict.settings import BANNED
from weft.tasks.translation import Translation

Fate = Literal["goes on", "dropped", "ended", "open"]


@dataclass(frozen=True)
class Node:
    """A token of one or several hypotheses; `parent` is the number of the node before it, None at
    the start.

    `log_prob` is that of all tokens up to here, `probability` that of this token alone. `fate`:
    hypotheses go on from here; or none did, and the branch was dropped at the next step; or it
    ended here, with `score`, its log-probability by its length; or it was still open when the
    search had its answer. `is_best`: part of that answer.
    """

    parent: int | None
    step: int
    piece: str
    id: int
    log_prob: float
    probability: float
    fate: Fate
    score: float | None
    is_best: bool


@dataclass(frozen=True)
class BeamTree:
    """The nodes of one search, parents before children, those of a step by log-probability."""

    beam_size: int
    length_penalty: float
    nodes: list[Node]

    def to_data(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return {
            "beam_size": self.beam_size,
            "length_penalty": self.length_penalty,
            "nodes": [dict(vars(node)) for node in self.nodes],
        }


def grow_tree(
    task: Translation,
    own: Steps[Any],
    src: list[int],
    beam_size: int,
    limits: Limits = USUAL,
) -> BeamTree:
    """Search once more, by the model's own steps, and keep what the beam held at each of the first
    `limits.tgt_tokens`.
    """
    steps: list[tuple[list[Hypothesis], list[Hypothesis]]] = []
    decoding = task.config.decoding
    longest = most_tokens(decoding, len(src), task.config.model.max_len)

    ((best,),) = beam_search(
        own.step,
        own.prefill([src]),
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        max_lens=[longest],
        beam_size=beam_size,
        length_penalty=decoding.length_penalty,
        banned_ids=BANNED,
        watch=lambda live, ended: steps.append((live, ended)),
    )
    shown = steps[: limits.tgt_tokens]
    nodes = _nodes(shown, _ids_of(best), task.tokenizers[1])
    return BeamTree(beam_size, decoding.length_penalty, nodes)


def _ids_of(hypothesis: Hypothesis) -> tuple[int, ...]:
    """Return the ids of a hypothesis, the end symbol counted where it has one."""
    end = (EOS_ID,) if hypothesis.finished else ()
    return (*hypothesis.ids, *end)


def _nodes(
    steps: list[tuple[list[Hypothesis], list[Hypothesis]]],
    winner: tuple[int, ...],
    tokenizer: Tokenizer,
) -> list[Node]:
    """Return a node for each prefix that the search kept, told apart by their ids.

    A node goes on where another prefix begins with all of its ids.
    """
    kept = []
    for number, (live, ended) in enumerate(steps, start=1):
        ranked = sorted([*live, *ended], key=lambda each: -each.log_prob)
        kept += [(number, _ids_of(each), each) for each in ranked]
    numbers = {ids: number for number, (_, ids, _) in enumerate(kept)}
    parents = {ids[:-1] for _, ids, _ in kept}

    def fate(step: int, ids: tuple[int, ...]) -> Fate:
        if ids[-1] == EOS_ID:
            return "ended"
        if ids in parents:
            return "goes on"
        return "open" if step == len(steps) else "dropped"

    return [
        Node(
            parent=numbers.get(ids[:-1]),
            step=step,
            piece=tokenizer.pieces(list(ids))[-1],
            id=ids[-1],
            log_prob=hypothesis.log_prob,
            probability=exp(hypothesis.token_log_probs[-1]),
            fate=fate(step, ids),
            score=hypothesis.score if hypothesis.finished else None,
            is_best=winner[: len(ids)] == ids,
        )
        for step, ids, hypothesis in kept
    ]
