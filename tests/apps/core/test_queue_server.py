from apps.core.queue_server import RESPITE, Hung


def test_a_server_that_hung_is_left_alone_for_a_while():
    now = 100.0
    hung = Hung(lambda: now)
    assert not hung
    hung.note()
    assert hung
    now += RESPITE
    assert not hung
