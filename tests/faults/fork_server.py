"""Runs trainings, each in a forked process of its own; can kill one, or fill its disk, at any file
operation.

Started once (`python fork_server.py`), it has everything imported and computes nothing itself, so
that a training costs a fork and not a start of Python. One JSON object a line comes in and one goes
out:

    in:  {"out", "train", "settings", "events": FILE, "kill_at": N, "kill_after": SECONDS,
    "fail_at": N, "mono": ["LANG=FILE"],
          "signal_at": {"N": SIGNAL}, "twice": BOOL, "list_at": N, "break": NAME, "fresh",
          "allow_data_change", "processes": N, "gradients": FILE, "large": ROWS}
    out: the exit code, negative where a signal ended it, and what its standard error said

Several processes find each other as torchrun's do, by the environment; the first bad exit code
counts.

Operations are told by Python's own audit events: opening for writing, renaming, removing and
making, below `out`; beside them those that this script adds: each step, each micro-batch, each
evaluation, and each tensor file, which a kill there leaves half written. They are counted from 0,
and written to the file `events`.
"""

import json
import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from weft.data import base, column, crew, encoding
from weft.data.check import language_identification
from weft.data.mono import MonoText
from weft.data.train_text import parse_texts
from weft.errors import WeftError
from weft.folder.model_folder import RunFolder
from weft.kernels import torch_machine
from weft.recipes.file import load_recipe
from weft.run.course.course import train_in_steps
from weft.run.course.material import MonoUse
from weft.run.request import Request
from weft.run.train import train
from weft.tasks import trainable_translation
from weft.training import checkpoint, trainer
from weft.training.distributed import full_tensor
from weft.training.log import Log

# What a run imports when it first needs it, which would be in every fork.
for late in (
    "sacrebleu.tokenizers.tokenizer_13a",
    "tensorboard.compat.proto.event_pb2",
    "tensorboard.summary.writer.record_writer",
    "torch._dynamo",
    "torch.distributed.algorithms",
):
    with suppress(ModuleNotFoundError):
        import_module(late)

OPERATIONS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
WRITING = os.O_WRONLY | os.O_RDWR
PATIENCE = 420  # seconds, after which processes that wait for each other are ended


def main() -> None:
    torch_machine.matrix_peak = lambda *_: 1e11  # not measured for every training anew
    language_identification._detector()  # nor unpacked, which takes as long as the steps
    os.fsync = lambda _: None  # a kill leaves what the kernel holds, on the disk or not
    for line in sys.stdin:
        print(json.dumps(in_forks(json.loads(line))), flush=True)


