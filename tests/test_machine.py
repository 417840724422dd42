"""What is said of the machine."""

from dataclasses import asdict

from weft.machine import Machine, choose_machine, matrix_peak, usable_cores


def test_more_threads_than_cores_are_said_to_be_slow() -> None:
    cores = usable_cores()
    assert f"more threads than its {cores} cores" in choose_machine("float32", cores + 1).describe()
    assert "more threads" not in choose_machine("float32", cores).describe()


def test_the_matrix_peak_is_measured_once_and_said() -> None:
    machine = choose_machine("float32", 1)
    assert machine.peak_flops == 0
    assert "products" not in machine.describe()
    measured = machine.measured()
    assert 1e8 < measured.peak_flops < 1e16
    assert measured.measured() == measured  # no other measurement would give the very same
    rate = f"{measured.peak_flops / 1e9:,.0f} billion operations a second in matrix products"
    assert (
        measured.describe()
        == f"{machine.device}, float32, PyTorch's kernels, 1 threads, {rate} (as the recipe says)"
    )


def test_bfloat16_has_a_peak_of_its_own() -> None:
    assert matrix_peak("cpu", "bfloat16", 1) != matrix_peak("cpu", "float32", 1)


def test_what_was_written_down_without_a_peak_is_read() -> None:
    old = {"device": "cpu", "precision": "float32", "threads": 1, "reason": ""}
    assert Machine(**old).peak_flops == 0
    assert Machine(**asdict(Machine(**old, peak_flops=2.5e9))).peak_flops == 2.5e9
