"""The places of a running batch: arrays of what its sentences have become, and who may come and go.

Shapes: S sentences that the decoder has room for, k hypotheses of each at most, T positions.
"""

from collections.abc import Sequence

import numpy as np

from weft.decoding.decoder import Advances, Attends, Beams, Decoder, Floats, Records
from weft.decoding.prefixes import MOST_ROWS, prefix_len_ahead, prefix_rows
from weft.decoding.samples import Drawing
from weft.decoding.sentences import BeamSettings, Line, SampleSettings, Sentence
from weft.decoding.slots import Mix, Outcome, Slot, id_array, penalty_table
from weft.decoding.terms import MOST_TERMS, TermBeams
from weft.errors import DivergedError, UsageError

NO_NUMBERS = "decoding: no token has a finite probability (NaN or infinite logits)"


class Places:
    """The sentences of a decoder, of which some are active: arrays over the S indices that they may
    have.
    """

    def __init__(self, decoder: Decoder, settings: BeamSettings, budget: int) -> None:
        """Begin with nothing. `settings` are those of sentences that have none of their own;
        `budget` limits the source tokens of the active sentences.
        """
        self.decoder = decoder
        self.settings = settings
        self.budget = budget
        num_sentences = decoder.num_sentences
        shape = num_sentences, decoder.beam_size
        self.numbers = np.full(num_sentences, -1)  # -1: the index is free
        self.lengths = np.zeros(num_sentences, np.int64)  # new tokens so far
        self.max_lens = np.zeros(num_sentences, np.int64)
        self.src_lens = np.zeros(num_sentences, np.int64)
        self.prefix_lens = np.zeros(num_sentences, np.int64)
        self.beam_sizes = np.ones(num_sentences, np.int64)
        self.eos_ids = np.zeros(num_sentences, np.int32)
        self.log_probs = np.full(shape, -np.inf, np.float32)
        self.newest_tokens = np.zeros(shape, np.int32)
        # what a score must be above to enter the pool of finished hypotheses
        self.worst_scores = np.full(num_sentences, -np.inf, np.float32)
        self.slots: list[Slot | None] = [None] * num_sentences
        # S k T; index p belongs to the token read at position p, bos at 0: `ancestors` is its beam
        # index, `tokens` what was chosen after it, which is read at p + 1
        self.tokens = np.zeros((*shape, 32), np.int32)
        self.ancestors = np.zeros((*shape, 32), np.int32)
        self.token_log_probs = np.zeros((*shape, 32), np.float32)
        # S T: of a sentence with so many tokens
        self.penalties = np.ones((num_sentences, 32), np.float32)
        self._beams: Beams | None = None  # the arrays together; None: one was replaced
        # a decoder that takes whole steps of beams, where this one does
        self._advances = decoder if isinstance(decoder, Advances) else None
        # a decoder that keeps what sentences wrote from their sources, where this one does
        self._records = decoder if isinstance(decoder, Records) else None
        # a decoder that says where it looks, where this one does
        self._attends = decoder if isinstance(decoder, Attends) else None
        self.terms = TermBeams(*shape)
        self._mix: Mix | None = None  # None: not known since a sentence came or went
        self._held: list[Sentence] = []  # that did not fit beside those they came with
        self._ended: list[tuple[int, Outcome]] = []  # that need no step

    @property
    def active(self) -> int:
        """Count the sentences under way."""
        return int(np.count_nonzero(self.numbers >= 0))

    @property
    def free(self) -> int:
        """Count the sentences that there is a free index for."""
        return self.decoder.num_sentences - self.active

    @property
    def room(self) -> int:
        """Count the source tokens that are left of the budget."""
        active_lens = self.src_lens[self.numbers >= 0]
        return self.budget - int(active_lens.sum())

    def fill(self, waiting: Line) -> bool:
        """Start waiting sentences at free indices; say whether there is anything to advance.

        A decoder whose sentences begin together starts them when all before them are done.
        """
        free = self.free
        is_idle = free == self.decoder.num_sentences
        if is_idle or self._admits(waiting, free):
            begun = self._held
            self._held = []
            self.begin(begun or waiting.take(free, self.room, is_idle))
        return bool(self._ended) or bool(self._held) or self.active > 0

    def _admits(self, waiting: Line, free: int) -> bool:
        """Return whether sentences may begin now, beside those under way."""
        if self.decoder.begins_together:
            return False
        if waiting.at_once:
            return free > 0
        # encoding several sentences at once is faster, so it waits for more than a few free indices
        has_few_free = free * 8 < self.decoder.num_sentences
        return not has_few_free and 8 * self.room >= self.budget

    def begin(self, sentences: Sequence[Sentence]) -> None:
        """Start these sentences, at most as many as are `free`.

        One that cannot begin harms no other: `advance` says why.
        """
        good = []
        for sentence in sentences:
            if problem := self._problem(sentence):
                self._ended.append((sentence.number, problem))
            else:
                good.append(sentence)
        if good:
            begun = self._read(good)
            self._read_ahead(begun)

    def _problem(self, sentence: Sentence) -> UsageError | None:
        """Return why a sentence cannot begin, if it cannot."""
        if sentence.max_len < 1:
            return UsageError(
                f"the output limit is {sentence.max_len} tokens; it must be at least 1"
            )
        settings = sentence.settings or self.settings
        size = settings.beam_size
        if sentence.branches and len(sentence.branches) != size:
            return UsageError(
                f"{size} samples begin with {len(sentence.branches)} tokens; each needs one"
            )
        if sentence.terms and (problem := _problem_of_terms(sentence, settings)):
            return problem
        most = self.decoder.beam_size
        if size > most:
            return UsageError(f"beam_size = {size}: here it must be at most {most}")
        return None

    def _read(self, sentences: list[Sentence]) -> list[int]:
        """Encode and start sentences; where memory does not suffice for all, each for itself.

        Return their indices.
        """
        free = np.flatnonzero(self.numbers < 0)
        indices: list[int] = free[: len(sentences)].tolist()
        sources = [sentence.ids for sentence in sentences]
        allowed = [sentence.allowed for sentence in sentences]
        try:
            self.decoder.read(indices, sources, allowed)
        except MemoryError as error:
            if len(sentences) == 1:
                self._ended.append((sentences[0].number, error))
                return []
        else:
            for index, sentence in zip(indices, sentences, strict=True):
                self._start(index, sentence)
            return indices
        # outside of the handler, which would keep what the failed attempt holds alive
        if self.decoder.begins_together:
            half = len(sentences) // 2
            self._held = sentences[half:] + self._held
            return self._read(sentences[:half])
        return [index for each in sentences for index in self._read([each])]

    def _start(self, index: int, sentence: Sentence) -> None:
        """Begin a sentence: with one live hypothesis, or all of its samples; bos alone."""
        settings = sentence.settings or self.settings
        drawing = None
        live = 1
        if isinstance(settings, SampleSettings):
            drawing = Drawing.of(sentence.ids, settings)
            live = settings.beam_size
        banned = id_array(tuple(settings.banned_ids))
        self.slots[index] = Slot(sentence, settings, banned, drawing)
        self.numbers[index] = sentence.number
        self.lengths[index] = 0
        self.max_lens[index] = sentence.max_len
        self.src_lens[index] = len(sentence.ids)
        self.prefix_lens[index] = len(sentence.prefix) + bool(sentence.branches)
        self.beam_sizes[index] = settings.beam_size
        self.eos_ids[index] = settings.eos_id
        self.log_probs[index] = -np.inf
        self.log_probs[index, :live] = 0.0
        self.newest_tokens[index] = settings.bos_id
        self.worst_scores[index] = -np.inf
        self._set_penalties(index, settings.length_penalty, sentence.max_len)
        self.terms.start(index, sentence.terms)
        self._mix = None
        if sentence.records and self._records:
            self._records.record(index)

    def _set_penalties(self, index: int, alpha: float, max_len: int) -> None:
        """Set what scores are divided by, up to one token more than there can be."""
        needed = max_len + 2
        missing = needed - self.penalties.shape[1]
        if missing > 0:
            room = ((0, 0), (0, 2 * missing))
            self.penalties = np.pad(self.penalties, room, constant_values=1.0)
            self._beams = None
        width = self.penalties.shape[1]
        self.penalties[index] = penalty_table(alpha, width)

    def _read_ahead(self, indices: list[int]) -> None:
        """Read the prefixes of sentences that have just begun, each in one step."""
        if self.decoder.begins_together:
            return
        part: list[int] = []
        num_rows = 0
        for index in indices:
            slot = self._slot(index)
            count = prefix_len_ahead(slot.sentence, slot.settings)
            if part and num_rows + count > MOST_ROWS:
                self._read_prefixes(part)
                part = []
                num_rows = 0
            if count:
                part.append(index)
                num_rows += count
        if part:
            self._read_prefixes(part)

    def _read_prefixes(self, indices: list[int]) -> None:
        """Read these sentences' prefixes in one step; the last position is left to `advance`."""
        slots = [self._slot(index) for index in indices]
        begun = [(slot.sentence, slot.settings) for slot in slots]
        inputs, counts = prefix_rows(indices, begun)
        try:
            log_probs, _, _ = self.decoder.step(inputs, 1)
        except MemoryError as error:
            if len(indices) == 1:
                self._end(indices[0], error)
                return
            log_probs = None
        if log_probs is None:
            for index in indices:
                self._read_prefixes([index])
            return
        self._make_room(max(counts) + 1)
        ends = np.cumsum(counts)[:-1]
        parts = np.split(log_probs[:, 0], ends)
        for index, slot, part in zip(indices, slots, parts, strict=True):
            self._record_prefix(index, slot, part)

    def _record_prefix(self, index: int, slot: Slot, log_probs: Floats) -> None:
        """Set the history of all live hypotheses of a sentence to the beginning of its prefix."""
        count = len(log_probs)
        # added one after the other, as single steps do
        total = np.add.accumulate(log_probs)[-1]
        if not np.isfinite(total):
            self._end(index, DivergedError(NO_NUMBERS))
            return
        read = np.asarray(slot.sentence.prefix[:count], np.int32)
        is_live = self.log_probs[index] > -np.inf
        self.log_probs[index, is_live] = total
        self.tokens[index, :, :count] = read
        self.token_log_probs[index, :, :count] = log_probs
        self.ancestors[index, :, :count] = 0
        self.newest_tokens[index] = read[-1]
        self.lengths[index] = count

    def drop(self, number: int) -> bool:
        """Let a sentence leave at once, without an outcome; say whether it was here.

        Its index is free for the next one, and nothing changes for the others.
        """
        indices = np.flatnonzero(self.numbers == number).tolist()
        for index in indices:
            self._free(index)
        num_others = len(self._ended) + len(self._held)
        self._ended = [pair for pair in self._ended if pair[0] != number]
        self._held = [other for other in self._held if other.number != number]
        num_left = len(self._ended) + len(self._held)
        return bool(indices) or num_left < num_others

    def _slot(self, index: int) -> Slot:
        slot = self.slots[index]
        assert slot is not None
        return slot

    def _free(self, index: int) -> None:
        self.numbers[index] = -1
        self.slots[index] = None
        self._mix = None

    def _end(self, index: int, outcome: Outcome) -> None:
        """Give a sentence its outcome, and free its index."""
        self._ended.append((int(self.numbers[index]), outcome))
        self._free(index)

    def _make_room(self, length: int) -> None:
        """Make room for `length` tokens: lengthen the arrays to twice as many as they have."""
        if length <= self.tokens.shape[2]:
            return
        more = (0, max(length, 2 * self.tokens.shape[2]) - self.tokens.shape[2])
        room = ((0, 0), (0, 0), more)
        self.tokens = np.pad(self.tokens, room)
        self.ancestors = np.pad(self.ancestors, room)
        self.token_log_probs = np.pad(self.token_log_probs, room)
        self._beams = None

    @property
    def beams(self) -> Beams:
        """Return the arrays that a step of beams reads and changes."""
        if self._beams is None:
            self._beams = Beams(
                self.lengths,
                self.beam_sizes,
                self.max_lens,
                self.eos_ids,
                self.penalties,
                self.worst_scores,
                self.log_probs,
                self.token_log_probs,
                self.newest_tokens,
                self.tokens,
                self.ancestors,
            )
        return self._beams


def _problem_of_terms(sentence: Sentence, settings: BeamSettings) -> UsageError | None:
    """Return why a sentence cannot have its terms, if it cannot."""
    terms = sentence.terms
    assert terms is not None
    if isinstance(settings, SampleSettings):
        return UsageError("samples have no terms; leave out one of them")
    if len(terms.terms) > MOST_TERMS:
        return UsageError(
            f"{len(terms.terms)} terms in a sentence: at most {MOST_TERMS} are possible"
        )
    _, _, left = terms.after(sentence.prefix)
    least = left + len(sentence.prefix) + 1  # with eos
    if least > sentence.max_len:
        return UsageError(
            f"prefix and terms have {least} tokens with the end symbol; the output limit is {sentence.max_len}"
        )
    return None
