"""The settings of a translation, checked for values that contradict each other."""

from dataclasses import dataclass
from numbers import Integral

from weft.config import DecodingSection
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from weft.decoding.sampling import Sampling
from weft.decoding.sentences import BeamSettings, SampleSettings
from weft.errors import UsageError

BANNED = (PAD_ID, UNK_ID, BOS_ID)
_MBR_MIN_P = 0.02
_WHOLE_NUMBERS = {  # each with its least value
    **dict.fromkeys(("beam_size", "n_best", "exhaustive", "top_k", "batch_tokens"), 1),
    **dict.fromkeys(("seed", "no_repeat_ngrams"), 0),
    "mbr": 2,
}
_RANGES = {"length_penalty": (-10, 10), "coverage_penalty": (0, 1000), "mbr": (2, 1024)}


@dataclass(frozen=True)
class DecodingSettings:
    """The settings of a translation; beam_size and length_penalty come from the recipe where None.

    A beam of `beam_size` (1: greedy) finds the `n_best` translations by log_prob / ((5 + length) /
    6) ** `length_penalty`: different token sequences, of which two may read alike. `exhaustive`
    tries every translation of at most so many tokens instead.

    A `temperature` draws `n_best` samples instead, each for itself (0: the most probable tokens),
    from what `top_k`, `top_p` and `min_p` leave (as `weft.decoding.sampling.Sampling`). A sample
    depends on `seed` (1), its text and its number alone.

    `mbr` draws so many samples and gives the `n_best` of them that are most like the others, by
    their mean `utility` (`weft.decoding.risk`; a name that the translator knows, else "chrf");
    equal samples count as one, so that there may be fewer. Its temperature is 1, if none is given;
    where neither top_k nor top_p nor min_p is, min_p is 0.02 (in the manner of Freitag et al. 2023,
    "Epsilon Sampling Rocks", who bound the probability itself by 0.02).

    A `coverage_penalty` B above 0 ranks the `beam_size` hypotheses that the beam has found by score
    + B times their coverage (`weft.predict.alignment.coverage`). `alignments` are found where they
    are asked for, and with them the words, their places and probabilities. With `doubts`, a model
    that has learned to judge itself says the quality of each word, and what may be left out; others
    say nothing.

    Every translation begins with `prefix`, white space at its ends left out; where
    `no_repeat_ngrams` is n, no n tokens in a row occur twice in it. With `shortlist`, only
    tokens that the model's lexical shortlist has for a text are chosen; None: as the model was
    saved, but never with `exhaustive`. `batch_tokens` limits the padded source tokens that are
    worked on at a time, times hypotheses.

    Raises UsageError for a value out of range, and for values that contradict each other.
    """

    beam_size: int | None = None
    length_penalty: float | None = None
    n_best: int = 1
    exhaustive: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    mbr: int | None = None
    utility: str | None = None
    coverage_penalty: float = 0.0
    alignments: bool = False
    doubts: bool = False
    prefix: str = ""
    no_repeat_ngrams: int = 0
    shortlist: bool | None = None
    batch_tokens: int = 4096

    def __post_init__(self) -> None:
        for name, least in _WHOLE_NUMBERS.items():
            value = getattr(self, name)
            if value is not None and not (
                isinstance(value, Integral) and int(value) >= least
            ):
                raise UsageError(
                    f"{name} = {value}: it must be a whole number, at least {least}"
                )
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:  # as no NaN is
                raise UsageError(
                    f"{name} = {value}: it must be from {least} to {most:,}"
                )
        if self.seed is not None and self.seed >= 2**63:
            raise UsageError(f"seed = {self.seed}: it must be below 2^63")
        self._refuse_contradictions()

    @property
    def sampling(self) -> Sampling | None:
        """Return what samples are drawn from; None where nothing is drawn."""
        if self.temperature is None and self.mbr is None:
            return None
        temperature = 1.0 if self.temperature is None else float(self.temperature)
        is_bare = self.mbr is not None and not self._given("top_k", "top_p", "min_p")
        return Sampling(
            temperature, self.top_k, self.top_p, _MBR_MIN_P if is_bare else self.min_p
        )

    def beams(self, recipe: DecodingSection) -> BeamSettings:
        """Return the settings of the search: of a beam, or of samples in its place.

        `recipe` has the values of what is None here. Raises UsageError for more alternatives than
        there can be.
        """
        alpha = (
            recipe.length_penalty
            if self.length_penalty is None
            else self.length_penalty
        )
        if self.sampling is not None:
            count = self.mbr or self.n_best
            rest = (
                BANNED,
                self.no_repeat_ngrams,
                self.sampling,
                1 if self.seed is None else self.seed,
            )
            return SampleSettings(BOS_ID, EOS_ID, count, alpha, count, *rest)
        beam_size = recipe.beam_size if self.beam_size is None else self.beam_size
        if self.exhaustive is not None:
            beam_size = max(beam_size, self.n_best)
        if self.n_best > beam_size:
            raise UsageError(
                f"n_best = {self.n_best}: it must be from 1 to beam_size, which is {beam_size}"
            )
        kept = beam_size if self.coverage_penalty else self.n_best
        return BeamSettings(
            BOS_ID, EOS_ID, beam_size, alpha, kept, BANNED, self.no_repeat_ngrams
        )

    def _refuse_contradictions(self) -> None:
        if self.exhaustive and (self.prefix or self.no_repeat_ngrams or self.shortlist):
            raise UsageError(
                "a prefix, no_repeat_ngrams and a shortlist are for a beam; leave out exhaustive"
            )
        if self.exhaustive and self.beam_size is not None:
            raise UsageError(
                "beam_size is for a beam, and exhaustive scores everything; leave one of them out"
            )
        if self.coverage_penalty and (self.exhaustive or self.sampling):
            raise UsageError(
                "coverage_penalty ranks what a beam finds; leave it out, or samples and exhaustive"
            )
        if self.sampling is None:
            if strays := self._given("top_k", "top_p", "min_p", "seed"):
                raise UsageError(
                    f"{strays[0]} is for samples; give a temperature or mbr too, or leave it out"
                )
        elif strays := self._given("beam_size", "exhaustive", "length_penalty"):
            draws = "a temperature" if self.mbr is None else "mbr"
            raise UsageError(
                f"{strays[0]} is for a search, and {draws} draws samples; leave one of them out"
            )
        if self.utility is not None and self.mbr is None:
            raise UsageError(
                "utility is what mbr compares samples by; give mbr too, or leave it out"
            )
        if self.mbr is not None and self.temperature == 0:
            raise UsageError(
                "mbr compares samples, and with temperature = 0 all are alike; leave one of them out"
            )
        if self.mbr is not None and self.n_best > self.mbr:
            raise UsageError(
                f"n_best = {self.n_best}: it must be from 1 to mbr, which is {self.mbr}"
            )

    def _given(self, *names: str) -> list[str]:
        return [name for name in names if getattr(self, name) is not None]


USUAL = DecodingSettings()
