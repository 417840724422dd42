"""The running batch: beam searches and samples side by side, each as if it were alone.

A beam has k hypotheses, and k is the sentence's own. Keys and values stay where they were computed:
a hypothesis's ancestors say at which beam index it stood at each position. No row depends on the
rows beside it.

Shapes: A active sentences, k hypotheses in the widest beam of these, R rows of a step (the live
hypotheses), m candidates of a row, T positions.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from weft.decoding.decoder import (
    FREE,
    Advanced,
    Advances,
    Floats,
    Hypothesis,
    Indices,
    StepInput,
    Tokens,
    TopK,
)
from weft.decoding.extensions import (
    Extensions,
    Flags,
    best_extensions,
    no_extensions,
    own_extensions,
)
from weft.decoding.forms import IDLE
from weft.decoding.places import NO_NUMBERS, Places
from weft.decoding.samples import draw_tokens
from weft.decoding.slots import Mix, Outcome
from weft.decoding.terms import Chosen, TermMix, TermStep
from weft.errors import DivergedError


@dataclass(frozen=True)
class Candidates:
    """The most probable next tokens of every hypothesis (A k m): -inf where there is none.

    `rows` (A k) are those of the step, -1 for no hypothesis. `every` (R V) has the
    log-probabilities of all tokens, and `attention` (R, source tokens) says where the rows looked,
    if asked for.
    """

    log_probs: Floats
    ids: Tokens
    rows: Indices
    every: Floats | None
    attention: Floats | None


class Search(Places):
    """The state of a running batch.

    Sentences begin (`fill`, `begin`), take steps (`advance`) and may leave (`drop`) at any time.
    """

    def advance(
        self, numbers: Collection[int] | None = None
    ) -> Iterator[tuple[int, Outcome]]:
        """Extend every live hypothesis by one token; yield the sentences that are done by it.

        With `numbers`, those of these sentences; the others stand still, unless the decoder's
        sentences have begun together.
        """
        if mix := self._mix_of(numbers):
            self._advance(mix)
        ended = self._ended
        self._ended = []
        yield from ended

    def _advance(self, mix: Mix) -> None:
        """Take the step, and end the sentences that are done by it."""
        positions = self.lengths[
            mix.active
        ]  # of the newest token of each beam, bos at 0
        self._make_room(int(positions.max()) + 1)
        if mix.is_plain and self._advances and not self._forces(mix, positions):
            self._advance_together(mix, self._advances)
            return
        try:
            # k candidates a hypothesis are enough: the k best of a beam are among them
            candidates = self._candidates(mix)
        except MemoryError as error:
            self._relieve(mix, error)
            return
        # all candidates of a beam compete, so that a hypothesis may go on twice, or not at all
        extensions = self._choose(mix, candidates)
        active = mix.active
        if extensions.is_broken.any():
            for index in active[extensions.is_broken].tolist():
                self._end(index, DivergedError(NO_NUMBERS))
            is_whole = ~extensions.is_broken
            extensions = extensions.of(is_whole)
            active = active[is_whole]
            positions = positions[is_whole]
        if len(active):
            self._record(active, positions, extensions)
            found = self._scored(active, positions, extensions)
            self.lengths[active] += 1
            self._end_what_is_done(active, found)

    def _forces(self, mix: Mix, positions: Indices) -> bool:
        """Return whether a row is inside of a prefix."""
        if not mix.has_prefixes:
            return False
        return bool((positions < self.prefix_lens[mix.active]).any())

    def _advance_together(self, mix: Mix, decoder: Advances) -> None:
        """Take a plain step by the decoder itself: the same step, without what NumPy adds to it."""
        assert mix.banned is not None
        try:
            found = decoder.advance(self.beams, mix.active, mix.width, mix.banned)
        except MemoryError as error:
            self._relieve(mix, error)
            return
        if not found.events:
            return
        active = mix.active
        if found.broken.any():
            for index in active[found.broken].tolist():
                self._end(index, DivergedError(NO_NUMBERS))
            is_whole = ~found.broken
            active = active[is_whole]
            found = found.of(is_whole)
        if len(active):
            self._end_what_is_done(active, found)

    def _scored(
        self, active: Indices, positions: Indices, extensions: Extensions
    ) -> Advanced:
        """Score what a step has found."""
        log_probs = extensions.totals  # A k
        eos_ids = self.eos_ids[active]
        is_eos = extensions.tokens == eos_ids[:, None]
        # a beam with fewer than k candidates is filled up with some of probability 0
        ended = is_eos & (log_probs > -np.inf)
        # the new token counts in the length, eos too
        lengths = positions + 1
        penalties = self.penalties[active, lengths]
        scores = log_probs / penalties[:, None]
        # A log-probability only falls, and the penalty is largest at one end of the lengths that
        # are left: no hypothesis can score above this bound.
        last_penalties = self.penalties[active, self.max_lens[active]]
        next_penalties = self.penalties[active, lengths + 1]
        largest = np.maximum(last_penalties, next_penalties)
        live_log_probs = np.where(ended, -np.inf, log_probs)
        bounds = live_log_probs.max(1) / largest
        return Advanced(scores, ended, bounds, extensions.is_broken)

    def _end_what_is_done(self, active: Indices, found: Advanced) -> None:
        """Keep the hypotheses that ended, and end the sentences that are done."""
        if found.ended.any():
            self._keep_ended(active, found.ended, found.scores)
            # what ended leaves the beam: with -inf it is neither extended nor chosen again
            places, beams = np.nonzero(found.ended)
            self.log_probs[active[places], beams] = -np.inf
        # until a pool is full, its worst score is -inf, and no beam with a live hypothesis is
        # hopeless
        is_hopeless = found.bounds <= self.worst_scores[active]
        is_done = is_hopeless | (self.lengths[active] >= self.max_lens[active])
        for i in np.flatnonzero(is_done).tolist():
            # what is live at the limit is cut; what is live in a hopeless beam finds a full pool
            live_scores = np.where(found.ended[i], -np.inf, found.scores[i])
            self._finish(int(active[i]), live_scores)

    def _mix_of(self, numbers: Collection[int] | None) -> Mix | None:
        """Return what takes the next step, of all sentences or of some; None for nothing."""
        if self._mix is None:
            self._mix = self._mix_at(np.flatnonzero(self.numbers >= 0))
        if self._mix is None or numbers is None or self.decoder.begins_together:
            return self._mix
        active = self._mix.active
        is_chosen = [number in numbers for number in self.numbers[active].tolist()]
        return self._mix if all(is_chosen) else self._mix_at(active[is_chosen])

    def _mix_at(self, active: Indices) -> Mix | None:
        """Look at what runs together at these indices."""
        if not len(active):
            return None
        slots = [self._slot(index) for index in active.tolist()]
        drawings = [slot.drawing for slot in slots]
        is_sampled = np.array([drawing is not None for drawing in drawings])
        has_draws = any(drawing and not drawing.takes_best for drawing in drawings)
        sizes = self.beam_sizes[active]
        searched = sizes[~is_sampled]
        banned: Tokens | None = slots[0].banned
        for slot in slots:
            if slot.banned is not banned or slot.bans_by_row:
                banned = None
        width = int(sizes.max())
        candidates = int(searched.max(initial=1))
        has_prefixes = bool(self.prefix_lens[active].any())
        all_terms = [slot.sentence.terms for slot in slots]
        needing = [terms for terms in all_terms if terms is not None]
        return Mix(
            active=active,
            is_sampled=is_sampled,
            has_terms=np.array([terms is not None for terms in all_terms]),
            terms=TermMix(needing) if needing else None,
            has_draws=has_draws,
            has_prefixes=has_prefixes,
            width=width,
            candidates=candidates,
            banned=banned,
        )

    def _relieve(self, mix: Mix, error: MemoryError) -> None:
        """End the sentence that needs most memory, so that the others can go on.

        Where sentences begin together a failed step has spoiled the cache of all.
        """
        active = mix.active
        if not self.decoder.begins_together:
            num_positions = self.beam_sizes[active] * self.lengths[active]
            sizes = num_positions + self.src_lens[active]
            active = active[[sizes.argmax()]]
        for index in active.tolist():
            self._end(index, error)

    def _candidates(self, mix: Mix) -> Candidates:
        """Compute the most probable next tokens of every hypothesis, of a sample the one that it
        draws.

        Where there is none, the log-probability is -inf. Inside a prefix, its next token is the
        only candidate.
        """
        is_live = self.log_probs[mix.active, : mix.width] > -np.inf
        rows, beams = np.nonzero(is_live)
        sentences = mix.active[rows]
        inputs = self._step_input(mix, sentences, beams)
        found, attention = self._step(mix, inputs)
        log_probs, ids, every = found
        if mix.has_draws:
            self._draw(inputs, found)
        shape = len(mix.active), mix.width, mix.candidates
        row_of = np.full(shape[:2], -1)
        row_of[rows, beams] = np.arange(len(rows))
        if len(sentences) == shape[0] * shape[1]:
            top = log_probs.reshape(shape), ids.reshape(shape)
            return Candidates(*top, row_of, every, attention)
        padded_log_probs = np.full(shape, -np.inf, np.float32)
        padded_ids = np.zeros(shape, np.int32)
        padded_log_probs[rows, beams] = log_probs
        padded_ids[rows, beams] = ids
        return Candidates(padded_log_probs, padded_ids, row_of, every, attention)

    def _step(self, mix: Mix, inputs: StepInput) -> tuple[TopK, Floats | None]:
        """Take the decoder's step; say where it looked, if terms ask for that and it can."""
        needs_all = mix.needs_all
        if mix.terms is None or self._attends is None:
            found = self.decoder.step(inputs, mix.candidates, all_log_probs=needs_all)
            return found, None
        longest = int(self.src_lens[mix.active].max())
        attention = np.empty((len(inputs), longest), np.float32)
        found = self._attends.step(
            inputs, mix.candidates, all_log_probs=needs_all, attention=attention
        )
        return found, attention

    def _draw(self, inputs: StepInput, found: TopK) -> None:
        """Put the tokens that samples draw in the place of the most probable ones."""
        log_probs, ids, all_log_probs = found
        assert all_log_probs is not None
        drawn_rows = []
        drawings = []
        for row, index in enumerate(inputs.sentences.tolist()):
            drawing = self._slot(index).drawing
            if drawing is None or drawing.takes_best:
                continue
            if inputs.forced is None or inputs.forced[row] == FREE:
                drawn_rows.append(row)
                drawings.append(drawing)
        if drawings:
            rows = np.array(drawn_rows)
            drawn = draw_tokens(all_log_probs, inputs, rows, drawings)
            log_probs[rows, 0], ids[rows, 0] = drawn

    def _step_input(self, mix: Mix, sentences: Indices, beams: Indices) -> StepInput:
        """Gather the newest token and the ancestors of these hypotheses."""
        positions = self.lengths[sentences]
        width = int(positions.max()) + 1
        banned, ban_ends = self._bans(mix, sentences, beams)
        return StepInput(
            sentences,
            beams,
            positions,
            self.newest_tokens[sentences, beams],
            self.ancestors[sentences, beams, :width],  # R T
            banned,
            ban_ends,
            self._forced(sentences, beams, positions),
        )

    def _forced(
        self, sentences: Indices, beams: Indices, positions: Indices
    ) -> Tokens | None:
        """List the next tokens of those that are inside of a prefix or at a branch, FREE for
        others.
        """
        is_forced = positions < self.prefix_lens[sentences]
        if not is_forced.any():
            return None
        forced = np.full(len(sentences), FREE, np.int32)
        for row in np.flatnonzero(is_forced).tolist():
            slot = self._slot(int(sentences[row]))
            forced[row] = slot.forced(int(beams[row]), int(positions[row]))
        return forced

    def _bans(
        self, mix: Mix, sentences: Indices, beams: Indices
    ) -> tuple[Tokens, Indices]:
        """List the banned ids of these hypotheses, row after row, and where each row's end."""
        count = len(sentences)
        if mix.banned is not None:
            ends = np.arange(1, count + 1) * len(mix.banned)
            return np.tile(mix.banned, count), ends
        banned = []
        lens = []
        rows = zip(sentences.tolist(), beams.tolist(), strict=True)
        for index, beam in rows:
            slot = self._slot(index)
            length = self.lengths[index] if slot.bans_by_row else 0
            ids = slot.banned_after(self.tokens[index, beam, :length])
            if slot.sentence.terms is not None:
                left = int(self.terms.left[index, beam])
                is_behind = bool(self.terms.is_behind[index, beam])
                ids += slot.banned_by_terms(left, is_behind)
            banned += ids
            lens.append(sum(map(len, ids)))
        return np.concatenate(banned), np.cumsum(lens, dtype=np.int64)

    def _choose(self, mix: Mix, candidates: Candidates) -> Extensions:
        """Choose the extensions of each beam, those with terms by these."""
        if mix.terms is None:
            return self._best(mix, candidates)
        extensions = no_extensions(len(mix.active), mix.width)
        if not mix.has_terms.all():
            extensions = self._best(mix, candidates)
        with_terms = self._choose_with_terms(mix, mix.terms, candidates)
        extensions.put(mix.has_terms, with_terms)
        return extensions

    def _choose_with_terms(
        self, mix: Mix, terms: TermMix, candidates: Candidates
    ) -> Extensions:
        """Choose the extensions of the beams with terms, and note what they have of these."""
        having = mix.has_terms
        active = mix.active[having]
        sizes = self.beam_sizes[active]
        assert candidates.every is not None
        step = TermStep(
            self.log_probs[active, : mix.width],
            candidates.rows[having],
            candidates.log_probs[having],
            candidates.ids[having],
            candidates.every,
            candidates.attention,
            self.max_lens[active] - self.lengths[active] - 2,
            self.eos_ids[active],
            sizes,
            self._are_bound(active, mix.width),
            np.array([bool(self._slot(index).pool) for index in active.tolist()]),
        )
        chosen = terms.choose(step, self.terms.state(active, mix.width))
        if step.bound.any():
            self._tell_terms(active, step.bound, chosen)
        self.terms.keep(active, chosen)
        return chosen.extensions

    def _tell_terms(self, active: Indices, bound: Flags, chosen: Chosen) -> None:
        """Find the terms in what hypotheses had to write: a prefix, a stem, and the rest of the
        token that the stem ends in.
        """
        parents = chosen.extensions.parents
        for row, index in enumerate(active.tolist()):
            slot = self._slot(index)
            length = self.lengths[index]
            for beam in range(int(self.beam_sizes[index])):
                parent = parents[row, beam]
                if not bound[row, parent]:
                    continue
                token = chosen.extensions.tokens[row, beam]
                tokens = np.append(self.tokens[index, parent, :length], token)
                assert slot.sentence.terms is not None
                place, met, left = slot.sentence.terms.after(tokens.tolist())
                is_free = slot.begins_freely(tokens)
                chosen.places[row, beam] = place if is_free else IDLE
                chosen.met[row, beam] = met
                chosen.left[row, beam] = left

    def _are_bound(self, active: Indices, width: int) -> Flags:
        """Return which hypotheses are inside of a prefix or a stem (A k)."""
        bound = np.zeros((len(active), width), np.bool_)
        for row, index in enumerate(active.tolist()):
            slot = self._slot(index)
            if not slot.sentence.prefix and slot.sentence.stem is None:
                continue
            length = self.lengths[index]
            for beam in range(int(self.beam_sizes[index])):
                tokens = self.tokens[index, beam, :length]
                bound[row, beam] = not slot.begins_freely(tokens)
        return bound

    def _best(self, mix: Mix, candidates: Candidates) -> Extensions:
        """Choose the most probable extensions of each beam, and extend each sample by its own."""
        top_log_probs, top_ids = candidates.log_probs, candidates.ids
        log_probs = self.log_probs[mix.active, : mix.width]
        sizes = self.beam_sizes[mix.active]
        if not mix.has_samples:
            return best_extensions(log_probs, top_log_probs, top_ids, sizes)
        drawn_log_probs = top_log_probs[:, :, 0]
        drawn_ids = top_ids[:, :, 0]
        if not mix.has_beams:
            return own_extensions(log_probs, drawn_log_probs, drawn_ids)
        extensions = no_extensions(len(mix.active), mix.width)
        drawn = mix.is_sampled
        own = own_extensions(log_probs[drawn], drawn_log_probs[drawn], drawn_ids[drawn])
        extensions.put(drawn, own)
        beams = ~drawn
        k = mix.candidates
        best = best_extensions(
            log_probs[beams, :k],
            top_log_probs[beams, :k],
            top_ids[beams, :k],
            sizes[beams],
        )
        extensions.put(beams, best)
        return extensions

    def _record(
        self,
        active: Indices,
        positions: Indices,
        extensions: Extensions,
    ) -> None:
        """Give each hypothesis its parent's history, followed by its new token."""
        parents = extensions.parents
        width = parents.shape[1]
        sentences = active[:, None]
        beams = np.arange(width)[None]
        newest = positions[:, None]
        until = int(positions.max())
        if width > 1:
            for history in (self.tokens, self.ancestors, self.token_log_probs):
                history[active, :width, :until] = history[sentences, parents, :until]
        self.tokens[sentences, beams, newest] = extensions.tokens
        self.ancestors[sentences, beams, newest] = parents
        self.token_log_probs[sentences, beams, newest] = extensions.log_probs
        self.newest_tokens[active, :width] = extensions.tokens
        self.log_probs[active, :width] = extensions.totals

    def _keep_ended(self, active: Indices, ended: Flags, scores: Floats) -> None:
        """Keep every sample that ended with eos, and put such hypotheses of beams into their
        sentences' pools of the `n_best`.
        """
        worst_scores = self.worst_scores[active]
        is_better = scores > worst_scores[:, None]
        for i, beam in np.argwhere(ended & is_better).tolist():
            index = int(active[i])
            slot = self._slot(index)
            length = int(self.lengths[index])
            score = scores[i, beam]
            hypothesis = self._hypothesis(index, beam, length, score, True)
            if slot.drawing is not None:
                slot.samples[beam] = hypothesis
                continue
            n_best = slot.settings.n_best
            slot.keep(hypothesis)
            if len(slot.pool) == n_best:
                self.worst_scores[index] = slot.pool[-1].score

    def _finish(self, index: int, scores: Floats) -> None:
        """End a sentence with its hypotheses, best first, or all samples by their numbers.

        Hypotheses that were cut at the limit stand after all that ended, whatever their scores,
        because a translation without an end is incomplete.
        """
        slot = self._slot(index)
        length = int(self.lengths[index])
        for beam in np.argsort(-scores, kind="stable").tolist():
            score = scores[beam]
            is_full = len(slot.pool) >= slot.settings.n_best
            if is_full or score == -np.inf:
                break
            cut = self._hypothesis(index, beam, length, score, False)
            if slot.drawing is not None:
                slot.samples[beam] = cut
            else:
                slot.pool.append(cut)
        samples = [slot.samples[beam] for beam in sorted(slot.samples)]
        self._end(index, samples or slot.pool)

    def _hypothesis(
        self, index: int, beam: int, length: int, score: np.float32, finished: bool
    ) -> Hypothesis:
        """Build the hypothesis at this index of a sentence's beam, of its first `length` tokens."""
        ids = self.tokens[index, beam, :length].tolist()
        token_log_probs = self.token_log_probs[index, beam, :length].tolist()
        log_prob = float(self.log_probs[index, beam])
        shares = self._shares(index, beam, length)
        if finished:
            ids = ids[:-1]
        return Hypothesis(
            ids, log_prob, float(score), token_log_probs, finished, shares
        )

    def _shares(
        self, index: int, beam: int, length: int
    ) -> tuple[Floats, Floats] | None:
        """Return what the source wrote of a hypothesis, if it was recorded and memory suffices."""
        if not self._slot(index).sentence.records or self._records is None:
            return None
        tokens = self.tokens[index, beam, :length]
        ancestors = self.ancestors[index, beam, :length]
        src_len = int(self.src_lens[index])
        try:
            return self._records.recorded_shares(index, src_len, tokens, ancestors)
        except MemoryError:
            return None  # what wants them reads the hypothesis again
