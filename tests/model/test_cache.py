import pytest
import torch

from weft.model.cache import DecoderCache, LayerCache

N, H, T, S, K, LAYERS = 3, 2, 5, 7, 11, 2


def cache(rows: int = N, seen: int = T, width: int = S, seed: int = 0) -> DecoderCache:
    generator = torch.Generator().manual_seed(seed)

    def some(length: int) -> torch.Tensor:
        return torch.randn(rows, H, length, K, generator=generator)

    layers = tuple(LayerCache(some(seen), some(seen), some(width), some(width)) for _ in range(LAYERS))
    return DecoderCache(layers, torch.rand(rows, width, generator=generator) < 0.5)


def assert_rows(found: DecoderCache, rows: list[int], source: DecoderCache, source_rows: list[int]) -> None:
    """Some rows of `found` are those of `source`, on its source positions; behind them is padding."""
    width = source.memory_padding.shape[1]
    assert torch.equal(found.memory_padding[rows, :width], source.memory_padding[source_rows])
    assert found.memory_padding[rows, width:].all()
    for a, b in zip(found.layers, source.layers, strict=True):
        assert torch.equal(a.key[rows], b.key[source_rows])
        assert torch.equal(a.value[rows], b.value[source_rows])
        assert torch.equal(a.memory_key[rows, :, :width], b.memory_key[source_rows])
        assert torch.equal(a.memory_value[rows, :, :width], b.memory_value[source_rows])


@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 0, 2, 2], [1], []], ids=["reorder", "repeat", "one", "none"])
def test_select(rows: list[int]) -> None:
    before = cache()
    after = before.select(torch.tensor(rows, dtype=torch.long))
    assert after.memory_padding.shape == (len(rows), S)
    assert after.length == T
    assert_rows(after, list(range(len(rows))), before, rows)


def test_select_leaves_the_old_one_as_it_was() -> None:
    before = cache()
    after = before.select(torch.tensor([0, 1, 2]))
    after.layers[0].key.zero_()
    after.memory_padding.fill_(True)
    assert_rows(before, [0, 1, 2], cache(), [0, 1, 2])


@pytest.mark.parametrize(("mine", "theirs"), [(7, 7), (7, 3), (3, 7)])
def test_join(mine: int, theirs: int) -> None:
    a, b = cache(3, T, mine, seed=1), cache(2, T, theirs, seed=2)
    both = a.join(b)
    assert both.memory_padding.shape == (5, 7)
    assert both.length == T
    assert_rows(both, [0, 1, 2], a, [0, 1, 2])
    assert_rows(both, [3, 4], b, [0, 1])


def test_join_refuses_other_lengths() -> None:
    with pytest.raises(ValueError, match="caches of 5 and 2 target positions"):
        cache().join(cache(seen=2))


def test_join_refuses_other_depths() -> None:
    shallow = DecoderCache(cache().layers[:1], cache().memory_padding)
    with pytest.raises(ValueError, match="shorter"):
        cache().join(shallow)


def test_length_counts_target_positions() -> None:
    assert cache(seen=0).length == 0
    assert cache(seen=4).length == 4


def test_frozen() -> None:
    with pytest.raises(AttributeError):
        cache().memory_padding = torch.zeros(N, S, dtype=torch.bool)  # type: ignore[misc]
