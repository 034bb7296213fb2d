"""A run in its directory beneath --out: the journal, and beside it the spec and the records that the run began with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workers.headless.content import content_hash
from workers.headless.errors import UserMistake
from workers.headless.records import keep_records
from workers.messages.device import Address
from workers.messages.orders import tune_order
from workers.messages.spec import Budget, RunSpec
from workers.messages.tuning_log import FILE, encode_row, measurement_row
from workers.messages.whole import write_whole
from workers.supervision import DirectoryJournal, History
from workers.supervision.directory import CONTROL, DamagedJournal, DirectoryBusy

RUN = "run"
"""The directory's name beneath --out."""
PEAKS = ("peak_flops", "bandwidth")
"""Fields of a spec that vary from measurement to measurement, and that the operators depend on."""
OF_MACHINE = ("target", "threads")
"""Fields of a spec that no word of `tune` sets."""
DEFAULT_MINUTES = 5.0
"""Of tuning, for a new run that is given no limit."""
ARCHIVING = "archive"
"""What stands where `control` writes while nobody reads it: the run makes its archive."""


@dataclass(frozen=True)
class RunDirectory:
    """Call `begin` once, then `order` for every attempt. Writing needs the journal open; what is kept can be read later."""

    journal: DirectoryJournal
    device: Address | None = None
    """That programs are timed on, where that is not this machine."""
    machine: str = ""
    """The device's name, which tells cards of one architecture apart."""

    @classmethod
    @contextmanager
    def opened(cls, out: Path, device: Address | None = None, machine: str = "") -> Iterator[RunDirectory]:
        """That of `out`, alone; raises UserMistake where another process writes to it or the journal is damaged."""
        try:
            journal = DirectoryJournal(out / RUN)
        except (DirectoryBusy, DamagedJournal) as error:
            raise UserMistake(str(error)) from None
        with journal:
            yield cls(journal, device, machine)

    @property
    def path(self) -> Path:
        return self.journal.path

    @property
    def known(self) -> Path:
        """What earlier runs found (messages.known), where the run was given any."""
        return self.path / "known.json"

    def begin(self, spec: RunSpec, records: Sequence[str], resume: bool) -> RunSpec:
        """What is run. A directory holds one run: a second one must say that it goes on (`resume`), with the peaks and the
        `records` (--out directories of earlier runs) it began with, and with its budget where `spec` has none. One that
        measured nothing binds nobody.

        Raises UserMistake for another run, for records that come too late, and for those that cannot be read.
        """
        path, out = self.path / "spec.json", self.path.parent
        under_way, content = self.under_way(), content_hash(spec.network)
        if under_way and not resume:
            raise UserMistake(f"{out} holds a run already: go on with it (--resume) or name another directory")
        if under_way and records:
            raise UserMistake(
                f"--records {' '.join(records)}: the run in {out} goes on with what it began with; leave --records out, "
                "or begin another run in another directory"
            )
        before = _read(path) if resume and path.exists() else {}
        if under_way and before:
            self._check_device()
            spec = self._continued(before, spec, content)
        if not under_way:
            self.journal.clear()  # another network's operators may be in it
            if records or not (resume and self.known.exists()):
                keep_records(records, RUN, self.known)
        if spec.budget == Budget():
            usual = {"seconds": 60 * DEFAULT_MINUTES}
            spec = replace(spec, budget=Budget(**before.get("budget", usual)))
        if self.device:
            write_whole(self._device, self.machine)
        else:
            self._device.unlink(missing_ok=True)  # of a run that measured nothing
        write_whole(self._network, content)
        write_whole(path, spec.to_json())
        return spec

    def under_way(self) -> bool:
        """Whether a run measured something here."""
        return self.journal.measured > 0

    @property
    def _network(self) -> Path:
        """The SHA-256 of the network's file, which may be moved or renamed before the run goes on."""
        return self.path / "network.sha256"

    @property
    def _device(self) -> Path:
        """The name of the device that was measured."""
        return self.path / "device.txt"

    def _check_device(self) -> None:
        """Timings of two machines are nothing to compare, though both are of one kind."""
        out, before = self.path.parent, self._device.read_text() if self._device.exists() else ""
        if before and not self.device:
            raise UserMistake(
                f"the run in {out} was begun on {before}, a device, and no --device is given: what was timed there says "
                "nothing of this machine; give its --device and --device-key, or name another directory"
            )
        if self.device and not before:
            raise UserMistake(
                f"--device {self.device}: the run in {out} was begun without a device: what was timed then says nothing of "
                f"{self.machine}; leave --device and --device-key out, or name another directory"
            )
        if before != self.machine:
            raise UserMistake(
                f"the run in {out} was begun on {before}, and the device is {self.machine}: give it that one, or name another "
                "directory"
            )

    def _continued(self, before: dict[str, Any], spec: RunSpec, content: str) -> RunSpec:
        """The spec with the peaks of `before`, the fields of the one that the run began with."""
        spec = replace(spec, **{name: before[name] for name in PEAKS if name in before})
        if self._network.exists() and self._network.read_text() == content:
            before = {**before, "network": spec.network}
        now = json.loads(spec.to_json())
        changed = sorted(name for name in {*before, *now} - {"budget"} if before.get(name) != now.get(name))
        if changed:  # but for the budget: more time may be given
            told = "; ".join(f"{name} {_shown(before.get(name))}, not {_shown(now.get(name))}" for name in changed)
            raise UserMistake(
                f"the run in {self.path.parent} was begun with {told}: {_way_back(before, changed)}, or name another directory"
            )
        return spec

    @contextmanager
    def archiving(self) -> Iterator[None]:
        """Meanwhile nobody reads what `control` writes, and it is told so."""
        write_whole(self.path / CONTROL, ARCHIVING)
        try:
            yield
        finally:
            self.journal.clear_control()

    def order(self, spec: RunSpec, history: History) -> dict[str, Any]:
        """An attempt that goes on from `history`."""
        return tune_order(
            spec.to_json(),
            self.work_dir(),
            checkpoint=history.checkpoint,
            measurements=history.measurements,
            slots=history.slots,
            spent=history.spent,
            clock=history.clock,
            operators=history.operators,
            layout=history.layout,
            known=self.known if self.known.exists() else None,
            device=self.device,
            machine=self.machine,
        )

    def work_dir(self) -> Path:
        """All that the run's processes may write: neither the journal nor the archive."""
        path = self.path / "child"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def tuning_log(self) -> Path:
        """Writes it (messages.tuning_log)."""
        path = self.path / FILE
        with path.open("w", encoding="utf-8") as file:
            for event in self.journal.events():
                event.pop("checkpoint", None)  # of journals from when they stood there
                told = event.pop("measurements", ())
                rows = [measurement_row(measurement, event.get("clock"), event.get("slot")) for measurement in told]
                file.writelines(encode_row(row) + "\n" for row in (*rows, event))
        return path


def _read(spec: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(spec.read_text()))
    except (ValueError, TypeError) as error:
        raise UserMistake(
            f"{spec}: {error}; somebody changed the file: restore it, or begin anew in another directory with --records"
        ) from None


def _shown(value: Any) -> str:
    """Of a spec's field; a dictionary by its pairs."""
    return (
        (", ".join(f"{name}={one}" for name, one in value.items()) or "none") if isinstance(value, dict) else str(value)
    )


def _way_back(before: dict[str, Any], changed: Sequence[str]) -> str:
    """What to do for these fields to be as they were."""
    if set(changed) & set(OF_MACHINE):
        return "go on where it began, on that machine with as many cores or with its --device"
    return f"give {' '.join(word for name in changed for word in _words(name, before.get(name)))}"


def _words(name: str, value: Any) -> list[str]:
    """Of `tune`, that ask for this value of a spec's field."""
    if name == "network":
        return [str(value)]
    if name == "parts":
        return [f"--part {role}={part}" for role, part in value.items()] or ["no --part"]
    if name == "inputs":
        return [f"--shape {one}={','.join(map(str, sizes))}" for one, sizes in value.items()]
    return [f"--{name} {value}"]
