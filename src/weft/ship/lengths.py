"""The length of outputs: the penalty and the limit of other programs, by Weft's own."""

from weft.config import DecodingSection

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


def most_new_tokens(decoding: DecodingSection, src_len: int, max_len: int) -> int:
    """Return a fixed limit on new tokens for programs whose limit knows no source: that of the
    longest source, of `src_len` ids, within the model's positions.
    """
    tokens = decoding.max_len_ratio * src_len
    by_source = int(tokens) + decoding.max_len_extra
    by_positions = max_len - 1
    return max(1, min(by_positions, by_source))
