"""What the words of a command line ask for, checked: a UserMistake names the word, the reason and the next step."""

from __future__ import annotations

import argparse
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.engine.errors import EngineError
from workers.engine.methods import Method, method
from workers.headless.ask import ask
from workers.headless.errors import UserMistake
from workers.headless.machine import device_machine, spec_fields, this_machine
from workers.headless.profile import Profile
from workers.headless.torch_export import EXTENSION, as_onnx
from workers.messages.composition import KNOWING
from workers.messages.device import Address
from workers.messages.spec import MAX_TRIALS, Budget, RunSpec

READ = (".onnx", EXTENSION)
"""Files by what their names end with."""


def spec_of(
    arguments: argparse.Namespace, out: Path, profile: Profile, device: Address | None = None
) -> tuple[RunSpec, str]:
    """The run that the words of `tune` ask for, without a limit where they name none, and the `device`'s name, "" without one:
    inspects the network, converts it into `out` where it has to be, and measures this machine where no run did before, or the
    device."""
    parts = dict(pair(text, "--part") for text in arguments.part)
    check_method(arguments.method, parts, stored=arguments.resume)
    _check_numbers(arguments)
    given = network_file(arguments.network)
    with profile.accounts.spending("command/inspect"):
        network = str(as_onnx(given, out, arguments.allow_torch_export))
        inspection = ask({"task": "inspect", "network": network})["inspection"]
    inputs = input_shapes(inspection, dict(pair(text, "--shape") for text in arguments.shape))
    with profile.accounts.spending("command/machine"):
        machine = device_machine(device) if device else this_machine(arguments.measure_again)
    spec = RunSpec(
        network=network,
        **spec_fields(machine),
        inputs=inputs,
        method=arguments.method,
        parts=parts,
        budget=_budget(arguments),
        operators=arguments.operators,
        layout=arguments.layout,
        seed=arguments.seed,
    )
    return spec, str(machine["hardware"]["name"]) if device else ""


def device_of(arguments: argparse.Namespace) -> Address | None:
    """That of --device, with the key in the file of --device-key; raises UserMistake."""
    if not arguments.device:
        if arguments.device_key:
            raise UserMistake(
                f"--device-key {arguments.device_key}: no device is named; add --device HOST:PORT, or leave the key out to "
                "tune for this machine"
            )
        return None
    if not arguments.device_key:
        raise UserMistake(
            "--device needs --device-key FILE: a file with the key, which 'python -m workers.device' names there"
        )
    try:
        return Address.read(arguments.device, Path(arguments.device_key).read_text())
    except OSError as error:
        raise UserMistake(
            f"--device-key {arguments.device_key}: {error.strerror}; name a file that can be read"
        ) from None
    except ValueError as error:
        raise UserMistake(f"--device: {error}") from None


