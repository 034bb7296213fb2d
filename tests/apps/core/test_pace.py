from apps.core.pace import Pace


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_so_many_in_a_time_and_then_again():
    clock = Clock()
    pace = Pace(3, 60.0, clock=clock)
    assert [pace.allows("a") for _ in range(4)] == [True, True, True, False]
    assert pace.allows("b")
    clock.now = 59.9
    assert not pace.allows("a")
    clock.now = 60.0
    assert [pace.allows("a") for _ in range(4)] == [True, True, True, False]


def test_it_remembers_so_many_keys_and_no_more():
    pace = Pace(1, 60.0, keys=2, clock=Clock())
    assert pace.allows("a")
    assert pace.allows("b")
    assert not pace.allows("a")
    assert pace.allows("c")  # b is forgotten
    assert not pace.allows("a")
    assert pace.allows("b")


def test_others_by_the_number_give_nobody_new_tries():
    pace = Pace(5, 60.0, keys=10, clock=Clock())
    assert [pace.allows("ada") for _ in range(6)] == [True] * 5 + [False]
    assert [pace.allows(f"other {number}") for number in range(30)] == [True] * 30
    assert not pace.allows("ada")


def test_two_that_drive_each_other_out_have_no_more_tries_than_others():
    pace = Pace(5, 60.0, keys=10, clock=Clock())
    for number in range(9):
        assert [pace.allows(f"other {number}") for _ in range(2)] == [True] * 2
    tried = [pace.allows(name) for _ in range(50) for name in ("ada", "bob")]
    assert 3 <= sum(tried[::2]) <= 5


def test_whose_tries_are_over_is_forgotten_first():
    clock = Clock()
    pace = Pace(3, 60.0, keys=2, clock=clock)
    assert [pace.allows("a") for _ in range(3)] == [True] * 3
    clock.now = 30.0
    assert pace.allows("b")
    assert not pace.allows("a")
    clock.now = 60.0
    assert [pace.allows("c") for _ in range(4)] == [True, True, True, False]
    assert [pace.allows("b") for _ in range(3)] == [True, True, False]


def test_a_try_may_cost_more_and_one_that_is_refused_costs_nothing():
    clock = Clock()
    pace = Pace(10, 60.0, clock=clock)
    assert [pace.allows("a", cost) for cost in (6, 5, 4, 1)] == [True, False, True, False]
    assert not pace.allows("b", 11)
    clock.now = 60.0
    assert pace.allows("a", 10)
