import socket

import pytest
from django.test import override_settings

from apps.operations.listening import Refused, listen, parse


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("127.0.0.1:8000", "127.0.0.1", 8000, True),
        ("localhost:81", "127.0.0.1", 81, True),
        ("[::1]:8000", "::1", 8000, True),
        ("0.0.0.0:8000", "0.0.0.0", 8000, False),
        ("192.168.1.2:80", "192.168.1.2", 80, False),
    ],
)
def test_an_address_is_read(text, host, port, loopback):
    address = parse(text)
    assert (address.host, address.port, address.loopback) == (host, port, loopback)


@pytest.mark.parametrize("text", ["8000", "", "example.org:80", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000"])
def test_what_is_not_an_address_is_refused_with_an_example(text):
    with pytest.raises(Refused, match=r"127\.0\.0\.1:8000"):
        parse(text)


def test_the_next_free_port_is_taken_unless_the_port_was_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        held, found = listen(parse(f"127.0.0.1:{port}", named=False))
        held.close()
        assert port < found.port < port + 50
        with pytest.raises(Refused, match=str(port)):
            listen(parse(f"127.0.0.1:{port}", named=True))


@pytest.mark.parametrize(
    ("text", "tls", "hosts", "origins", "site"),
    [
        ("127.0.0.1:8000", False, [], [], "http://127.0.0.1:8000"),
        ("127.0.0.1:8000", False, ["a.org"], ["http://localhost:8000"], "http://127.0.0.1:8000"),
        ("[::1]:8000", False, [], [], "http://[::1]:8000"),
        ("0.0.0.0:8000", False, [".org", "a.org", "b.org"], [], "http://a.org:8000"),
        ("192.168.1.2:80", False, ["a.org", "192.168.1.2"], [], "http://192.168.1.2:80"),
        ("192.168.1.2:80", False, ["a.org"], [], "http://a.org:80"),
        ("127.0.0.1:8000", True, [], ["http://localhost:8000", "https://.a.org", "https://b.org"], "https://b.org"),
        ("127.0.0.1:8000", True, [], [], "https://127.0.0.1"),
    ],
)
def test_a_site_is_named_as_a_browser_finds_it(text, tls, hosts, origins, site):
    with override_settings(TLS=tls, EXTRA_HOSTS=hosts, ORIGINS=origins):
        assert parse(text).site() == site
