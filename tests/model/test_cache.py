from collections.abc import Callable

import pytest
import torch

from weft.model.cache import CausalCache, DecoderCache, KeysValues, LayerCache

N, H, T, S, D_K, LAYERS = 3, 2, 5, 7, 11, 2
AnyCache = CausalCache | DecoderCache
Make = Callable[..., AnyCache]

some_rows = pytest.mark.parametrize(
    "rows",
    [[2, 0, 1], [1, 1, 0, 2, 2], [1], []],
    ids=["reorder", "repeat", "one", "none"],
)


def drawn(rows: int, length: int, generator: torch.Generator) -> KeysValues:
    key, value = torch.randn(2, rows, H, length, D_K, generator=generator)
    return KeysValues(key, value)


def causal(rows: int = N, seen: int = T, seed: int = 0) -> CausalCache:
    generator = torch.Generator().manual_seed(seed)
    layers = tuple(drawn(rows, seen, generator) for _ in range(LAYERS))
    return CausalCache(layers, torch.randint(1, 100, (rows, seen), generator=generator))


def decoder(
    rows: int = N, seen: int = T, width: int = S, seed: int = 0
) -> DecoderCache:
    generator = torch.Generator().manual_seed(seed)
    layers = tuple(
        LayerCache(drawn(rows, seen, generator), drawn(rows, width, generator))
        for _ in range(LAYERS)
    )
    return DecoderCache(layers, torch.rand(rows, width, generator=generator) < 0.5)


@pytest.fixture(params=[causal, decoder], ids=["causal", "decoder"])
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def assert_same_rows(
    found: KeysValues, rows: list[int], source: KeysValues, source_rows: list[int]
) -> None:
    """Some rows of `found` are those of `source`, as far as it reaches."""
    assert torch.equal(found.key[rows, :, : source.length], source.key[source_rows])
    assert torch.equal(found.value[rows, :, : source.length], source.value[source_rows])


def assert_rows(
    found: AnyCache, rows: list[int], source: AnyCache, source_rows: list[int]
) -> None:
    """In all layers, and at the source's positions; behind them is padding."""
    if isinstance(found, CausalCache):
        assert torch.equal(found.ids[rows], source.ids[source_rows])
        for a, b in zip(found.layers, source.layers, strict=True):
            assert a.length == b.length
            assert_same_rows(a, rows, b, source_rows)
        return
    width = source.memory_padding.shape[1]
    assert torch.equal(
        found.memory_padding[rows, :width], source.memory_padding[source_rows]
    )
    assert found.memory_padding[rows, width:].all()
    for a, b in zip(found.layers, source.layers, strict=True):
        assert a.past.length == b.past.length
        assert_same_rows(a.past, rows, b.past, source_rows)
        assert_same_rows(a.memory, rows, b.memory, source_rows)


@some_rows
def test_select(make: Make, rows: list[int]) -> None:
    before = make()
    after = before.select(torch.tensor(rows, dtype=torch.long))
    assert after.length == T
    assert_rows(after, list(range(len(rows))), before, rows)


@some_rows
def test_select_keeps_as_many_rows_as_it_is_given(rows: list[int]) -> None:
    chosen = torch.tensor(rows, dtype=torch.long)
    assert decoder().select(chosen).memory_padding.shape == (len(rows), S)
    assert causal().select(chosen).layers[1].value.shape == (len(rows), H, T, D_K)


def test_select_leaves_the_old_one_as_it_was(make: Make) -> None:
    before = make()
    after = before.select(torch.tensor([0, 1, 2]))
    layer = after.layers[0]
    (layer.past if isinstance(layer, LayerCache) else layer).key.zero_()
    if isinstance(after, DecoderCache):
        after.memory_padding.fill_(True)
    assert_rows(before, [0, 1, 2], make(), [0, 1, 2])


def test_length_counts_positions(make: Make) -> None:
    assert make(seen=0).length == 0
    assert make(seen=4).length == 4


def test_extended_has_the_new_ones_behind() -> None:
    generator = torch.Generator().manual_seed(3)
    old, new = drawn(N, 2, generator), drawn(N, 3, generator)
    both = old.extended(new)
    assert (old.length, both.length) == (2, 5)
    assert torch.equal(both.key, torch.cat([old.key, new.key], dim=2))
    assert torch.equal(both.value, torch.cat([old.value, new.value], dim=2))


def test_an_empty_beginning_has_no_say_in_the_type() -> None:
    new = KeysValues(
        torch.ones(N, H, 1, D_K, dtype=torch.bfloat16),
        torch.ones(N, H, 1, D_K, dtype=torch.bfloat16),
    )
    empty = drawn(N, 0, torch.Generator())
    assert empty.extended(new).key.dtype == torch.bfloat16


def test_frozen(make: Make) -> None:
    with pytest.raises(AttributeError):
        make().layers = ()  # type: ignore[misc]