def _told(path: Path) -> Path:
    """One that can be written down: ONNX Runtime and the archive are told it as text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise UserMistake(f"{shown}: its name is not UTF-8; rename it, and name it again") from None
    return path


def out_directory(out: str) -> Path:
    """That of --out, made where it is missing."""
    path = _told(Path(out).resolve())
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserMistake(f"--out {out}: {error.strerror}; name a directory that can be made") from None
    return path


def network_file(network: str) -> Path:
    """The file that is named, absolute and unread, under the name that is given where that says what it is: what a link leads
    to may be called anything, and so may the link."""
    path = Path(network)
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
    except OSError as error:
        raise UserMistake(f"{network}: {error.strerror}; name an ONNX file that can be read") from None
    if not stat.S_ISREG(mode):
        found = "a directory" if stat.S_ISDIR(mode) else "no file"
        raise UserMistake(f"{network} is {found}; name the ONNX file itself")
    return _told(path.parent.resolve() / path.name if path.suffix.lower() in READ else path.resolve())


def check_method(name: str, parts: Mapping[str, str], stored: bool = False) -> None:
    """Raises UserMistake for a method, or a part by its role, that does not exist, for parts that do not fit together, as
    `method` does, and for what no run can have."""
    try:
        chosen = method(name, parts, stored=stored)
    except EngineError as error:
        raise UserMistake(f"--method {name}: {error}") from None
    refuse_knowing(chosen, f"--method {name}")


def refuse_knowing(chosen: Method, named: str) -> None:
    """Raises UserMistake for what no run can have; `named`: the option and its word."""
    if chosen.scheduler == KNOWING:
        raise UserMistake(
            f"{named}: the scheduler {KNOWING} is shown recorded curves, which a run has none of; compare it with "
            "`benchmark methods --landscape DIR`"
        )


def percentage(text: str) -> float:
    """1% is 0.01; without the sign nobody knows which of the two was meant. For argparse."""
    number, sign, rest = text.partition("%")
    try:
        share = float(number) / 100
    except ValueError:
        share = math.nan
    if not (sign and not rest and 0 < share < 1):
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0% and under 100%, with its sign, like 1%")
    return share


def pair(text: str, option: str) -> tuple[str, str]:
    """NAME=VALUE in two."""
    name, separator, value = text.partition("=")
    if not separator or not name or not value:
        raise UserMistake(f"{option} {text!r} must look like NAME=VALUE")
    return name, value


def input_shapes(inspection: Mapping[str, Any], given: Mapping[str, str], step: str = "") -> dict[str, list[int]]:
    """Sizes of every input: those of `given` ("1,3,224,224", by the input's name), else the network's own. Raises UserMistake
    where some stay open, with the next `step`: to give them, where none is named."""
    shapes: dict[str, list[int]] = {}
    for port in inspection["inputs"]:
        name, shape = port["name"], port["shape"]
        if name in given:
            shape = _sizes(name, given[name], None if shape is None else len(shape))
        if shape is None or not all(isinstance(size, int) for size in shape):
            step = step or f"give its sizes with --shape {name}=1,3,224,224"
            raise UserMistake(f"input {name} has dynamic dimensions {shape}: {step}")
        shapes[name] = shape
    for name in given:
        if name not in shapes:
            raise UserMistake(f"--shape {name}: the network has no such input; it has {', '.join(shapes)}")
    return shapes


def _sizes(name: str, text: str, rank: int | None) -> list[int]:
    """Of an input that has so many dimensions (None: unknown)."""
    try:
        sizes = [int(size) for size in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserMistake(
            f"--shape {name}: sizes must be whole numbers from 1 on separated by commas, like 1,3,224,224"
        )
    if rank not in (None, len(sizes)):
        raise UserMistake(f"--shape {name}: the input has {rank} dimensions, not {len(sizes)}; give a size for each")
    return sizes


def _check_numbers(arguments: argparse.Namespace) -> None:
    for name, value in (
        ("--minutes", arguments.minutes),
        ("--trials", arguments.trials),
        ("--target-ms", arguments.target_ms),
    ):
        # Of 1e308 minutes there are infinitely many seconds.
        if value is not None and not 0 < 60 * value < math.inf:
            raise UserMistake(f"{name} {value} must be a finite number greater than 0; give another one")
    if arguments.trials is not None and arguments.trials > MAX_TRIALS:
        raise UserMistake(f"--trials {arguments.trials} must be {MAX_TRIALS} or fewer; give a smaller number")
    if not 0 <= arguments.seed < 1 << 63:
        raise UserMistake(
            f"--seed {arguments.seed} must be a whole number from 0 to 2^63 - 1; give 0 if it does not matter"
        )


def _budget(arguments: argparse.Namespace) -> Budget:
    return Budget(
        seconds=arguments.minutes and 60 * arguments.minutes,
        trials=arguments.trials,
        target_latency=arguments.target_ms and arguments.target_ms / 1e3,
        min_gain=arguments.min_gain,
    )
