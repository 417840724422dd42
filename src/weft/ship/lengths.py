"""The length of outputs: the penalty and the limit of other programs, by Weft's own."""

# tokens of a usual output, the end counted
USUAL_LEN = 20


def penalty_by_length(length_penalty: float, usual_len: int = USUAL_LEN) -> float:
    """Return the exponent of a program that divides by length ** a, for Weft's.

    Weft divides by ((5 + length) / 6) ** a (Wu et al. 2016, equation 14). Both punish one token
    more alike at a length n where the other's exponent is a n / (5 + n), the derivative of either
    logarithm; n is that of a usual output. It is one number for all models, so that the same model
    is shipped with the same settings, whatever it was compared on.
    """
    share = usual_len / (5 + usual_len)
    return length_penalty * share


def most_continued(max_new_tokens: int, window_len: int) -> int:
    """Return a fixed limit on what a language model adds to a beginning: that of its recipe, or
    half of the window, so that with a beginning of the other half all is within what was trained.
    """
    half = window_len // 2
    most = min(half, max_new_tokens)
    return max(1, most)
