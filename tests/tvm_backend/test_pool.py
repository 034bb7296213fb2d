"""Kernels that crash, hang or eat memory cost their own candidate and nothing else."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from socket import send_fds, socketpair
from typing import Any

import numpy as np
import pytest

from tests import zoo
from tests.processes import eventually, stat_of
from tests.tvm_backend.local import backend_over, local_backend, lock_in, spec_of, target
from workers.child.__main__ import passing
from workers.engine.compile_limit import MOST, CompileLimit
from workers.engine.ports import Candidate
from workers.engine.space import Configuration
from workers.engine.thrift import Thrift
from workers.messages.orders import best_of
from workers.pipeline.record import measurement_of
from workers.sandbox.lock import MeasureLock

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def backend(zoo_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = local_backend(zoo.tiny(zoo_cache), tmp_path_factory.mktemp("pool"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that others use too any program may take longer than most: which time out is for tests to say."""
    monkeypatch.setattr("workers.engine.compile_limit.MOST", 60.0)


def convolutions(backend: Any, seed: int, count: int = 6) -> list[Candidate]:
    index = next(o.index for o in backend.operators() if "conv" in o.name)
    rows = backend.operators()[index].sketches[0].random(np.random.default_rng(seed), count).tolist()
    return [Candidate(index, Configuration(0, tuple(row)), "random") for row in rows]


def named(order: dict[str, Any]) -> list[int]:
    """The candidates that an order is about."""
    return [program["id"] for program in order.get("programs", [order]) if "id" in program]


def signalled(
    monkeypatch: pytest.MonkeyPatch, verb: str, id: int, number: signal.Signals, times: int = 1, parent: bool = False
) -> list[int]:
    """Sends the signal to the worker that is just given this order, or to its parent; returns the list the pid goes into."""
    from workers.tvm_backend.members import Member

    send, hit = Member.send, list[int]()

    def sending(self: Any, given: str, timeout: float, **arguments: Any) -> None:
        if given == verb and id in named(arguments) and len(hit) < times:
            hit.append(self.parent.pid if parent else self.pid)
            os.kill(hit[-1], number)
        send(self, given, timeout, **arguments)

    monkeypatch.setattr(Member, "send", sending)
    return hit


