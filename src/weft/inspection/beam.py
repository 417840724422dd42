"""A beam search as a tree: which beginnings it kept, which it dropped and when, and what ended
how.
"""

from dataclasses import dataclass
from math import exp
from typing import Any, Literal

import torch

from weft.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from weft.decoding.decoder import Hypothesis
from weft.decoding.reference import beam_search
from weft.predict.rows import output_limit
from weft.predict.settings import BANNED
from weft.tasks.translation import Translation

Fate = Literal["goes on", "dropped", "ended", "open"]


@dataclass(frozen=True)
class Node:
    """One token of one or several hypotheses; `parent` is the number of the node before it, None at
    the start.

    `log_prob` is that of all tokens up to here, `probability` that of this token alone. `fate`:
    hypotheses go on from here; or none did, and the branch was dropped at the next step; or it
    ended here, with `score`, its log-probability by its length; or it was still open when the
    search had its answer. `is_best`: part of that.
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

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary, numbers rounded to four decimals."""
        return {
            "beam_size": self.beam_size,
            "length_penalty": self.length_penalty,
            "nodes": [
                {
                    **vars(node),
                    "log_prob": round(node.log_prob, 4),
                    "probability": round(node.probability, 4),
                    "score": None if node.score is None else round(node.score, 4),
                }
                for node in self.nodes
            ],
        }


def grow_tree(task: Translation, src: list[int], beam_size: int) -> BeamTree:
    """Search once more, by the model's own steps, and keep what the beam held at each."""
    steps: list[tuple[list[Hypothesis], list[Hypothesis]]] = []
    device, decoding = torch.device(task.machine.device), task.config.decoding
    longest = output_limit(decoding, len(src), task.model.max_len)

    def step(newest: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        states, longer = task.model.decode(newest[:, None], cache)
        return task.model.output(states[:, -1]), longer

    ((best,),) = beam_search(
        step,
        task.model.prefill(torch.tensor([src], device=device)),
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        max_lens=torch.tensor([longest], device=device),
        beam_size=beam_size,
        length_penalty=decoding.length_penalty,
        banned_ids=BANNED,
        watch=lambda live, ended: steps.append((live, ended)),
    )
    winner = (*best.ids, EOS_ID) if best.finished else tuple(best.ids)
    return BeamTree(
        beam_size, decoding.length_penalty, _nodes(steps, winner, task.tokenizers[1])
    )


def _nodes(
    steps: list[tuple[list[Hypothesis], list[Hypothesis]]],
    winner: tuple[int, ...],
    tokenizer: Tokenizer,
) -> list[Node]:
    """Every beginning that was kept is told by its ids; a node goes on where another begins with
    all of its.
    """
    kept = [
        (number, (*h.ids, EOS_ID) if h.finished else tuple(h.ids), h)
        for number, (live, ended) in enumerate(steps, start=1)
        for h in sorted([*live, *ended], key=lambda h: -h.log_prob)
    ]
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
            log_prob=h.log_prob,
            probability=exp(h.token_log_probs[-1]),
            fate=fate(step, ids),
            score=h.score if h.finished else None,
            is_best=winner[: len(ids)] == ids,
        )
        for step, ids, h in kept
    ]
