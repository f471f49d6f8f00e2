"""Every mistake that a person can make at the command line: one sentence that says what to do next,
exit code 2, no stack trace. None of these gets as far as Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from geoflux.cli.completion import parts_of
from geoflux.cli.main import app, main

Made = Callable[[Path], list[str]]


def file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def noted(folder: Path, text: str) -> str:
    """The directory of a run, as far as this text in it goes."""
    (folder / "out").mkdir()
    (folder / "out" / "run.json").write_text(text)
    return str(folder / "out")


def toml(text: str) -> Made:
    return lambda folder: ["run", file(folder, "a.toml", text), "--out", str(folder / "new")]


MISTAKES: dict[str, tuple[Made, str]] = {
    "no settings file": (lambda f: ["run", str(f / "no.toml")], "give the path of a TOML file"),
    "settings are a folder": (lambda f: ["run", str(f)], "give the path of a TOML file"),
    "settings are no TOML": (toml("[engine\n"), "mend that line"),
    "unknown section": (toml("[engin]\nslots = 2\n"), "did you mean"),
    "unknown setting": (toml("[engine]\nslotz = 2\n"), "did you mean"),
    "out of range": (toml("[engine]\nslots = 0\n"), "engine.slots = 0"),
    "no source folder": (toml('[source]\nkind = "files"\npath = "no"\n'), "no such file"),
    "no such source kind": (toml('[source]\nkind = "carrier pigeon"\n'), "expected"),
    "no key file": (toml('[security]\nencrypt = true\nkey_file = "no"\n'), "name the file"),
    "bad --set": (lambda f: ["run", "--set", "slots=2"], "expected section.name=value"),
    "bad duration": (lambda f: ["run", "--duration", "soon"], "run.duration"),
    "bad balance": (lambda f: ["run", "--balance", "best"], "engine.balance"),
    "operator reads nobody": (
        toml('[[operator]]\nname = "a"\nkind = "queries"\nreads = ["b"]\n'), "there are a and source"),
    "operator without kind": (toml('[[operator]]\nname = "a"\n'), "expected either kind"),
    "out is a file": (
        lambda f: ["run", "--out", file(f, "taken", "")], "is a file, expected a directory"),
    "no run: verify": (lambda f: ["verify", str(f)], "give the directory that geoflux run wrote"),
    "no run: plan": (lambda f: ["plan", str(f)], "give the directory that geoflux run wrote"),
    "no run: top": (lambda f: ["top", str(f)], "give the directory that geoflux run wrote"),
    "no directory: top": (
        lambda f: ["top", str(f / "no")], "give the directory that geoflux run wrote"),
    "no run: snapshot": (lambda f: ["snapshot", str(f)], "give the directory that geoflux run wrote"),
    "no run: query": (
        lambda f: ["query", str(f), "SELECT count(*)"], "give the directory that geoflux run wrote"),
    "no run: guard": (
        lambda f: ["guard", "list", str(f)], "give the directory that geoflux run wrote"),
    "damaged run": (
        lambda f: ["top", noted(f, "{")], "is damaged"),
    "key is there": (lambda f: ["key", file(f, "key", "")], "choose another name"),
    "key in no folder": (lambda f: ["key", str(f / "no" / "key")], "cannot be written"),
    "unknown part": (lambda f: ["bench", "flux", "--only", "luck"], "sim, spark"),
}  # fmt: skip


def called(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """As the command does it, in this process: how it ended, and what it said about it."""
    monkeypatch.setattr(sys, "argv", ["geoflux", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert told.out == "" or told.out.startswith("geoflux: starting Spark"), told.out
    return int(ended.value.code or 0), " ".join(told.err.split())


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_sentence_with_the_next_step(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make, words = MISTAKES[name]
    code, told = called(make(tmp_path), monkeypatch, capsys)
    assert code == 2, told
    assert told.startswith("geoflux: ")
    assert words in told
    assert "Traceback" not in told
    assert not (tmp_path / "new").exists(), "nothing was begun"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "out/x"), "out/x: no space left on device; free"),
        (PermissionError(13, "Permission denied", "out"), "out: permission denied; give yourself"),
        (OSError(98, "Address already in use"), "choose another port"),
    ],
)
def test_what_the_system_refuses_is_a_sentence_too(
    error: OSError, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr("geoflux.cli.top.attached", refuse)
    code, told = called(["top", "out"], monkeypatch, capsys)
    assert code == 2
    assert words in told


def test_a_directory_that_cannot_be_written_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may be root
    code, told = called(["run", "--out", str(tmp_path / "a" / "b")], monkeypatch, capsys)
    assert code == 2
    assert f"{tmp_path} cannot be written; choose another directory" in told


def test_a_defect_keeps_its_stack_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("nobody knows")

    monkeypatch.setattr("geoflux.cli.top.attached", fail)
    monkeypatch.setattr(sys, "argv", ["geoflux", "top", "out"])
    with pytest.raises(OSError, match="nobody knows"):
        main()


def test_without_java_a_run_says_what_to_install(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "geoflux.cli", "run", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "JAVA_HOME": "/nowhere"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment, cwd=tmp_path
    )
    assert done.returncode == 2, done.stderr
    assert "no Java was found" in done.stderr
    assert "apt-get install" in done.stderr
    assert "Traceback" not in done.stderr


def commands(group: Any, name: str = "geoflux") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            found += commands(command, f"{name} {word}")
        else:
            found.append((f"{name} {word}", command))
    return found


def test_every_command_has_help_with_an_example() -> None:
    found = commands(get_command(app))
    assert len(found) >= 20
    for name, command in found:
        assert command.help, name
        assert name in (command.epilog or ""), f"{name} --help has no example"
        assert (command.epilog or "").startswith("Example"), name


def completed(words: str, shell: str = "bash") -> list[str]:
    """What a shell would offer after these words."""
    environment = {"_GEOFLUX_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": words,
                   "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1),
                   "_TYPER_COMPLETE_FISH_ACTION": "get-args"}  # fmt: skip
    done = CliRunner().invoke(app, [], prog_name="geoflux", env=environment)
    return done.stdout.splitlines()


def test_a_shell_completes_commands_directories_parts_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert {"run", "top", "verify", "plan", "bench"} <= set(completed("geoflux "))
    assert {"engine", "swarm", "flux"} <= set(completed("geoflux bench "))
    for shell in ("zsh", "fish"):
        assert "top" in " ".join(completed("geoflux t", shell))
    noted(tmp_path, "{}")
    (tmp_path / "other").mkdir()
    for command in ("verify", "top", "plan", "doctor", "guard list"):
        assert completed(f"geoflux {command} o") == ["out"], command
    assert completed("geoflux bench swarm --only sweep,ho") == ["sweep,hotspots"]
    assert completed("geoflux run --set engine.slo") == ["engine.slots="]


@pytest.mark.parametrize("name", ["swarm", "synopsis", "flux", "guard", "drs"])
def test_the_help_names_every_part_of_a_benchmark(name: str) -> None:
    done = CliRunner().invoke(app, ["bench", name, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    for part in parts_of(name)(""):
        assert part in done.stdout, part


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_can_be_shown(shell: str) -> None:
    environment = {"_GEOFLUX_COMPLETE": f"source_{shell}"}
    done = CliRunner().invoke(app, [], prog_name="geoflux", env=environment)
    assert done.exit_code == 0
    assert "_GEOFLUX_COMPLETE" in done.stdout


def test_the_doctor_tells_of_optional_parts_and_applications(tmp_path: Path) -> None:
    from email.message import Message

    from geoflux.cli.doctor import checks, extras

    declared = Message()
    for name, value in (
        ("Requires-Dist", "numpy>=2"),
        ("Requires-Dist", 'rich>=13; extra == "serve"'),
        ("Requires-Dist", 'rich>=999; extra == "kafka"'),
        ("Requires-Dist", 'no-such-package; extra == "kafka"'),
        ("Requires-Dist", 'ruff; extra == "dev"'),
        *(("Provides-Extra", extra) for extra in ("serve", "kafka", "dev")),
    ):
        declared[name] = value
    serve, kafka = extras(declared)
    assert serve.name == "optional: serve"
    assert serve.found.startswith("rich ")
    assert kafka.good, "it is optional"
    assert 'pip install "geoflux[kafka]" (rich ' in kafka.found
    assert "no-such-package" in kafka.found
    tables = [{"name": "ingest"}, {"name": "places"}]
    (tmp_path / "topology.json").write_text(json.dumps({"operators": tables}))
    assert checks(tmp_path)[-1].found == "an application of ingest, places"
