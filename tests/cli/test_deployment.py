"""What `deploy/` has for a container and for systemd is what the command line can do, and safe."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from tiny_server import Running
from weft.cli import app

ROOT = Path(__file__).resolve().parents[2]
GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
SERVE = {option.name: option for option in GROUP.commands["serve"].params}
UNIT = (ROOT / "deploy" / "weft.service").read_text("utf-8")
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
PAGE = (ROOT / "docs" / "serving.md").read_text("utf-8")


def joined(text: str) -> str:
    """The text with its long lines whole again, and comments without their sign."""
    return re.sub(r"\\\n#?", " ", text)


def instructions(name: str) -> list[str]:
    """What stands after an instruction of the Dockerfile, each time."""
    return re.findall(rf"^{name} +(.*)$", joined(DOCKERFILE), re.MULTILINE)


def seconds(pattern: str, text: str) -> float:
    """The one number that a text has after some words."""
    (found,) = set(re.findall(pattern, text))
    return float(found)


def test_every_option_that_they_give_exists() -> None:
    known = {name for option in SERVE.values() for name in option.opts}
    orders = [
        json.loads(one) for name in ("ENTRYPOINT", "CMD") for one in instructions(name)
    ]
    asked = [word for order in orders for word in order]
    asked += re.findall(r"ExecStart=/opt/weft/bin/weft serve (.*)", UNIT)
    for text in (DOCKERFILE, PAGE):
        (after_image,) = re.findall(r"docker run .* weft (.*)", joined(text))
        asked.append(after_image)
    options = set(re.findall(r"--[a-z][a-z-]*", " ".join(asked)))
    assert {"--host", "--no-keys", "--keys"} <= options
    assert options - {"--help"} <= known


def test_what_runs_has_the_time_that_the_server_gives_it() -> None:
    drain = SERVE["drain_seconds"].default
    assert isinstance(drain, float)
    assert seconds(r"TimeoutStopSec=(\d+)", UNIT) > drain
    for text in (DOCKERFILE, PAGE):
        assert seconds(r"--stop-timeout (\d+)", text) > drain


def test_a_new_wheel_is_the_only_one() -> None:
    """As `dist/*.whl` stands for one file where it is installed."""
    order = ["make", "--dry-run", "--always-make", "wheel"]
    done = subprocess.run(order, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.split("\n")
    emptied = lines.index("rm -f dist/*.whl")
    made = [i for i, line in enumerate(lines) if "--wheel-dir" in line]
    assert made[0] < emptied < made[-1]
    assert "$(echo dist/*.whl)[serve]" in PAGE


def test_the_image_is_named_exactly_has_no_pytorch_and_its_user_is_not_root() -> None:
    bases = {line.split()[0] for line in instructions("FROM")}
    assert bases == {"debian:bookworm-slim"}
    (order,) = re.findall(r"bin/pip install (.*?) &&", joined(DOCKERFILE))
    assert "--constraint /wheel/constraints.txt" in order
    assert re.findall(r"\[[a-z,]+\]", order) == ["[serve]"]
    assert "torch" not in joined(DOCKERFILE).partition("FROM")[2]
    (user,) = instructions("USER")
    assert int(user) > 0
    assert f"useradd --uid {user} " in DOCKERFILE


def test_nothing_goes_to_the_builder_but_what_is_copied() -> None:
    (copied,) = (one for one in instructions("COPY") if "--from" not in one)
    lines = (ROOT / ".dockerignore").read_text("utf-8").strip().split("\n")
    rules = [line for line in lines if not line.startswith("#")]
    assert rules == ["*", *(f"!{path}" for path in copied.split()[:-1])]


def test_the_check_of_the_container_asks_the_server_itself(server: Running) -> None:
    """Whatever proxy the environment names."""
    (check,) = re.findall(r"CMD (\[.*http.client.*\])", DOCKERFILE)
    _, *arguments = json.loads(check)
    port = str(SERVE["port"].default)
    assert instructions("EXPOSE") == [port]
    assert port in arguments[1]
    for asked, code in ((str(server.address[1]), 0), ("1", 1)):
        ours = [arguments[0], arguments[1].replace(port, asked)]
        done = subprocess.run(
            [sys.executable, *ours],
            env={"http_proxy": "http://127.0.0.1:9"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, done.stderr


def test_the_service_is_nobody_and_may_do_nothing_else() -> None:
    settings = re.findall(r"^(\w+)=(.*)$", UNIT, re.MULTILINE)
    given = dict(settings)
    assert given["DynamicUser"] == given["NoNewPrivileges"] == "yes"
    assert given["CapabilityBoundingSet"] == ""
    assert given["IPAddressDeny"] == "any"
    assert "ProcSubset" not in given  # /proc/cpuinfo says which code can run
    # without this, a call that is not permitted ends the server
    assert given["SystemCallErrorNumber"] == "EPERM"


@pytest.mark.parametrize("limit", ["max_file", "max_body"])
def test_the_proxy_of_the_page_lets_through_what_the_server_takes(limit: str) -> None:
    default = SERVE[limit].default
    assert isinstance(default, int)
    assert seconds(r"client_max_body_size (\d+)m;", PAGE) > default


def test_the_proxies_of_the_pages_keep_the_port_of_an_address() -> None:
    """Without it a page at another port than 443 is that of another site."""
    scale = (ROOT / "docs" / "scale.md").read_text("utf-8")
    for page in (PAGE, scale):
        assert re.findall(r"proxy_set_header Host (\S+);", page) == ["$http_host"]


def test_no_text_of_the_training_goes_to_a_service(
    tmp_path: Path, tiny_folder: Path
) -> None:
    """By the commands of the page as they stand there."""
    (order,) = re.findall(r"^    (mkdir -p models .*)$", PAGE, re.MULTILINE)
    assert order in DOCKERFILE
    own = tmp_path / "runs" / "mine"
    shutil.copytree(tiny_folder, own)
    (own / "run" / "pairs.tsv").write_text("a text of training\n", "utf-8")
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = {**os.environ, "PATH": programs}
    subprocess.run(["sh", "-c", order], cwd=tmp_path, check=True, env=shell)
    names = zipfile.ZipFile(tmp_path / "models" / "mine.weft").namelist()
    assert "config.json" in names
    assert not [name for name in names if name.startswith("run") or "pairs" in name]
    for text in (DOCKERFILE, PAGE):
        assert not re.findall(r"(?:cp -r|-v)\s+\S*runs/", joined(text))


def test_the_proxy_of_the_page_waits_longer_than_the_server() -> None:
    deadline = SERVE["deadline"].default
    assert isinstance(deadline, float)
    assert seconds(r"proxy_read_timeout (\d+)s;", PAGE) > deadline
