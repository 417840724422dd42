"""What a step takes is foreseen, and a batch cut into parts is the same batch."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import weft
from weft.config import Seq2SeqSection
from weft.data.batches import Batch, slices
from weft.data.label_batches import LabelBatch
from weft.data.windows import WindowBatch
from weft.errors import OutOfMemoryError
from weft.kernels import operations, training
from weft.model.transformer import Seq2SeqTransformer
from weft.training import memory
from weft.training.loss import CrossEntropy, LossSums
from weft.training.memory import free_bytes, kept_bytes, parts_to_fit, recompute_layers

SHAPE = Seq2SeqSection(d_model=32, d_ff=64, num_heads=4, dropout=0.0)


def made(rows: int, src_len: int = 9, tgt_len: int = 7) -> Batch:
    generator = torch.Generator().manual_seed(3)
    src, tgt = (
        torch.randint(4, 41, (rows, n), generator=generator) for n in (src_len, tgt_len)
    )
    src[0, 5:] = tgt[-1, 3:] = 0
    return Batch(
        src, tgt, tgt, np.arange(rows), int((src != 0).sum()), int((tgt != 0).sum())
    )


def loss_of(model: Seq2SeqTransformer, batch: Batch) -> LossSums:
    return CrossEntropy()(
        model.states(batch.src, batch.tgt_in), model.output, batch.tgt_out
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5, 100])
def test_parts_are_the_whole(count: int) -> None:
    batch = made(5)
    parts = batch.parts(count)
    assert len(parts) <= count
    assert torch.equal(torch.cat([p.src for p in parts]), batch.src)
    assert torch.equal(torch.cat([p.tgt_in for p in parts]), batch.tgt_in)
    assert torch.equal(torch.cat([p.tgt_out for p in parts]), batch.tgt_out)
    assert np.concatenate([p.rows for p in parts]).tolist() == batch.rows.tolist()
    assert sum(p.num_src_tokens for p in parts) == batch.num_src_tokens
    assert sum(p.num_tgt_tokens for p in parts) == batch.num_tgt_tokens
    labels = LabelBatch(batch.src, torch.arange(5), batch.rows, batch.num_src_tokens, 5)
    assert [p.labels.tolist() for p in labels.parts(count)] == [
        list(range(5))[s] for s in slices(5, count)
    ]
    assert sum(p.num_src_tokens for p in labels.parts(count)) == batch.num_src_tokens
    windows = WindowBatch(
        batch.tgt_in, batch.tgt_out, batch.tgt_in.sign(), batch.num_tgt_tokens
    )
    assert torch.equal(
        torch.cat([p.tgt_out for p in windows.parts(count)]), batch.tgt_out
    )
    assert all(
        p.segments is not None and len(p.segments) == len(p.tgt_in)
        for p in windows.parts(count)
    )
    assert sum(p.num_tgt_tokens for p in windows.parts(count)) == batch.num_tgt_tokens


def test_the_gradient_of_the_parts_is_that_of_the_batch() -> None:
    model, batch = Seq2SeqTransformer(SHAPE, 41, 41, joint=True), made(7)
    gradients = []
    for count in (1, 3):
        model.zero_grad()
        for part in batch.parts(count):
            (loss_of(model, part).loss_sum / batch.num_tgt_tokens).backward()
        gradients.append(
            [p.grad.clone() for p in model.parameters() if p.grad is not None]
        )
    for whole, cut in zip(*gradients, strict=True):
        assert torch.allclose(whole, cut, atol=1e-6)


def test_kept_bytes_count_each_piece_of_memory_once_and_no_parameter() -> None:
    layer, x = nn.Linear(8, 8), torch.randn(16, 8)

    def forward() -> torch.Tensor:
        y = layer(x)  # keeps x and the weight
        return y * y + y.exp()  # keeps y once, and exp(y)

    assert kept_bytes(forward, layer.parameters()) == 3 * 16 * 8 * 4


def test_what_is_foreseen_for_an_eighth_is_what_the_whole_keeps() -> None:
    model, batch = Seq2SeqTransformer(SHAPE, 41, 41, joint=True), made(64)
    whole = memory.BESIDE * kept_bytes(
        lambda: loss_of(model, batch), model.parameters()
    )
    fixed = memory.OF_WEIGHTS * sum(p.numel() for p in model.parameters())
    for parts in (1, 2, 5):
        free = (fixed + whole / parts) / memory.SPARE
        assert (
            parts_to_fit(model, lambda b: loss_of(model, b), batch, 1.05 * free)
            == parts
        )
        assert (
            parts_to_fit(model, lambda b: loss_of(model, b), batch, 0.95 * free) > parts
        )
    assert parts_to_fit(model, lambda b: loss_of(model, b), batch, float("inf")) == 1
    assert parts_to_fit(model, lambda b: loss_of(model, b), batch, 1000.0) == 64, (
        "one row at a time, at the most"
    )


def test_what_the_threads_of_native_kernels_take_is_counted_once(
    take_kernels: Callable[..., None],
) -> None:
    """A number for each query and key, where each query has a mask of its own; smaller parts need
    it, too.
    """
    take_kernels()
    query = torch.randn(1, 2, 700, 8, requires_grad=True)
    causal = torch.ones(700, 700, dtype=torch.bool).tril()
    with training.counting_workspaces() as workspaces:
        operations.attention(query, query, query, causal)
        operations.attention(query, query, query, causal[-1:])
    threads = torch.get_num_threads()
    assert 4 * 700 * 700 * threads < workspaces[0] < 1.5 * 4 * 700 * 700 * threads
    assert workspaces[1] < 0.3 * workspaces[0]

    model, batch = Seq2SeqTransformer(SHAPE, 41, 41, joint=True), made(64)
    with training.counting_workspaces() as workspaces:
        whole = memory.BESIDE * kept_bytes(
            lambda: loss_of(model, batch), model.parameters()
        )
    fixed = memory.OF_WEIGHTS * sum(p.numel() for p in model.parameters())
    for parts, spare in (
        (1, max(workspaces)),
        (2, max(workspaces)),
        (5, max(workspaces)),
    ):
        free = (fixed + spare + 1.05 * whole / parts) / memory.SPARE
        assert parts_to_fit(model, lambda b: loss_of(model, b), batch, free) == parts
        less = free - (spare + 0.1 * whole / parts) / memory.SPARE
        assert parts_to_fit(model, lambda b: loss_of(model, b), batch, less) > parts


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("native_kernels", [True, False])
def test_layers_computed_twice_keep_less_and_give_the_same_gradients(
    dropout: float, native_kernels: bool, take_kernels: Callable[..., None]
) -> None:
    if native_kernels:
        take_kernels()
    model, batch = (
        Seq2SeqTransformer(
            SHAPE.model_copy(update={"dropout": dropout}), 41, 41, joint=True
        ),
        made(16),
    )
    kept, gradients = [], []
    for _ in range(2):
        model.zero_grad()
        kept.append(kept_bytes(lambda: loss_of(model, batch), model.parameters()))
        torch.manual_seed(5)
        loss_of(model, batch).loss_sum.backward()
        gradients.append(
            [p.grad.clone() for p in model.parameters() if p.grad is not None]
        )
        recompute_layers(model)
    assert kept[1] < 0.5 * kept[0]
    assert len(gradients[0]) == len(gradients[1]) > 50
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_free_memory_is_that_of_the_machine_or_of_its_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        10**7 < free_bytes(torch.device("cpu")) < 10**14
        or not Path("/proc/meminfo").exists()
    )
    monkeypatch.setattr(memory, "_machine_bytes", lambda: 4000.0)
    monkeypatch.setattr(memory, "_group_bytes", lambda: 3000.0)
    assert free_bytes(torch.device("cpu")) == 3000


V2 = ("", "memory.max", "memory.current", "anon 900\ninactive_file 300\nfile 500\n")
V1 = (
    "memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "inactive_file 1\ntotal_inactive_file 300\n",
)


@pytest.mark.parametrize(
    ("base", "limit", "taken", "stat"), [V2, V1], ids=["version 2", "version 1"]
)
def test_a_control_group_leaves_what_neither_it_nor_those_around_it_have_taken(
    base: str, limit: str, taken: str, stat: str, tmp_path: Path
) -> None:
    root, own = tmp_path / "sys", tmp_path / "own"
    inner = root / base / "outer" / "inner"
    inner.mkdir(parents=True)
    own.write_text(
        f"7:cpu,cpuacct:/\n{'4:memory' if base else '0:'}:/outer/inner\n", "ascii"
    )

    def set_limit(folder: Path, most: str, used: int) -> None:
        (folder / limit).write_text(f"{most}\n", "ascii")
        (folder / taken).write_text(f"{used}\n", "ascii")
        (folder / "memory.stat").write_text(stat, "ascii")

    assert memory._group_bytes(root, own) == float("inf")
    set_limit(inner, "5000", 2000)
    assert memory._group_bytes(root, own) == 3300
    set_limit(inner.parent, "4000", 2500)
    assert memory._group_bytes(root, own) == 1800
    set_limit(root / base, "max", 9000)
    assert memory._group_bytes(root, own) == 1800
    assert memory._group_bytes(root, tmp_path / "none") == float("inf")


def test_a_path_that_begins_outside_of_a_container_leaves_its_root(
    tmp_path: Path,
) -> None:
    (tmp_path / "own").write_text("0::/not/to/be/seen\n", "ascii")
    for name, text in {
        "memory.max": "700",
        "memory.current": "200",
        "memory.stat": "",
    }.items():
        (tmp_path / name).write_text(text, "ascii")
    assert memory._group_bytes(tmp_path, tmp_path / "own") == 500


def test_a_limit_of_the_process_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(
        "Name:\tpython\nVmPeak:\t 9 kB\nVmSize:\t  2 kB\n", "utf-8"
    )
    header = (
        "Limit                     Soft Limit           Hard Limit           Units\n"
    )
    for soft, left in (("unlimited", float("inf")), ("5000", 5000 - 2048)):
        line = f"Max address space         {soft:<20} unlimited            bytes\n"
        (tmp_path / "limits").write_text(header + line, "ascii")
        assert memory._process_bytes(tmp_path) == left
    assert memory._process_bytes(tmp_path / "none") == float("inf")


def test_memory_that_does_not_suffice_for_a_first_look_is_told_with_the_batch(
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("weft.run.preparing.parts_to_fit", fail)
    with pytest.raises(
        OutOfMemoryError,
        match=r"a batch of \d+ pairs, .*; lower batches.tokens_per_batch and raise",
    ):
        weft.train(
            train=write_pairs(40),
            out=tmp_path / "out",
            settings=tiny_settings,
            quiet=True,
        )


@pytest.mark.parametrize(
    "place",
    ["weft.run.preparing.parts_to_fit", "torch.optim.Adam.step"],
)
def test_memory_that_does_not_suffice_is_told_with_the_keys_of_the_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(place, fail)
    text = tmp_path / "text.txt"
    text.write_text("to be, or not to be\n" * 30, "utf-8")
    small = ("model.d_model=16", "model.d_ff=24", "model.num_heads=2")
    with pytest.raises(
        OutOfMemoryError,
        match=r"; lower batches.batch_size or batches.window_len and raise training",
    ):
        weft.train(
            train=str(text),
            out=tmp_path / "out",
            settings=("task=language-modelling", *small),
            allow_bad_data=True,
            quiet=True,
        )


@pytest.mark.long
def test_a_run_for_which_memory_is_short_computes_in_parts_says_so_and_goes_on_alike(
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def trained(name: str, steps: int) -> Path:
        settings = (
            *tiny_settings,
            f"training.max_steps={steps}",
            "training.schedule=constant",
            "model.dropout=0.1",
        )
        weft.train(train=write_pairs(40), out=tmp_path / name, settings=settings)
        return tmp_path / name

    def weights(folder: Path) -> bytes:
        return (folder / "model.safetensors").read_bytes()

    plain = trained("plain", 6)
    monkeypatch.setattr("weft.run.preparing.free_bytes", lambda device: 1000.0)
    whole = trained("whole", 6)
    said = capsys.readouterr().err
    parts = json.loads((whole / "run" / "machine.json").read_bytes())["parts"]
    assert parts > 1
    assert (
        f"note: each batch is computed in {parts} parts, as 0.0 GB of memory are free"
        in said
    )
    assert weights(whole) != weights(plain), "other dropout masks"
    trained("stopped", 3)
    monkeypatch.setattr("weft.run.preparing.free_bytes", lambda device: 1.0e12)
    assert weights(trained("stopped", 6)) == weights(whole), "the first start decided"
