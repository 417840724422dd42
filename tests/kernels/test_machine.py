"""What is said of the machine."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import weft
from weft.errors import UsageError
from weft.kernels import torch_machine
from weft.kernels import training as kernels
from weft.kernels.machine import (
    Machine,
    machine_for_use,
    threads_asked,
    usable_cores,
)
from weft.kernels.torch_machine import (
    choose_machine,
    machine_for_torch,
    matrix_peak,
)
from weft.tasks.opening import needs_torch


def test_more_threads_than_cores_are_said_to_be_slow() -> None:
    cores = usable_cores()
    assert (
        f"more threads than its {cores} cores"
        in choose_machine("float32", cores + 1).describe()
    )
    assert "more threads" not in choose_machine("float32", cores).describe()


def test_a_model_is_used_in_float32_unless_another_precision_is_asked_for() -> None:
    assert machine_for_use().precision == "float32"
    assert machine_for_use("auto").precision in (
        "float32",
        "bfloat16",
        "float16",
    )
    with pytest.raises(
        UsageError,
        match="precision = int4: it must be float32, bfloat16, float16 or auto",
    ):
        machine_for_use("int4")
    assert machine_for_use("bfloat16").precision == "bfloat16"
    with pytest.raises(UsageError, match="precision = float16: only GPUs have it"):
        machine_for_use("float16")
    if torch.cuda.is_available():
        assert machine_for_torch("float16").precision == "float16"


def test_a_gpu_is_no_reason_to_load_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(Path, "exists", lambda path: True)  # also a driver's files
    plain: Any = SimpleNamespace(is_recurrent=False)
    recurrent: Any = SimpleNamespace(is_recurrent=True)
    assert not needs_torch(plain)
    assert needs_torch(plain, "torch")
    assert needs_torch(recurrent)


@pytest.mark.parametrize(
    ("facts", "precision"),
    [("flags : avx512f avx512_bf16", "bfloat16"), ("flags : avx2", "float32")],
)
def test_the_fastest_precision_is_the_cpus(
    facts: str, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(facts)
    monkeypatch.setattr("weft.kernels.machine._CPU_FACTS", tmp_path / "cpuinfo")
    assert machine_for_use("auto").precision == precision
    (tmp_path / "cpuinfo").unlink()
    assert machine_for_use("auto").precision == "float32"


def test_the_matrix_peak_is_measured_once_and_said() -> None:
    machine = choose_machine("float32", 1)
    assert machine.peak_flops == 0
    assert "products" not in machine.describe()
    measured = torch_machine.measured(machine)
    assert 1e8 < measured.peak_flops < 1e16
    # no other measurement would give the very same
    assert torch_machine.measured(measured) == measured
    rate = f"{measured.peak_flops / 1e9:,.0f} billion operations a second in matrix products"
    assert (
        measured.describe()
        == f"{machine.device}, float32, PyTorch's kernels, 1 thread, {rate} (as the recipe says)"
    )


def test_bfloat16_has_a_peak_of_its_own() -> None:
    assert matrix_peak("cpu", "bfloat16", 1) != matrix_peak("cpu", "float32", 1)


def test_what_was_written_down_without_a_peak_is_read() -> None:
    old = {"device": "cpu", "precision": "float32", "threads": 1, "reason": ""}
    assert Machine(**old).peak_flops == 0
    assert Machine(**{**old, "precision": "tf32"}).precision == "float32"
    assert Machine(**asdict(Machine(**old, peak_flops=2.5e9))).peak_flops == 2.5e9


@pytest.mark.parametrize(
    ("precision", "kind"), [("bfloat16", torch.bfloat16), ("float16", torch.float16)]
)
def test_products_are_in_the_precision_chosen(
    precision: str, kind: torch.dtype
) -> None:
    layer, x = torch.nn.Linear(3, 5), torch.randn(2, 3)
    with torch_machine.autocast(choose_machine(precision, 1)):
        assert layer(x).dtype == kind
    with torch_machine.autocast(choose_machine("float32", 1)):
        assert layer(x).dtype == torch.float32


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU has float16 of its own")
def test_what_a_processor_lacks_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"training.kernels = native: they have no float16"
    ):
        choose_machine("float16", 1, "native")
    machine = choose_machine("float16", 1, "auto")
    assert machine.kernels == "torch"
    assert "times float32's speed, native kernels have none" in machine.describe()


def test_a_type_that_is_only_imitated_is_not_measured_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[tuple[int, ...]] = []

    def gain_of(*asked: Any) -> float:
        sizes.append(asked[:3])
        return 0.004

    monkeypatch.setattr(torch_machine, "_gain_of", gain_of)
    assert torch_machine._best_precision(torch.device("cpu")) == (
        "float32",
        "bfloat16 products measured at 0.0 times float32's speed",
    )
    assert sizes == [(128, 128, 128)]
    monkeypatch.setattr(
        torch_machine, "_gain_of", lambda rows, *_: 0.5 if rows == 128 else 4.0
    )
    assert torch_machine._best_precision(torch.device("cpu"))[0] == "bfloat16"


def test_what_is_loaded_later_in_a_process_waits_for_no_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine_for_torch(sets_threads=True)
    monkeypatch.setattr(
        torch_machine, "_seconds", lambda *_: pytest.fail("measured again")
    )
    machine_for_torch(sets_threads=True)


@pytest.fixture
def three_threads() -> Iterator[None]:
    """What a program that uses Weft has set for itself."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_a_loaded_model_leaves_the_process_as_it_is(
    tiny_folder: Path, precision: str
) -> None:
    """Its threads, its random numbers, whose kernels compute: a run in another thread goes on as if
    alone.
    """
    library: Any = object()
    torch.manual_seed(3)
    torch.rand(())
    state = torch.get_rng_state()
    with kernels.using(kernels.Kernels(library, float32_too=True)):
        model = weft.load(tiny_folder, precision=precision)
        assert model.translate("The cat sees the dog.")[0].text
        assert torch.get_num_threads() == 3
        assert torch.equal(torch.get_rng_state(), state)
        assert kernels._kernels().library is library
    assert model._rows.workers == (
        1 if torch.cuda.is_available() else threads_asked() or usable_cores()
    )


@pytest.mark.usefixtures("three_threads")
def test_a_command_has_its_process_for_itself() -> None:
    chosen = machine_for_torch(sets_threads=True)
    assert torch.get_num_threads() == chosen.threads <= usable_cores()


def test_threads_that_other_work_has_taken_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("weft.kernels.torch_machine.usable_cores", lambda: 4)
    monkeypatch.setattr("weft.kernels.torch_machine._useful_threads", lambda device: 1)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    said = "4 threads were no faster than 1, as other work keeps the cores busy"
    assert said in choose_machine("float32").describe()
    assert said not in choose_machine("float32", threads=1).describe()


@pytest.mark.parametrize(
    ("said", "threads"), [("3", 3), ("2,4", 2), ("many", None), ("0", None), ("", None)]
)
def test_the_environment_says_how_many_threads(
    monkeypatch: pytest.MonkeyPatch, said: str, threads: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    monkeypatch.setattr("weft.kernels.torch_machine._useful_threads", lambda device: 7)
    assert choose_machine("float32").threads == (threads or 7)
    assert machine_for_use().threads == (threads or usable_cores())
    assert choose_machine("float32", threads=5).threads == 5
