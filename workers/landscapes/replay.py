"""A recorded run as a backend."""

from __future__ import annotations

from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration
from workers.landscapes.clock import SimulatedClock
from workers.landscapes.landscape import Landscape, LandscapeError
from workers.landscapes.recording import Recording

Key = tuple[int, Configuration, int]


class ReplayBackend(Landscape):
    """Answers what was recorded and charges what it took. The order of asking is free: what was a duplicate then is
    measured now when it comes first.

    Replaying method and seed of the recorded run needs nothing else; any other run may ask for what nobody measured,
    which is a LandscapeError.
    """

    def __init__(self, recording: Recording, clock: SimulatedClock) -> None:
        super().__init__(recording.operators, clock)
        self._identities: dict[Key, tuple[str, Configuration]] = {}
        self._programs: dict[tuple[int, str, int], Outcome] = {}
        self._failures: dict[Key, Outcome] = {}
        for outcome in recording.outcomes:
            self._learn(outcome)

    def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        """See `Landscape`."""
        key = (candidate.operator, candidate.configuration, candidate.round)
        if key in self._failures:
            return self._failures[key]
        identity, made = self._identities.get(key, ("", candidate.configuration))
        program = self._programs.get((candidate.operator, identity, candidate.round))
        if program is not None:
            return program
        if (candidate.operator, identity) in self._seen:  # measured before the recording began, and remembered
            return Outcome(candidate, made, identity, None, cause="duplicate")
        raise LandscapeError(
            f"nobody measured {candidate.configuration} of operator {candidate.operator} in round {candidate.round}: "
            "replay the recorded method and seed, or use a landscape that is complete"
        )

    def _learn(self, outcome: Outcome) -> None:
        asked, at = outcome.candidate, outcome.candidate.round
        key = (asked.operator, asked.configuration, at)
        if not outcome.identity:
            self._failures.setdefault(key, outcome)
            return
        self._identities.setdefault(key, (outcome.identity, outcome.configuration))
        if outcome.cause != "duplicate":
            self._identities.setdefault((asked.operator, outcome.configuration, at), self._identities[key])
            self._programs.setdefault((asked.operator, outcome.identity, at), outcome)
