"""The web server: Daphne, with request bodies bounded while they arrive, and never whole in memory.

Daphne hands a body to the application when it has all of it, and keeps it in a file until then: a limit in the
application comes after the disk is full. Then Twisted would read a form into memory and parse it, and Daphne put the
body into a queue before the application asks for any of it: 575 MB sent were 1.4 GB held.
"""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tuningsite.settings")

from daphne import http_protocol
from daphne.cli import CommandLineInterface
from daphne.server import Server
from django.conf import settings
from twisted.internet.threads import deferToThread

from apps.core.spooled_body import BODY

LINGER = 2.0  # s for the client to read the answer; closing at once would reset the connection before it does
_TOO_LARGE = (b"413 Request Entity Too Large", b"The request is too large.\n")
_NO_LENGTH = (b"411 Length Required", b"An upload must say its size: send it with a Content-Length, not in chunks.\n")


def is_upload(method: bytes, target: bytes) -> bool:
    """Whether the body of a request with this first line may be a network."""
    return method == b"POST" and target.startswith(tuple(path.encode() for path in settings.UPLOAD_PATHS))


def _no_room(session: str, length: int) -> str:
    """Why the account of a session may not upload so many bytes, or ""."""
    # Django is set up by the application, which the server loads after this module.
    from apps.dashboard.full import refusal

    return refusal(session, length)


def _undecided(failure: Any) -> None:
    """The application will say what is wrong with the database."""


def _dropped(data: bytes) -> None:
    """Receives nothing more of a refused request."""


class BoundedRequest(http_protocol.WebRequest):  # type: ignore[misc]  # Daphne has no types
    """Answers 413 as soon as its body is, or is said to be, over the limit, and closes the connection. An upload of
    unknown size is answered 411 before it begins: Django reads no form without a length. One that its account has no room for
    is answered 413 while it arrives, as soon as the database has said so.

    A body that Twisted keeps in a file is `body`, and Daphne finds nothing to read.
    """

    _left = 0
    _refused = False
    _whole = False
    _closing: Any = None
    content: Any
    body: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options, parsePOSTFormSubmission=False)

    def process(self) -> Any:
        if not isinstance(self.content, io.BytesIO):
            self.body, self.content = self.content, io.BytesIO()
            self.body.seek(0)
        return super().process()

    def gotLength(self, length: int | None) -> None:
        upload = is_upload(self.channel._command, self.channel._path)
        self._left = settings.UPLOAD_LIMIT + (1 << 20) if upload else settings.BODY_LIMIT
        refused = _NO_LENGTH if upload and length is None else _TOO_LARGE if (length or 0) > self._left else None
        super().gotLength(length if refused is None else 0)
        if refused is not None:
            self._refuse(*refused)
        elif upload and length and (session := self.received_cookies.get(settings.SESSION_COOKIE_NAME.encode())):
            deferToThread(_no_room, session.decode("latin-1"), length).addCallbacks(self._judged, _undecided)

    def _judged(self, reason: str) -> None:
        """Of a body that was quicker the application says the same."""
        if reason and not self._whole and self.channel is not None:
            self._refuse(b"413 Request Entity Too Large", reason.encode() + b"\n")

    def handleContentChunk(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._refuse(*_TOO_LARGE)
        if not self._refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        self._whole = True
        if not self._refused:
            super().requestReceived(command, path, version)

    def connectionLost(self, reason: Any) -> None:
        if self._closing is not None and self._closing.active():
            self._closing.cancel()
        self._drop_body()
        super().connectionLost(reason)

    def finish(self) -> None:
        self._drop_body()
        super().finish()

    def _drop_body(self) -> None:
        if self.body is not None:
            self.body.close()

    def _refuse(self, status: bytes, body: bytes) -> None:
        if self._refused:
            return
        self._refused = True
        self.content.close()
        self.content = io.BytesIO()
        self.requestHeaders.removeHeader(b"Expect")  # or "100 Continue" would follow
        from twisted.internet import reactor

        later: Any = reactor  # a module that becomes the reactor

        channel = self.channel
        channel.setTimeout(None)
        channel.dataReceived = _dropped
        channel.transport.write(
            b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
            % (status, len(body), body)
        )
        channel.transport.loseWriteConnection()
        self._closing = later.callLater(LINGER, channel.transport.abortConnection)


class SpoolingServer(Server):  # type: ignore[misc]
    """Gives the application the file of a body that is in one."""

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if getattr(protocol, "body", None) is not None:
            scope[BODY] = protocol.body
        return super().create_application(protocol, scope)


def main() -> None:
    http_protocol.WebRequest = BoundedRequest
    CommandLineInterface.server_class = SpoolingServer
    tempfile.tempdir = str(settings.FILE_UPLOAD_TEMP_DIR)  # on the disk that the networks are on; /tmp may be memory
    CommandLineInterface.entrypoint()


if __name__ == "__main__":
    main()
