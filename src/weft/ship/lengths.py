"""The length of outputs: the penalty and the limit of other programs, by Weft's own."""

from weft.folder.model_folder import FolderConfig, TranslationConfig

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


def of_other_lengths(program: str, config: FolderConfig) -> str:
    """Say how a program whose beam has another formula chooses otherwise than Weft; "" of a model
    that has no beam.
    """
    if not isinstance(config, TranslationConfig) or config.decoding.beam_size == 1:
        return ""
    penalty = config.decoding.length_penalty
    other = round(penalty_by_length(penalty), 4)
    return (
        f"{program} divides the log-probability of a translation by length^{other:g}, Weft by "
        f"((5 + length) / 6)^{penalty:g}, so that a beam of {config.decoding.beam_size} may choose another one there."
    )


def of_no_beam(program: str, config: FolderConfig) -> str:
    """Say that a program takes the most probable token at each step, where Weft has a beam; "" of a
    model that has none.
    """
    if not isinstance(config, TranslationConfig) or config.decoding.beam_size == 1:
        return ""
    return (
        f"{program} takes the most probable token at each step, where Weft searches with a beam of "
        f"{config.decoding.beam_size}."
    )


def most_continued(max_new_tokens: int, window_len: int) -> int:
    """Return a fixed limit on what a language model adds to a beginning: that of its recipe, or
    half of the window, so that with a beginning of the other half all is within what was trained.
    """
    half = window_len // 2
    most = min(half, max_new_tokens)
    return max(1, most)
