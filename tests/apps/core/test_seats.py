from apps.core.seats import Seats


def test_so_many_at_a_time_for_each_key():
    seats = Seats(2)
    assert [seats.take("a") for _ in range(3)] == [True, True, False]
    assert seats.take("b")
    seats.leave("a")
    assert [seats.take("a") for _ in range(2)] == [True, False]


def test_nobody_who_left_is_remembered():
    seats = Seats(1)
    assert seats.take("a")
    assert not seats.take("a")
    seats.leave("a")
    assert not seats._taken
