"""The engine in PyTorch's operations, for GPUs: every step is the same work in the same memory,
captured once.

It computes what `weft.engine.bindings.Engine` does. A session has room of a fixed size, in which
all places of all slots take every step, those without a hypothesis for nothing; so on a GPU the
kernels of a step are recorded as a CUDA graph, and replayed as one. Where the room is outgrown it
doubles, and the step is captured anew. The last digits of a sentence may depend on the room, and so
on what stands beside it.

Shapes: S slots, P places of each, N = S P rows of a step, R of them in use, H heads of K
dimensions, T room for target positions, M room for source positions, D d_model, V vocabulary.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from weft.decoding.decoder import Best, Ids, Rows
from weft.engine.batched import best_allowed
from weft.engine.bindings import Attention, Layer, Linear, Norm, Side, Weights

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "relu2": lambda x: F.relu(x).square(),
    "silu": F.silu,
}
_FIRST_ROOM = 32


class CapturedEngine:
    """An encoder-decoder's weights on a device; products are of `dtype`, all else is of float32."""

    def __init__(
        self,
        weights: Weights,
        device: torch.device | str,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """The weights are copied where type or device differ; else shared."""
        self.weights = weights
        self.device, self.dtype = torch.device(device), dtype
        # By the original's id, which stays while the original is kept beside.
        self._moved: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]] = {}

    def session(self, slots: int, places: int) -> "CapturedSession":
        """Room for so many sentences, each with so many hypotheses."""
        return CapturedSession(self, slots, places)

    def on_device(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the tensor where it is computed with."""
        key = id(tensor), dtype
        if key not in self._moved:
            self._moved[key] = tensor.detach().to(self.device, dtype), tensor
        return self._moved[key][0]

    def linear(self, x: Float[Tensor, "*N I"], layer: Linear) -> Float[Tensor, "*N O"]:
        """Return the product in the engine's type, the result in float32."""
        weight, bias = self.on_device(layer.weight, self.dtype), layer.bias
        out = F.linear(x.to(self.dtype), weight).float()
        return out if bias is None else out + self.on_device(bias, torch.float32)

    def norm(
        self, x: Float[Tensor, "*N D"], norm: Norm | None
    ) -> Float[Tensor, "*N D"]:
        """Layer normalization; None: nothing."""
        if norm is None:
            return x
        gain, bias = (
            None if part is None else self.on_device(part, torch.float32)
            for part in (norm.gain, norm.bias)
        )
        if self.weights.root_mean_square:
            return F.rms_norm(x, x.shape[-1:], gain, self.weights.eps)
        return F.layer_norm(x, x.shape[-1:], gain, bias, self.weights.eps)

    def residual(
        self,
        x: Float[Tensor, "*N D"],
        layer: Layer,
        number: int,
        part: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, "*N D"]:
        """x and what the part makes of it, normalized before or after."""
        norm, after = layer.norms[number], layer.after[number] if layer.after else None
        if self.weights.norm_first:
            return x + self.norm(part(self.norm(x, norm)), after)
        return self.norm(x + part(x), norm)

    def feed_forward(
        self, layer: Layer, x: Float[Tensor, "*N D"]
    ) -> Float[Tensor, "*N D"]:
        """Two linear maps with an activation between them, or the second of what a gate lets
        through.
        """
        activated, inner = (
            ACTIVATIONS[self.weights.activation],
            self.linear(x, layer.inner),
        )
        if layer.gate is None:
            return self.linear(activated(inner), layer.outer)
        return self.linear(activated(self.linear(x, layer.gate)) * inner, layer.outer)

    def heads(
        self,
        x: Float[Tensor, "*N D"],
        layer: Linear,
        gain: Float[Tensor, " K"] | None = None,
    ) -> Float[Tensor, "*N H K"]:
        """Return a linear map to all heads; with a gain, each by its root mean square."""
        found = self.linear(x, layer).reshape(
            *x.shape[:-1], self.weights.num_heads, self.weights.head_dim
        )
        if gain is None:
            return found
        return F.rms_norm(
            found,
            found.shape[-1:],
            self.on_device(gain, torch.float32),
            self.weights.eps,
        )

    def embedded(
        self, side: Side, ids: Int[Tensor, "*N"], places: Int[Tensor, "*N"]
    ) -> Float[Tensor, "*N D"]:
        """Token vectors, scaled, and those of their positions."""
        x = (
            F.embedding(ids, self.on_device(side.tokens, torch.float32))
            * self.weights.embedding_scale
        )
        if side.positions is None:
            return x
        return x + F.embedding(places, self.on_device(side.positions, torch.float32))

    def turned(
        self, x: Float[Tensor, "*N H K"], places: Int[Tensor, "*N"]
    ) -> Float[Tensor, "*N H K"]:
        """Queries or keys by their positions, where these are rotary."""
        if self.weights.rotary is None:
            return x
        cosines, sines = (
            F.embedding(places, self.on_device(table, torch.float32)).unsqueeze(-2)
            for table in self.weights.rotary
        )
        first, second = x[..., : cosines.shape[-1]], x[..., cosines.shape[-1] :]
        return torch.cat(
            [first * cosines - second * sines, second * cosines + first * sines], dim=-1
        )

    def looked(
        self,
        query: Float[Tensor, "B P H K"],
        key: Float[Tensor, "B L H K"],
        value: Float[Tensor, "B L H K"],
        is_seen: Bool[Tensor, "B _ L"],
    ) -> Float[Tensor, "B P W"]:
        """Scaled dot products, heads side by side again."""
        scores = (
            torch.einsum("bphk,blhk->bhpl", query.to(self.dtype), key).float()
            * self.weights.head_dim**-0.5
        )
        attention = scores.masked_fill(~is_seen[:, None], -torch.inf).softmax(-1)
        return torch.einsum("bhpl,blhk->bphk", attention.to(self.dtype), value).flatten(
            2
        )

    def encode(
        self, ids: Int[Tensor, "B M"], is_token: Bool[Tensor, "B M"]
    ) -> list[tuple[Float[Tensor, "B M H K"], Float[Tensor, "B M H K"]]]:
        """Keys and values of the sources, for each decoder layer."""
        with torch.autocast(self.device.type, enabled=False):
            return self._encode(ids, is_token)

    def _encode(
        self, ids: Int[Tensor, "B M"], is_token: Bool[Tensor, "B M"]
    ) -> list[tuple[Float[Tensor, "B M H K"], Float[Tensor, "B M H K"]]]:
        weights = self.weights
        assert weights.src is not None
        places = torch.arange(ids.shape[1], device=self.device).expand_as(ids)
        x = self.embedded(weights.src, ids, places)
        for layer in weights.encoder:
            x = self.residual(
                x,
                layer,
                0,
                partial(self._look_around, layer.own, places, is_token[:, None]),
            )
            x = self.residual(x, layer, 1, partial(self.feed_forward, layer))
        x = self.norm(x, weights.encoder_norm)
        across = [layer.across for layer in weights.decoder if layer.across is not None]
        return [
            (
                self.heads(x, each.key, each.key_gain).to(self.dtype),
                self.heads(x, each.value).to(self.dtype),
            )
            for each in across
        ]

    def _look_around(
        self,
        own: Attention,
        places: Int[Tensor, "B M"],
        is_seen: Bool[Tensor, "B 1 M"],
        x: Float[Tensor, "B M D"],
    ) -> Float[Tensor, "B M D"]:
        maps = (own.query, own.query_gain), (own.key, own.key_gain)
        query, key = (self.turned(self.heads(x, *each), places) for each in maps)
        value = self.heads(x, own.value).to(self.dtype)
        return self.linear(
            self.looked(query, key.to(self.dtype), value, is_seen), own.output
        )


class CapturedSession:
    """Sentences under way: `slots` of them, each with `places` for hypotheses."""

    begins_together = False

    def __init__(self, engine: CapturedEngine, slots: int, places: int) -> None:
        self.engine, self.slots, self.places = engine, slots, places
        layers = len(engine.weights.decoder)
        shape = (engine.weights.num_heads, engine.weights.head_dim)
        new = partial(torch.zeros, device=engine.device, dtype=engine.dtype)
        self._mine = new(
            layers, 2, slots, places, _FIRST_ROOM + 1, *shape
        )  # the last time is for who writes nothing
        self._theirs = new(layers, 2, slots, _FIRST_ROOM, *shape)
        count = partial(torch.zeros, device=engine.device, dtype=torch.int64)
        self._src_lens = count(slots) + 1
        self._tokens, self._times = count(slots * places), count(slots * places)
        self._written_to = count(slots * places)
        self._ancestors = count(slots * places, _FIRST_ROOM)
        self._log_probs: Float[Tensor, "N V"] = torch.empty(0)
        self._graph: torch.cuda.CUDAGraph | None = None
        # by slot, where not everything is
        self._allowed: dict[int, Int[Tensor, " A"]] = {}

    @torch.inference_mode()
    def read(
        self,
        slots: Sequence[int],
        sentences: Sequence[Sequence[int]],
        allowed: Sequence[Ids] = (),
    ) -> None:
        """Encode sentences, each into a slot of its own, whose former content is gone."""
        device, width = self.engine.device, max(map(len, sentences))
        ids = torch.tensor(
            [[*row, *[0] * (width - len(row))] for row in sentences], device=device
        )
        lens = torch.tensor([len(row) for row in sentences], device=device)
        if width > self._theirs.shape[3]:
            self._outgrown(src=width)
        where = torch.tensor(list(slots), device=device)
        is_token = torch.arange(width, device=device) < lens[:, None]
        for room, found in zip(
            self._theirs, self.engine.encode(ids, is_token), strict=True
        ):
            for side, part in zip(room, found, strict=True):
                side[where, :width] = part
        self._src_lens[where] = lens
        lists = dict(zip(slots, allowed, strict=False))
        for slot in slots:
            self._allowed.pop(slot, None)
            if len(ids_of := lists.get(slot, ())):
                self._allowed[slot] = torch.as_tensor(ids_of, device=device).long()

    @torch.inference_mode()
    def step(self, rows: Rows, count: int, *, whole: bool = False) -> Best:
        """One more token for each row; as `weft.engine.bindings.Session.step`, each place once."""
        device, until = self.engine.device, rows.ancestors.shape[1]
        room = self._ancestors.shape[1]
        if (needed := int(rows.times.max()) + 1) > room:
            self._outgrown(tgt=needed)
            room = self._ancestors.shape[1]
        where = torch.from_numpy(rows.slots * self.places + rows.places).to(device)
        self._written_to.fill_(room)
        for to, given in (
            (self._tokens, rows.tokens),
            (self._times, rows.times),
            (self._written_to, rows.times),
        ):
            to[where] = torch.from_numpy(np.asarray(given, np.int64)).to(device)
        until = min(until, room)
        self._ancestors[where, :until] = torch.from_numpy(
            rows.ancestors[:, :until].astype(np.int64)
        ).to(device)
        self._run()
        log_probs = self._within(self._log_probs[where], rows.slots)
        best, ids = best_allowed(log_probs, rows, count)
        everything = log_probs.cpu().numpy() if whole else None
        return best.cpu().numpy(), ids.cpu().numpy().astype(np.int32), everything

    def _run(self) -> None:
        """The step, captured if it can be and is not yet; casts are its own."""
        with torch.autocast(self.engine.device.type, enabled=False):
            self._replay_or_compute()

    def _replay_or_compute(self) -> None:
        if self.engine.device.type != "cuda":
            self._log_probs = self._forward()
            return
        # after a run on another stream, in which libraries set themselves up
        if self._graph is None:
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._forward()
            torch.cuda.current_stream().wait_stream(stream)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._log_probs = self._forward()
        self._graph.replay()

    def _forward(self) -> Float[Tensor, "N V"]:
        """Log-probabilities after the token of every row; its keys and values stay where they are
        made.
        """
        engine, weights = self.engine, self.engine.weights
        x = engine.embedded(weights.tgt, self._tokens, self._times)
        for number, layer in enumerate(weights.decoder):
            x = engine.residual(
                x, layer, 0, partial(self._look_back, number, layer.own)
            )
            if layer.across is not None:
                x = engine.residual(
                    x, layer, 1, partial(self._look_across, number, layer.across)
                )
            x = engine.residual(
                x, layer, len(layer.norms) - 1, partial(engine.feed_forward, layer)
            )
        x = engine.norm(x, weights.decoder_norm)
        return engine.linear(x, weights.projection).log_softmax(-1)

    def _look_back(
        self, number: int, own: Attention, x: Float[Tensor, "N D"]
    ) -> Float[Tensor, "N D"]:
        engine, times = self.engine, self._times
        keys, values = self._mine[number]  # S P T+1 H K
        row = torch.arange(len(x), device=engine.device)
        slot, place = row // self.places, row % self.places
        keys[slot, place, self._written_to] = engine.turned(
            engine.heads(x, own.key, own.key_gain), times
        ).to(engine.dtype)
        values[slot, place, self._written_to] = engine.heads(x, own.value).to(
            engine.dtype
        )
        when = torch.arange(self._ancestors.shape[1], device=engine.device)
        # N T
        before = torch.where(when == times[:, None], place[:, None], self._ancestors)
        # N T H K
        key, value = (part[slot[:, None], before, when] for part in (keys, values))
        query = engine.turned(engine.heads(x, own.query, own.query_gain), times)[
            :, None
        ]
        is_seen = (when <= times[:, None])[:, None]
        return engine.linear(
            engine.looked(query, key, value, is_seen)[:, 0], own.output
        )

    def _look_across(
        self, number: int, across: Attention, x: Float[Tensor, "N D"]
    ) -> Float[Tensor, "N D"]:
        """All places of a slot look at one source."""
        engine = self.engine
        keys, values = self._theirs[number]  # S M H K
        query = engine.heads(
            x.reshape(self.slots, self.places, -1), across.query, across.query_gain
        )
        is_seen = (
            torch.arange(keys.shape[1], device=engine.device) < self._src_lens[:, None]
        )
        return engine.linear(
            engine.looked(query, keys, values, is_seen[:, None]).flatten(0, 1),
            across.output,
        )

    def _outgrown(self, src: int = 0, tgt: int = 0) -> None:
        """Room for so many positions, at least twice of what there was; the step is captured
        anew.
        """
        self._graph = None
        if src:
            self._theirs = _wider(self._theirs, 3, max(src, 2 * self._theirs.shape[3]))
        if tgt:
            room = max(tgt, 2 * self._ancestors.shape[1])
            self._mine = _wider(self._mine[:, :, :, :, :-1], 4, room + 1)
            self._ancestors = _wider(self._ancestors, 1, room)

    def _within(
        self, log_probs: Float[Tensor, "R V"], slots: NDArray[np.int64]
    ) -> Float[Tensor, "R V"]:
        """Of what each row may become, made to add up to 1."""
        if not self._allowed:
            return log_probs
        within = torch.full_like(log_probs, -torch.inf)
        for row, slot in enumerate(slots.tolist()):
            ids = self._allowed.get(slot, slice(None))
            within[row, ids] = log_probs[row, ids]
        return within.log_softmax(-1)


def _wider(room: Tensor, dim: int, size: int) -> Tensor:
    """Return the same with zeros behind it along one dimension."""
    shape = list(room.shape)
    shape[dim] = size - shape[dim]
    return torch.cat([room, room.new_zeros(shape)], dim)
