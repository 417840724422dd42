"""What is said of the machine."""

from weft.machine import choose_machine, usable_cores


def test_more_threads_than_cores_are_said_to_be_slow() -> None:
    cores = usable_cores()
    assert f"more threads than its {cores} cores" in choose_machine("float32", cores + 1).describe()
    assert "more threads" not in choose_machine("float32", cores).describe()
