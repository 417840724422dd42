"""The lines that translate, classify and score write, each of one text, whoever has answered it."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.predict.classifier import Classification
    from weft.predict.language_model import LanguageModel
    from weft.predict.prediction import Prediction

# of a blank line, in place of what `TextScore.to_json` says
_NO_SCORE: dict[str, Any] = {
    "log_prob": None,
    "num_tokens": 0,
    "num_bytes": 0,
    "perplexity": None,
    "bits_per_byte": None,
    "pieces": [],
    "token_log_probs": [],
}


def translated_line(
    number: int, prediction: "Prediction", n_best: int, as_json: bool
) -> str:
    """Return the line of a translation; for several of a text, a line of each with its number."""
    if as_json:
        return json.dumps(prediction.to_json(), ensure_ascii=False) + "\n"
    if n_best == 1:
        return prediction.text + "\n"
    if not prediction.n_best:
        return f"{number}\t\t\n"
    rows = ""
    for alternative in prediction.n_best:
        text = alternative.text.replace("\t", " ")
        rows += f"{number}\t{alternative.score:.4f}\t{text}\n"
    return rows


def classified_line(
    answer: "Classification",
    all_labels: bool,
    as_json: bool,
    row: Mapping[str, Any] | None = None,
) -> str:
    """Return the line of a classification; as JSON with the `row` of the table, if it is one's."""
    if as_json:
        value = answer.to_json()
        if row is not None:
            value = {"row": row, **value}
        if not all_labels:
            del value["probabilities"]
        return json.dumps(value, ensure_ascii=False) + "\n"
    if not all_labels:
        return f"{answer.label}\t{answer.probability:.4f}\n"
    ranked = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
    cells = [f"{label} {probability:.4f}" for label, probability in ranked]
    return "\t".join(cells) + "\n"


def scored_line(
    model: "LanguageModel", line: str, as_json: bool
) -> tuple[str, dict[str, float]]:
    """Score a line; return what is written of it, and its log-probability and tokens, or that it is
    blank.

    A blank line keeps its place and has no score.
    """
    if not line.strip():
        nothing = {"text": line, **_NO_SCORE}
        return (json.dumps(nothing) if as_json else f"\t\t{line}") + "\n", {"blank": 1}
    (scored,) = model.score(line)
    sums = {"log_prob": scored.log_prob, "tokens": scored.num_tokens}
    if as_json:
        return json.dumps(scored.to_json(), ensure_ascii=False) + "\n", sums
    perplexity = f"{scored.perplexity:.2f}" if scored.num_tokens > 0 else ""
    return f"{scored.log_prob:.4f}\t{perplexity}\t{line}\n", sums
