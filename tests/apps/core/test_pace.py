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


def test_a_try_may_cost_more_and_one_that_is_refused_costs_nothing():
    clock = Clock()
    pace = Pace(10, 60.0, clock=clock)
    assert [pace.allows("a", cost) for cost in (6, 5, 4, 1)] == [True, False, True, False]
    assert not pace.allows("b", 11)
    clock.now = 60.0
    assert pace.allows("a", 10)
