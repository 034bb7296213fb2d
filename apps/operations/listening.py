"""The address the site listens on."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import get_user_model

PORT = 8000
TRIES = 50


class Refused(Exception):
    """The site will not listen there; the text is for the user."""


@dataclass(frozen=True)
class Address:
    """`fixed`: the user named the port, so no other will do."""

    host: str
    port: int
    fixed: bool

    @property
    def loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def url(self, host: str = "") -> str:
        """By another name of this machine where one is given."""
        host = host or (f"[{self.host}]" if ":" in self.host else self.host)
        return f"http://{host}:{self.port}"

    def site(self) -> str:
        """Where a browser finds the site: the proxy's address with TLS, and else by a name that it answers to."""
        if settings.TLS:
            return next((o for o in _exact(settings.ORIGINS) if o.startswith("https://")), f"https://{self.host}")
        if self.loopback or self.host in settings.EXTRA_HOSTS:
            return self.url()
        return self.url(next(_exact(settings.EXTRA_HOSTS), ""))


def parse(text: str, named: bool = True) -> Address:
    """HOST:PORT or [HOST]:PORT with a numeric host, or localhost. Raises Refused."""
    host, separator, port = text.rpartition(":")
    host = host.strip("[]")
    host = "127.0.0.1" if host == "localhost" else host
    try:
        ipaddress.ip_address(host)
        number = int(port)
    except ValueError:
        separator = ""
        number = 0
    if not separator or not 0 < number < 65536:
        raise Refused(f"BIND {text!r} is not an address: write HOST:PORT with a numeric host, like 127.0.0.1:{PORT}")
    return Address(host, number, named)


def _exact(names: Iterable[str]) -> Iterator[str]:
    """Without those that stand for a domain with all that is beneath it."""
    return (name for name in names if not name.rpartition("//")[2].startswith((".", "*")))


def configured() -> Address:
    """As BIND says; one that is empty is not set, here as in the settings. A proxy goes on asking at the port that it was told,
    and would hand sessions and passwords to whatever has it. Raises Refused."""
    return parse(settings.BIND, named=bool(os.environ.get("BIND")) or settings.TLS)


def has_passwords() -> bool:
    """Whether somebody may sign in by one."""
    return any(user.has_usable_password() for user in get_user_model().objects.filter(is_active=True))


def admit(address: Address, passwords: Callable[[], bool] = has_passwords) -> None:
    """Raises Refused for an address that others reach while the site is not ready for others."""
    if address.loopback:
        return
    lacking = []
    if not settings.EXTRA_HOSTS or "*" in settings.EXTRA_HOSTS:
        lacking.append("the names it is reached by in ALLOWED_HOSTS")
    if not passwords():
        lacking.append("an account with a password (manage.py account NAME)")
    if lacking:
        raise Refused(
            f"BIND {address.host}:{address.port} lets other machines in, and the site lacks {' and '.join(lacking)}; "
            "add what is missing, or leave BIND out to stay on this machine"
        )


def listen(address: Address) -> tuple[socket.socket, Address]:
    """A listening socket there, or on the next free port unless the port is fixed. Raises Refused."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    last: OSError | None = None
    for port in range(address.port, min(address.port + (1 if address.fixed else TRIES), 65536)):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address.host, port))
            listening.listen(128)
        except OSError as error:
            listening.close()
            last = error
        else:
            return listening, Address(address.host, port, address.fixed)
    raise Refused(
        f"cannot listen on {address.host}:{address.port}: {last.strerror if last else 'no port'}; "
        "stop what listens there, or name another address in BIND"
    )