@pytest.mark.parametrize("verb", ["apply", "compile", "run"])
def test_a_crash_is_its_candidates_outcome_and_the_others_are_measured(
    backend: Any, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    candidates = convolutions(backend, seed=["apply", "compile", "run"].index(verb))
    hit = signalled(monkeypatch, verb, 2, signal.SIGKILL, times=2)  # in company and alone
    outcomes = backend.measure(candidates, {})
    assert hit
    assert [o.candidate for o in outcomes] == candidates
    assert outcomes[2].cause == "crash"
    assert "SIGKILL" in outcomes[2].error
    assert all(o.seconds for place, o in enumerate(outcomes) if place != 2)


def orders(monkeypatch: pytest.MonkeyPatch, verb: str) -> list[list[int]]:
    """The candidates of every such order that is given from now on."""
    from workers.tvm_backend.members import Member

    send, given = Member.send, list[list[int]]()

    def sending(self: Any, what: str, timeout: float, **arguments: Any) -> None:
        if what == verb:
            given.append(named(arguments))
        send(self, what, timeout, **arguments)

    monkeypatch.setattr(Member, "send", sending)
    return given


def sociable(monkeypatch: pytest.MonkeyPatch, backend: Any) -> None:
    """Whatever other tests taught the backend, programs take so little time that they are compiled together."""
    thrift = Thrift(math.inf)
    thrift.compiled(0, 1e6, 1.0)
    monkeypatch.setattr(backend._pool, "thrift", thrift)


@pytest.mark.parametrize("parent", [False, True])
def test_who_dies_with_company_in_hand_costs_none_of_it_its_figure(
    backend: Any, monkeypatch: pytest.MonkeyPatch, parent: bool
) -> None:
    from workers.tvm_backend.members import Member

    sociable(monkeypatch, backend)
    given, company = orders(monkeypatch, "compile"), list[int]()
    recorded = Member.send  # which keeps `given`

    def sending(self: Any, what: str, timeout: float, **arguments: Any) -> None:
        if what == "compile" and not company and len(named(arguments)) > 1:
            company.extend(named(arguments))
            os.kill(self.parent.pid if parent else self.pid, signal.SIGKILL)
        recorded(self, what, timeout, **arguments)

    monkeypatch.setattr(Member, "send", sending)
    outcomes = backend.measure(convolutions(backend, seed=82 + parent, count=12), {})
    assert len(company) > 1
    assert all(o.seconds for o in outcomes if o.cause != "duplicate"), [(o.cause, o.error) for o in outcomes]
    assert parent or all([id] in given for id in company), "each once more, alone"


def test_programs_are_compiled_in_company_and_each_is_its_own(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sociable(monkeypatch, backend)
    candidates, given = convolutions(backend, seed=80, count=12), orders(monkeypatch, "compile")
    outcomes = backend.measure(candidates, {})
    built = [place for place, o in enumerate(outcomes) if o.build_seconds]
    assert sorted(id for ids in given for id in ids) == built
    assert max(map(len, given)) > 1
    assert len(given[-1]) == 1, "whoever is last keeps the others waiting"
    assert all(outcomes[place].seconds for place in built)


def test_every_entry_of_a_module_is_its_own_programs(backend: Any) -> None:
    import tvm

    from workers.tvm_backend.programs import argument_tensors, compile_program, compile_programs

    of = {o.name: backend.workloads[o.index] for o in backend.operators()}
    chosen = [workload for name, workload in of.items() if "pool" in name or "relu" in name or "softmax" in name]
    schedules = [w.schedule(0, tuple(w.sketches[0].random(np.random.default_rng(0), 1).tolist()[0])) for w in chosen]
    assert len(schedules) > 1
    together = compile_programs(schedules, chosen[0].target)
    random = np.random.default_rng(1)
    for schedule, entry in zip(schedules, together, strict=True):
        shapes = argument_tensors(schedule.mod)
        given = [random.random(shape, dtype=np.float32) for shape, _ in shapes]
        answers = []
        for program in (entry, compile_program(schedule, chosen[0].target)):
            tensors = [tvm.runtime.tensor(numbers) for numbers in given]
            program(*tensors)
            answers.append(tensors[-1].numpy())
        np.testing.assert_array_equal(*answers)
        assert not np.array_equal(answers[0], given[-1])


def test_what_does_not_compile_costs_its_company_nothing(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.members import Member

    sociable(monkeypatch, backend)
    receive, given, company = Member.receive, orders(monkeypatch, "compile"), list[int]()

    def failing(self: Any) -> dict[str, Any]:
        answer, hand = receive(self), [task.id for task in self.hand]
        if "seconds" not in answer or "spread" in answer:
            return answer
        if not company and len(hand) > 1:
            company.extend(hand)
        return {"error": "LLVM does not like it", "taken": 0.1} if company and company[-1] in hand else answer

    monkeypatch.setattr(Member, "receive", failing)
    outcomes = backend.measure(convolutions(backend, seed=81, count=12), {})
    failed = [(place, o.cause, o.error) for place, o in enumerate(outcomes) if o.cause not in ("", "duplicate")]
    assert failed == [(company[-1], "build", "LLVM does not like it")]
    assert all([id] in given for id in company), "each once more, alone"


@pytest.mark.parametrize("verb", ["compile", "run"])
def test_a_hang_is_a_timeout_and_the_others_are_measured(
    backend: Any, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    from workers.tvm_backend.members import Member

    candidates, timeout = convolutions(backend, seed=10 + len(verb)), {"compile": MOST, "run": 2.0}[verb]
    hit = signalled(monkeypatch, verb, 3, signal.SIGSTOP, times=2)
    send = Member.send

    def sending(self: Any, given: str, seconds: float, **arguments: Any) -> None:
        late = given == verb and 3 in named(arguments)  # on a busy machine any of the others might be
        send(self, given, timeout if late else seconds, **arguments)

    monkeypatch.setattr(Member, "send", sending)
    monkeypatch.setattr(backend._pool, "thrift", Thrift())
    monkeypatch.setattr(backend._pool, "limit", CompileLimit())  # the backend's has learned from other tests
    outcomes = backend.measure(candidates, {})
    assert outcomes[3].cause == "timeout"
    taken = outcomes[3].build_seconds if verb == "compile" else outcomes[3].measure_seconds
    assert taken >= timeout, "its seconds are on nobody else's account"
    assert backend._pool.thrift._seconds >= sum(o.build_seconds for o in outcomes) - 1e-6
    assert all(o.seconds for place, o in enumerate(outcomes) if place != 3)
    assert not [pid for pid in hit if Path(f"/proc/{pid}").exists()]


def hurried(monkeypatch: pytest.MonkeyPatch, backend: Any, builds: list[float], operator: int) -> CompileLimit:
    """As after these builds, and a quick one of this operator, in a run."""
    limit = CompileLimit()
    for seconds in builds:
        limit.took(-1, seconds)
    limit.took(operator, 0.01)
    monkeypatch.setattr(backend._pool, "thrift", Thrift())
    monkeypatch.setattr(backend._pool, "limit", limit)
    return limit


def test_what_compiling_took_apart_is_forgotten(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = hurried(monkeypatch, backend, [0.05] * 200, 0)
    with backend._pool.apart():
        assert backend._pool.limit.of(0) == 60.0, "the most"
    assert backend._pool.limit is limit


def test_who_compiles_much_longer_than_the_others_is_not_waited_for(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = convolutions(backend, seed=40)
    hurried(monkeypatch, backend, [0.05] * 200, candidates[0].operator)
    signalled(monkeypatch, "compile", 3, signal.SIGSTOP, times=2)
    outcomes = backend.measure(candidates, {})
    assert (outcomes[3].cause, outcomes[3].error) == ("timeout", "the program did not finish within 1 s")


@pytest.mark.parametrize(("plan", "workers"), [(1, 1), (2, 2), (16, 2), (None, 2)])
def test_there_are_no_more_workers_than_candidates_at_a_time(
    backend: Any, tmp_path: Path, plan: int | None, workers: int
) -> None:
    from workers.tvm_backend.pool import Pool
    from workers.tvm_backend.programs import save_workloads

    save_workloads(backend.workloads, tmp_path / "workloads.json")
    pool = Pool(target(), 2, MeasureLock(tmp_path / "measure.lock"), plan=plan)
    pool.load(tmp_path / "workloads.json", backend._timing, (0, 0))
    members = len(pool.members)
    pool.close()
    assert members == workers


def test_there_are_no_more_workers_than_memory_has_room_for(
    backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 12 GiB half is theirs: 5 GiB of resting weights and what moves are held by each."""
    from workers.tvm_backend import pool as room
    from workers.tvm_backend.programs import save_workloads

    monkeypatch.setattr(room, "memory", lambda: 12 * 2**30)
    save_workloads(backend.workloads, tmp_path / "workloads.json")
    pool = room.Pool(target(), 2, MeasureLock(tmp_path / "measure.lock"))
    for largest, workers in ((5 * 2**30, 1), (2**30, 2), (2**34, 1)):
        pool.load(tmp_path / "workloads.json", backend._timing, (0, 2**30), largest)
        assert len(pool.members) == workers
    pool.close()


def test_the_operators_are_described_and_the_method_prepared_while_the_workers_read(
    zoo_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, done = spec_of(zoo.tiny(zoo_cache)), list[str]()
    from workers.tvm_backend import layouts
    from workers.tvm_backend.pool import Pool

    pool, described = Pool(spec.target, 2, lock_in(tmp_path)), layouts.operators

    def late(*given: Any) -> Any:
        done.append("described")
        return described(*given)

    def meanwhile() -> None:
        assert pool._nursery._process.connection.poll(60.0), "the answer is there, and nobody has read it"
        done.append("prepared")

    monkeypatch.setattr(layouts, "operators", late)
    backend = backend_over(pool, spec, tmp_path, meanwhile=meanwhile)
    backend.close()
    assert done == ["described", "prepared"]
    assert backend.operators()


def test_what_fails_while_the_workers_read_leaves_no_answer_behind(backend: Any, tmp_path: Path) -> None:
    from workers.tvm_backend.pool import Pool
    from workers.tvm_backend.programs import save_workloads

    save_workloads(backend.workloads, tmp_path / "workloads.json")
    order = tmp_path / "workloads.json", backend._timing, (0, 0)
    pool = Pool(target(), 2, lock_in(tmp_path))
    try:
        with pytest.raises(ZeroDivisionError):
            pool.load(*order, meanwhile=lambda: 1 / 0)
        pool.load(*order)
        assert len(pool.members) == 2
    finally:
        pool.close()


def test_workers_killed_between_batches_are_replaced(backend: Any) -> None:
    for member in backend._pool.members:
        os.kill(member.pid, signal.SIGKILL)
    assert all(o.seconds for o in backend.measure(convolutions(backend, seed=20), {}))


def test_a_worker_that_ends_with_nothing_to_do_costs_no_program_its_figure(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel ends one for its memory while another's program is timed: what it had compiled never ran."""
    pool, killed = backend._pool, list[int]()
    run = pool._run

    def after_one_died(tasks: Any, incumbents: Any) -> None:
        owner = next((task.member for task in tasks if task.member is not None), None)
        if owner is not None and not killed:
            killed.append(owner.pid)
            os.kill(owner.pid, signal.SIGKILL)
            eventually(lambda: owner.ended, 20)
        run(tasks, incumbents)

    monkeypatch.setattr(pool, "_run", after_one_died)
    outcomes = backend.measure(convolutions(backend, seed=91), {})
    assert killed
    assert all(o.seconds for o in outcomes), [(o.cause, o.error) for o in outcomes]


def test_who_takes_a_place_is_a_fork_of_what_has_loaded_already_and_knows_what_the_machine_does(backend: Any) -> None:
    pool = backend._pool
    pool._nursery.lately.clear()  # of which it keeps so many, and other tests have looked too
    backend.measure(convolutions(backend, seed=21, count=2), {})
    nursery, looks = pool._nursery._process.pid, len(pool._nursery.lately)
    assert looks >= 2, "before each of two, and after it where there is time for that"
    os.kill(pool.members[0].pid, signal.SIGKILL)
    assert all(o.seconds for o in backend.measure(convolutions(backend, seed=200, count=2), {}))
    parents = {int(stat_of(m.pid)[1]) for m in pool.members}
    assert parents == {nursery}
    assert len(pool._nursery.lately) > looks


def test_when_what_workers_are_made_of_dies_everything_begins_anew(backend: Any) -> None:
    pool = backend._pool
    before = {member.pid for member in pool.members}
    os.kill(pool._nursery._process.pid, signal.SIGKILL)
    assert all(o.seconds for o in backend.measure(convolutions(backend, seed=23), {}))
    assert all(o.seconds for o in backend.measure(convolutions(backend, seed=24), {}))
    assert not before & {member.pid for member in pool.members}
    assert not [pid for pid in before if Path(f"/proc/{pid}").exists()], "they die with it"


@pytest.mark.parametrize("verb", ["compile", "run"])
def test_who_is_in_hand_when_what_workers_are_made_of_dies_is_measured_by_others(
    backend: Any, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    candidates = convolutions(backend, seed=70 + len(verb))
    hit = signalled(monkeypatch, verb, 2, signal.SIGKILL, parent=True)
    outcomes = backend.measure(candidates, {})
    assert hit
    assert [o.candidate for o in outcomes] == candidates
    assert all(o.seconds for o in outcomes), [(o.cause, o.error) for o in outcomes]


def test_who_is_in_hand_when_that_dies_again_takes_the_blame(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hit = signalled(monkeypatch, "run", 2, signal.SIGKILL, times=2, parent=True)
    outcomes = backend.measure(convolutions(backend, seed=70), {})
    assert len(set(hit)) == 2
    assert [o.cause for o in outcomes] == ["", "", "crash", "", "", ""]


def test_when_what_workers_are_made_of_hangs_everything_begins_anew(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import nursery

    pool = backend._pool
    start, patience = nursery.Nursery._start, nursery.FORK_TIMEOUT

    def started(self: Any) -> None:
        monkeypatch.setattr(nursery, "FORK_TIMEOUT", patience)  # of one that does not hang
        start(self)

    monkeypatch.setattr(nursery.Nursery, "_start", started)
    monkeypatch.setattr(nursery, "FORK_TIMEOUT", 0.5)
    os.kill(pool._nursery._process.pid, signal.SIGSTOP)
    os.kill(pool.members[0].pid, signal.SIGKILL)
    assert all(o.seconds for o in backend.measure(convolutions(backend, seed=25), {}))
    assert all(o.seconds for o in backend.measure(convolutions(backend, seed=26), {}))


def test_what_has_threads_makes_no_workers() -> None:
    """A fork would have their locks, and not them."""
    target()
    from workers.tvm_backend.worker import Parent

    ours, theirs = socketpair()
    with ours, theirs:
        parent = Parent(Connection(theirs.detach()), target())
        send_fds(ours, [b"\1"], [ours.fileno()])
        over = threading.Event()
        thread = threading.Thread(target=over.wait)
        thread.start()
        with pytest.raises(RuntimeError, match="has threads"):
            parent.fork()
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (MemoryError(), {"error": "MemoryError: ", "cause": "memory"}),
        (RuntimeError("LLVM ERROR: out of memory"), {"error": "RuntimeError: LLVM ERROR: out of memory", "cause": "memory"}),
        (RuntimeError("no such loop"), {"error": "RuntimeError: no such loop"}),
    ],
)  # fmt: skip
def test_a_worker_out_of_memory_says_so_and_lives(
    error: Exception, answer: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target()
    from workers.tvm_backend import worker

    def exhausted(self: Any, programs: list[Any]) -> Any:
        raise error

    monkeypatch.setattr(worker.Worker, "compile", exhausted)
    ours, theirs = Pipe()
    one = worker.Worker(target())
    thread = threading.Thread(target=worker.serve, args=(theirs, one, (*worker.BUILDERS, "run")), daemon=True)
    thread.start()
    for verb in ("compile", "compile"):
        ours.send_bytes(json.dumps({"verb": verb, "programs": []}).encode())
        found = json.loads(ours.recv_bytes())
        assert found.pop("taken") >= 0
        assert found == answer
    ours.close()
    thread.join(5)
    assert not thread.is_alive()


def test_what_wants_more_memory_than_a_worker_may_have_costs_no_other_candidate(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.tvm_backend.company.COMPANY", 1)  # in company none of them would be to blame
    before = {member.pid for member in backend._pool.members}
    for pid in before:
        assert resource.prlimit(pid, resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
        used = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(pid, resource.RLIMIT_AS, (used, used))
    outcomes = backend.measure(convolutions(backend, seed=31, count=12), {})
    failed = [(o.cause, o.error) for o in outcomes if o.cause not in ("", "duplicate")]
    gone = before - {member.pid for member in backend._pool.members}
    assert 0 < len(failed) <= len(gone), "who had none left is replaced; one may have had enough"
    assert all(o.seconds for o in backend.measure(convolutions(backend, seed=32), {}))


def test_a_worker_that_does_not_start_is_told_so_that_the_run_goes_on(
    zoo_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that swaps it may the next time."""
    target()
    from workers.tvm_backend import nursery

    def stopped(*given: Any, **named: Any) -> Any:
        process = spawn(*given, **named)
        os.kill(process.pid, signal.SIGSTOP)
        return process

    spawn = nursery.spawn
    monkeypatch.setattr(nursery, "spawn", stopped)
    monkeypatch.setattr(nursery, "START_TIMEOUT", 0.0)
    with pytest.raises(
        nursery.PoolError, match=r"a measuring worker did not start: .* run 'manage.py doctor'"
    ) as caught:
        local_backend(zoo.tiny(zoo_cache), tmp_path)
    assert passing(caught.value, "tune")


def test_a_run_that_goes_on_knows_the_code_of_its_fastest_programs(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Thrift()
    monkeypatch.setattr(backend._pool, "thrift", first)
    candidates = convolutions(backend, seed=33)
    rows = [measurement_of(outcome) for outcome in backend.measure(candidates, {})]
    best = best_of(rows, [{"index": operator.index, "key": operator.key} for operator in backend.operators()])
    monkeypatch.setattr(backend._pool, "thrift", Thrift())
    backend.take_up(best)
    assert backend._pool.thrift._fastest == first._fastest != {}
    monkeypatch.setattr(backend._pool, "thrift", Thrift())
    backend.take_up({index: {**found, "choices": [10**6]} for index, found in best.items()})
    assert backend._pool.thrift._fastest == {}, "of another space nothing is known"


def test_running_out_of_memory_is_the_candidates_outcome(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.members import Dead, Member

    receive = Member.receive

    def answered(self: Any) -> dict[str, Any]:
        answer = receive(self)
        if [task.id for task in self.hand] == [1] and "seconds" in answer and "spread" in answer:
            raise Dead("memory", "out of memory")
        return answer

    monkeypatch.setattr(Member, "receive", answered)
    outcomes = backend.measure(convolutions(backend, seed=30), {})
    assert [o.cause for o in outcomes] == ["", "memory", "", "", "", ""]


def repeated(candidates: list[Candidate]) -> list[Candidate]:
    return [replace(candidate, origin="confirm", round=1) for candidate in candidates]


def test_repetitions_take_turns_and_their_figure_is_the_middle_one(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend.members import Member
    from workers.tvm_backend.pool import TURNS

    send, order, answered = Member.send, list[int](), defaultdict[int, list[float]](list)
    receive = Member.receive

    def sending(self: Any, given: str, timeout: float, **arguments: Any) -> None:
        if given == "run":
            assert arguments["incumbent"] is None
            order.append(arguments["id"])
        send(self, given, timeout, **arguments)

    def receiving(self: Any) -> dict[str, Any]:
        answer = receive(self)
        if "spread" in answer:
            answered[self.hand[0].id].append(answer["seconds"])
        return answer

    monkeypatch.setattr(Member, "send", sending)
    monkeypatch.setattr(Member, "receive", receiving)
    candidates = repeated(convolutions(backend, seed=50, count=3))
    outcomes = backend.measure(candidates, {candidates[0].operator: 1e-9})
    assert order == [0, 1, 2] * TURNS
    for place, outcome in enumerate(outcomes):
        assert outcome.seconds == sorted(answered[place])[TURNS // 2]
        assert outcome.spread > 0


def test_who_dies_in_its_second_turn_costs_the_others_nothing(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.members import Member
    from workers.tvm_backend.pool import TURNS

    send, turns = Member.send, defaultdict[int, list[bool]](list)

    def sending(self: Any, given: str, timeout: float, **arguments: Any) -> None:
        if given == "compile":
            for id in named(arguments):
                turns[id].clear()
        if given == "run":
            turns[arguments["id"]].append(arguments["last"])
            if arguments["id"] == 1 and len(turns[1]) == 2:
                os.kill(self.pid, signal.SIGKILL)
        send(self, given, timeout, **arguments)

    monkeypatch.setattr(Member, "send", sending)
    outcomes = backend.measure(repeated(convolutions(backend, seed=51, count=4)), {})
    assert [outcome.cause for outcome in outcomes] == ["", "crash", "", ""]
    assert all(outcome.seconds for outcome in outcomes if not outcome.cause)
    assert [turns[id] for id in (0, 2, 3)] == 3 * [[False] * (TURNS - 1) + [True]], "each had all its turns"


def test_of_all_seconds_a_fifth_may_go_for_good_moments(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.members import Member
    from workers.tvm_backend.pool import QUIET

    send, receive, given = Member.send, Member.receive, list[float]()

    def sending(self: Any, verb: str, timeout: float, **arguments: Any) -> None:
        if verb == "run":
            given.append(arguments["patience"])
        send(self, verb, timeout, **arguments)

    def receiving(self: Any) -> dict[str, Any]:
        answer = receive(self)
        return {**answer, "waited": 5.0} if "waited" in answer else answer

    monkeypatch.setattr(Member, "send", sending)
    monkeypatch.setattr(Member, "receive", receiving)
    pool, before = backend._pool, backend.spent()
    monkeypatch.setattr(pool, "made", time.monotonic() - 1000)
    monkeypatch.setattr(pool, "lost", 0.0)
    backend.measure(convolutions(backend, seed=60, count=2), {})
    assert given == [QUIET, QUIET]
    assert pool.lost == 10.0
    after = backend.spent()
    assert after["wait"] - before["wait"] >= 10.0 > 0.0 > after["measure"] - before["measure"]
    pool.lost = 1e6
    backend.measure(convolutions(backend, seed=61, count=2), {})
    assert max(given[2:]) < 0, "whatever the moment, it is timed"