def in_forks(asked: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    places = joined_places(asked["processes"]) if "processes" in asked else [{}]
    children = [forked(asked, place, reading, writing) for place in places]
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        if (
            "kill_after" in asked
            and not select.select([pipe], [], [], asked["kill_after"])[0]
        ):
            os.kill(children[0], signal.SIGKILL)
        said = pipe.read().decode("utf-8", "replace")
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return {"code": next((code for code in codes if code), 0), "said": said}


def joined_places(count: int) -> list[dict[str, str]]:
    """What torchrun tells each of so many processes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common |= {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    return [
        {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)
    ]


def forked(
    asked: dict[str, Any], place: dict[str, str], reading: int, writing: int
) -> int:
    """The number of a process that trains and writes its standard error into a pipe."""
    child = os.fork()
    if child:
        return child
    os.close(reading)
    os.dup2(writing, 2)
    os.close(writing)
    os.environ.update(place)
    if place:
        signal.alarm(PATIENCE)
    code = 1
    try:
        code = run(asked)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(code)


def run(asked: dict[str, Any]) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out = Path(asked["out"])
    watch(asked)
    if asked.get("break"):
        BREAKS[asked["break"]]()
    if asked.get("large"):
        take_for_large(asked["large"])
    if asked.get("gradients"):
        keep_gradients(asked["gradients"])
    keys = ("fresh", "allow_data_change")
    request = Request(
        recipe=load_recipe(None, asked["settings"]),
        out=out,
        train=parse_texts(asked["train"]),
        **{key: asked[key] for key in keys if key in asked},
    )
    try:
        if "mono" in asked:
            use = MonoUse(tuple(map(MonoText.parse, asked["mono"])))
            train_in_steps(request, use, Log(quiet=True))
        else:
            train(request, Log(RunFolder(out).metrics, every=1, quiet=True))
    except WeftError as error:
        print(f"weft: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def take_for_large(rows: int) -> None:
    """Take a text of so many rows for a large one, and prepare it in this process alone."""
    os.environ[crew.VARIABLE] = "1"
    column.LARGE = base.LARGE = rows
    column._BLOCK = rows // 4
    encoding.STRETCH = rows


def watch(asked: dict[str, Any]) -> None:
    """Count operations; die, fail or get a signal at the ones that are asked for."""
    out = os.path.abspath(asked["out"])
    events = (
        os.open(asked["events"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        if asked.get("events")
        else None
    )
    kill_at, fail_at = asked.get("kill_at"), asked.get("fail_at")
    signals = {int(n): number for n, number in asked.get("signal_at", {}).items()}
    count, dying = -1, False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count, dying
        path = told_path(event, arguments)
        if dying or path is None or not os.path.abspath(path).startswith(out):
            return
        count += 1
        if events is not None:
            name = event.removeprefix("weft.")
            os.write(events, f"{name} {os.path.relpath(path, out)}\n".encode())
        if count == kill_at:
            dying = True
            if event == "weft.half":
                half(path)
            os.kill(os.getpid(), signal.SIGKILL)
        if (
            fail_at is not None
            and count >= fail_at
            and event in ("open", "os.mkdir", "weft.half")
        ):
            raise OSError(28, "No space left on device", path)
        if count == asked.get("list_at"):
            print(
                json.dumps({"children": children(), "shared_memory": shared_memory()}),
                file=sys.stderr,
            )
        if count in signals:
            for _ in range(2 if asked.get("twice") else 1):
                os.kill(os.getpid(), signals[count])

    say_more(out)
    sys.addaudithook(hook)


def told_path(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The path of an operation that changes something; None for any other event."""
    if event == "open":
        path, mode, flags = arguments
        writes = bool(flags & WRITING) or bool(mode and set(str(mode)) & set("wax+"))
        return os.fsdecode(path) if writes and isinstance(path, str | bytes) else None
    if event == "os.rename":
        return os.fsdecode(arguments[1])
    if event in OPERATIONS or event.startswith("weft."):
        return os.fsdecode(arguments[0])
    return None


def children() -> list[str]:
    """The processes that this one has started."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def shared_memory() -> list[str]:
    """What this process has mapped or opened of shared memory."""
    mapped = [
        line
        for line in Path("/proc/self/maps").read_text().split("\n")
        if "/dev/shm" in line
    ]
    opened = [
        os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
    ]
    return mapped + [path for path in opened if path.startswith("/dev/shm")]


def half(path: str) -> None:
    """Leave half of a file, as a write does that was cut off."""
    Path(path).write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{half")


def say_more(out: str) -> None:
    """Let steps, micro-batches, evaluations and tensor files be events as well."""
    take_step, forward = trainer.Trainer._take_step, trainer.Trainer._forward_backward
    evaluate, save_file = (
        trainable_translation.DevEvaluation.__call__,
        checkpoint.save_file,
    )

    def taking(self: Any) -> None:
        sys.audit("weft.step", out)
        take_step(self)

    def passing(self: Any, *arguments: Any) -> float:
        loss = forward(self, *arguments)
        sys.audit("weft.between", out)
        return loss

    def evaluating(self: Any, step: int) -> Any:
        sys.audit("weft.evaluate", out)
        return evaluate(self, step)

    def saving(tensors: Any, path: Path) -> None:
        sys.audit("weft.half", str(path))
        save_file(tensors, path)

    trainer.Trainer._take_step, trainer.Trainer._forward_backward = taking, passing
    trainable_translation.DevEvaluation.__call__ = evaluating
    checkpoint.save_file = saving


def keep_gradients(file: str) -> None:
    """Write down the gradients of the first update, before they are clipped."""
    clip = trainer.clip_gradients

    def keeping(model: Any, limit: float | None, scale: float) -> float:
        kept = {name: full_tensor(p.grad) for name, p in model.named_parameters()}
        if os.environ.get("RANK", "0") == "0" and not Path(file).exists():
            save_file(kept, file)
        return clip(model, limit, scale)

    trainer.clip_gradients = keeping


def save_in_place() -> None:
    """Break R1: a checkpoint is written where it stands, under its own name, the pointer first."""

    def save(self: Any, state: Any) -> Path:
        path = self.folder / f"step-{state.progress.step}"
        path.mkdir(parents=True, exist_ok=True)
        (self.folder / "latest").write_text(path.name)
        for old in self.newest_first():
            if old != path:
                checkpoint.shutil.rmtree(old)
        checkpoint.save_file(dict(state.model), path / "model.safetensors")
        checkpoint.save_file(dict(state.optimizer), path / "optimizer.safetensors")
        (path / "progress.json").write_text(json.dumps(vars(state.progress)))
        checkpoint.durable.write_manifest(
            path,
            ["model.safetensors", "optimizer.safetensors", "progress.json"],
            {"format": checkpoint.FORMAT, "step": state.progress.step, **self.facts},
        )
        return path

    checkpoint.Checkpoints.save = save


def draw_on() -> None:
    """Break R4: random numbers go on from wherever the process stands."""
    trainer.seed_random = lambda *_: None


def overflow() -> None:
    """Let the optimizer's fifth step leave a weight that is infinite: of unk, which no text
    holds.
    """
    after_step(
        5, lambda self: next(self.model.parameters()).data[1, :1].fill_(float("inf"))
    )


def evaluate_for_an_hour() -> None:
    trainable_translation.TrainableTranslation.mean_loss = lambda *_, **__: time.sleep(
        3600
    )


def after_step(step: int, act: Any) -> None:
    take_step = trainer.Trainer._take_step

    def taking(self: Any) -> None:
        take_step(self)
        if self.progress.step == step:
            act(self)

    trainer.Trainer._take_step = taking


def in_forward(step: int, act: Any) -> None:
    """Let something happen in the second micro-batch of a step, before its forward pass."""
    forward, seen = trainer.Trainer._forward_backward, []

    def passing(self: Any, *arguments: Any) -> float:
        seen.append(self.progress.step + 1)
        if seen.count(step) == 2 and seen[-1] == step:
            act(self)
        return forward(self, *arguments)

    trainer.Trainer._forward_backward = passing


def spoil_a_weight(self: Any) -> None:
    """A NaN in the weights makes one in every activation behind it."""
    dict(self.model.named_parameters())["encoder.0.feed_forward.inner.weight"].data[
        0, 0
    ] = float("nan")


def spoil_a_gradient(self: Any) -> None:
    next(self.model.parameters()).register_hook(lambda grad: grad * float("inf"))


def refuse_nothing() -> None:
    """Break R5: nobody looks whether the loss is finite."""
    trainer.Trainer._refuse_non_finite = lambda *_: None
    trainer.Trainer._save = lambda self: self.checkpoints.save(self.state())
    spoil_gradients()


def spoil_gradients() -> None:
    in_forward(5, spoil_a_gradient)


def allocate_too_much(where: str) -> Any:
    """Ask for more memory than the process may have, at step 5, in one of the places where that
    happens.
    """

    def starve(*_: Any) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**33, resource.RLIM_INFINITY))
        torch.empty(2**36)

    def starve_the_evaluation() -> None:
        trainable_translation.TrainableTranslation.mean_loss = lambda *_, **__: starve()

    places = {
        "the loss": lambda: in_forward(
            5, lambda self: setattr(self, "compute_loss", starve)
        ),
        "evaluation": starve_the_evaluation,
        "the optimizer": lambda: in_forward(
            5, lambda _: setattr(torch.optim.Adam, "step", starve)
        ),
        "encoding": lambda: setattr(
            trainable_translation.TrainableTranslation, "prepare", starve
        ),
        "scoring": lambda: setattr(
            trainable_translation.TrainableTranslation, "evaluate", starve
        ),
    }
    return places[where]


def falling_scores() -> None:
    """Not a fault: each evaluation is worse than the one before, so that the first stays the
    best.
    """
    evaluate = trainable_translation.DevEvaluation.__call__

    def falling(self: Any, step: int) -> Any:
        return {**evaluate(self, step), "dev_bleu": 50.0 - step}

    trainable_translation.DevEvaluation.__call__ = falling


BREAKS = {
    "falling scores": falling_scores,
    "save in place": save_in_place,
    "draw on": draw_on,
    "overflow in step 5": overflow,
    "NaN in a weight": lambda: in_forward(5, spoil_a_weight),
    "infinite gradient": spoil_gradients,
    "infinite gradient, nobody looks": refuse_nothing,
    "an evaluation of an hour": evaluate_for_an_hour,
    **{
        f"no memory for {where}": allocate_too_much(where)
        for where in ("the loss", "evaluation", "the optimizer", "encoding", "scoring")
    },
}

if __name__ == "__main__":
    main()
