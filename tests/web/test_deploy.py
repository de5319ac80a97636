"""What is in deploy/ can be read by what it is for, and says what the command understands."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from activecover.cli import main

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
INSTRUCTIONS = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "ENV", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}  # fmt: skip


def unit():
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str
    found.read(DEPLOY / "activecover.service", encoding="utf-8")
    return found


def options_of(words):
    return [word for word in words if word.startswith("--")]


def check_command(words, capsys):
    """Every option is one of ``activecover serve``."""
    assert words[0] == "serve"
    assert main(["serve", "--help"]) == 0
    known = capsys.readouterr().out
    assert all(option in known for option in options_of(words))


def test_the_unit(capsys):
    found = unit()
    assert set(found.sections()) == {"Unit", "Service", "Install"}
    service = found["Service"]
    program, *words = service["ExecStart"].split()
    assert program.endswith("/activecover")
    check_command(words, capsys)
    assert service["KillSignal"] == "SIGINT"
    assert service["ProtectSystem"] == "strict"
    checker = shutil.which("systemd-analyze")
    if checker:
        done = subprocess.run(
            [checker, "verify", "--man=no", DEPLOY / "activecover.service"], capture_output=True, text=True
        )
        complaints = [
            line for line in done.stderr.splitlines() if "not executable" not in line and "Failed to" not in line
        ]
        assert complaints == []


def test_the_container_file(capsys):
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    steps = [line.split(maxsplit=1) for line in lines]
    assert {name for name, _ in steps} <= INSTRUCTIONS
    assert steps[0][0] == "FROM"
    assert ("USER", "10001") in map(tuple, steps)
    command = json.loads(next(rest for name, rest in steps if name == "CMD"))
    check_command(command, capsys)
    health = next(rest for name, rest in steps if name == "HEALTHCHECK")
    json.loads(health.partition(" CMD ")[2])
    sources = [rest.split()[:-1] for name, rest in steps if name == "COPY" and "--from" not in rest]
    assert all((DEPLOY.parent / part).exists() for parts in sources for part in parts)
    extras = re.search(r"\[([a-z,]+)\]", text)[1].split(",")
    assert set(extras) <= set(
        re.findall(r"^([a-z]+) = \[", (DEPLOY.parent / "pyproject.toml").read_text(), re.MULTILINE)
    )


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_the_proxies(name):
    text = re.sub(r"#.*", "", (DEPLOY / name).read_text(encoding="utf-8"))
    depth = 0
    for sign in text:
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    if name == "nginx.conf":
        inside = [line.strip() for line in text.splitlines() if line.strip()]
        assert all(line.endswith((";", "{", "}")) for line in inside)
        assert "proxy_set_header Host $host;" in inside
    assert "127.0.0.1:8321" in text
