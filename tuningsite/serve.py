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

from apps.core.spooled_body import BODY

LINGER = 2.0  # s for the client to read the answer; closing at once would reset the connection before it does
_BODY = b"The request is too large.\n"
_ANSWER = (
    b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


def body_limit(method: bytes, target: bytes) -> int:
    """Bytes that the body of a request with this first line may have."""
    upload = method == b"POST" and target.startswith(tuple(path.encode() for path in settings.UPLOAD_PATHS))
    return int(settings.UPLOAD_LIMIT + (1 << 20) if upload else settings.BODY_LIMIT)


def _dropped(data: bytes) -> None:
    """Receives nothing more of a refused request."""


class BoundedRequest(http_protocol.WebRequest):  # type: ignore[misc]  # Daphne has no types
    """Answers 413 as soon as its body is, or is said to be, over the limit, and closes the connection.

    A body that Twisted keeps in a file is `body`, and Daphne finds nothing to read.
    """

    _left = 0
    _refused = False
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
        self._left = body_limit(self.channel._command, self.channel._path)
        too_large = length is not None and length > self._left
        super().gotLength(0 if too_large else length)
        if too_large:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._refuse()
        if not self._refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
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

    def _refuse(self) -> None:
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
        channel.transport.write(_ANSWER)
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
