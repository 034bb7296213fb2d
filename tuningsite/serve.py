"""The web server: Daphne, with bodies bounded while they arrive, and neither they nor answers whole in memory.

Daphne hands a body to the application when it has all of it, and keeps it in a file until then: a limit in the
application comes after the disk is full. Then Twisted would read a form into memory and parse it, and Daphne put the
body into a queue before the application asks for any of it: 575 MB sent were 1.4 GB held. Of an answer Daphne takes as
fast as the application makes it, whether the client takes it or not.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import tempfile
from contextlib import suppress
from http import HTTPStatus
from importlib import import_module
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tuningsite.settings")

from daphne import cli, http_protocol, ws_protocol
from daphne.access import AccessLogGenerator
from daphne.cli import CommandLineInterface
from daphne.server import Server
from django.conf import settings
from twisted.internet.threads import deferToThread

from apps.core.amounts import shown
from apps.core.errors import Refused
from apps.core.log_lines import without_token
from apps.core.seats import Seats
from apps.core.session_cookie import session_of
from apps.core.spooled_body import BODY
from tuningsite.connection import Brake, Connection, Line, raise_limit

log = logging.getLogger(__name__)
LINGER = 2.0  # s for the client to read the answer; closing at once would reset the connection before it does
AT_ONCE = 3  # uploads of an account; each takes the disk's room for its body twice, and a third time for its network
SEATS = Seats(AT_ONCE)
_UPLOAD = "this upload"
_NO_LENGTH = Refused("this request", "it does not say its size", "send it with a Content-Length, not in chunks")
_NOBODY = Refused(_UPLOAD, "nobody is signed in", "sign in, then send it again")
_CROWDED = Refused(
    _UPLOAD, f"{AT_ONCE} of your account are arriving already", "wait until one of them is done, then send it again"
)
_UNJUDGED = Refused(_UPLOAD, "the site's database does not answer", "try again in a minute")


def is_upload(method: bytes, target: bytes) -> bool:
    """Whether the body of a request with this first line may be a network."""
    return method == b"POST" and target.partition(b"?")[0].decode("latin-1") in settings.UPLOAD_PATHS


def judged(session: str, length: int) -> tuple[Any, Refused | None]:
    """Whose upload of so many bytes it would be, and why it may not come."""
    # Django is set up by the application, which the server loads after this module.
    from apps.dashboard import uploads

    return uploads.judged(session, length)


def _dropped(data: bytes) -> None:
    """Receives nothing more of a refused request."""


class BoundedRequest(Brake, http_protocol.WebRequest):  # type: ignore[misc]  # Daphne has no types
    """Answers 413 as soon as its body is said to be over the limit, and closes the connection; 411 where its size is unknown:
    Twisted would keep it in a file, and Django reads no form without it.

    An upload is judged by its head, and not read until it is: 403 where nobody is signed in; 507 where the account has no
    room for it, or the disk does not take it; 429 where as many of the account arrive already.

    A body that Twisted keeps in a file is `body`, and Daphne finds nothing to read.

    Of its answer it is the producer, which the connection has pause until the client has taken what was written.
    """

    _refused = False
    _whole = False
    _closing: Any = None
    _seat: Any = None
    content: Any
    body: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options, parsePOSTFormSubmission=False)

    def process(self) -> Any:
        # Daphne takes the site's place among addresses from it, whoever sends it, and breaks at what is no ASCII.
        self.requestHeaders.removeHeader(b"Daphne-Root-Path")
        if not isinstance(self.content, io.BytesIO):
            self.body, self.content = self.content, io.BytesIO()
            self.body.seek(0)
        return super().process()

    def gotLength(self, length: int | None) -> None:
        upload = is_upload(self.channel._command, self.channel._path)
        limit = settings.UPLOAD_LIMIT + settings.UPLOAD_FORM if upload else settings.BODY_LIMIT
        known = length or 0
        session = session_of(self.requestHeaders.getRawHeaders(b"cookie", ()))
        large = upload and known > settings.UPLOAD_FORM
        refusal = None
        if length is None:
            refusal = 411, _NO_LENGTH
        elif known > limit:
            refusal = 413, _too_large(limit, upload)
        elif large and not session:
            refusal = 403, _NOBODY
        super().gotLength(0 if refusal else length)
        if refusal:
            self._refuse(*refusal)
        elif large:
            self.channel.uploading = True
            self.transport.pauseProducing()
            deferToThread(judged, session, known).addCallbacks(self._judged, self._unjudged)

    def _judged(self, verdict: tuple[Any, Refused | None]) -> None:
        account, refusal = verdict
        if not self._awaited():
            return
        if account is None:
            self._refuse(403, _NOBODY)
        elif refusal is not None:
            self._refuse(refusal.status, refusal)
        elif not SEATS.take(account):
            self._refuse(429, _CROWDED)
        else:
            self._seat = account

    def _unjudged(self, failure: Any) -> None:
        log.error("an upload could not be judged", exc_info=(failure.type, failure.value, failure.getTracebackObject()))
        if self._awaited():
            self._refuse(503, _UNJUDGED)

    def _awaited(self) -> bool:
        """Goes on reading; False where the client is gone, or the body was whole before: little more than one read, which came
        with an earlier request of its connection."""
        if self._whole or self.channel is None:
            return False
        self.transport.resumeProducing()
        return True

    def handleContentChunk(self, data: bytes) -> None:
        if self._refused:
            return
        try:
            super().handleContentChunk(data)
        except OSError as error:
            self._refuse(507, _unwritten(error))

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        self._whole, self.channel.uploading = True, False
        if self._refused:
            return
        try:
            self.content.flush()
        except OSError as error:
            self._refuse(507, _unwritten(error))
        else:
            super().requestReceived(command, path, version)

    def connectionLost(self, reason: Any) -> None:
        if self._closing is not None and self._closing.active():
            self._closing.cancel()
        self._let_go()
        super().connectionLost(reason)

    def finish(self) -> None:
        self._let_go()
        self.unregisterProducer()
        super().finish()

    def handle_reply(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start" and not self._response_started and self.channel is not None:
            self.registerProducer(self, True)
        super().handle_reply(message)

    def _let_go(self) -> None:
        if self.body is not None:
            self.body.close()
        if self._seat is not None:
            SEATS.leave(self._seat)
            self._seat = None

    def _refuse(self, status: int, refusal: Refused) -> None:
        if self._refused:
            return
        self._refused = True
        with suppress(OSError):  # of what the disk did not take
            self.content.close()
        self.content = io.BytesIO()
        self.requestHeaders.removeHeader(b"Expect")  # or "100 Continue" would follow
        from twisted.internet import reactor

        later: Any = reactor  # a module that becomes the reactor

        channel = self.channel
        channel.setTimeout(None)
        channel.dataReceived = _dropped
        body = f"{refusal.sentence}\n".encode()
        channel.transport.write(
            b"HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
            % (status, HTTPStatus(status).phrase.encode(), len(body), body)
        )
        channel.transport.loseWriteConnection()
        self._closing = later.callLater(LINGER, channel.transport.abortConnection)


def _too_large(limit: int, upload: bool) -> Refused:
    reason = f"it is larger than the {shown(limit)} that are taken here"
    return Refused("this request", reason, "upload a smaller network" if upload else "send less")


def _unwritten(error: OSError) -> Refused:
    return Refused(
        _UPLOAD, f"it cannot be written ({error.strerror})", "make room on the server's disk, then send it again"
    )


class SpoolingServer(Server):  # type: ignore[misc]
    """Gives the application the file of a body that is in one, and has it wait until its answer is taken.

    What a viewer is told has no bound: a frame beyond it would be left out without a word. What it says has one (`Line`).
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        sys.path[:] = [place for place in sys.path if place != "."]  # Daphne's
        super().__init__(*args, **{**options, "websocket_max_message_size": 0})

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if getattr(protocol, "body", None) is not None:
            scope[BODY], protocol.body = protocol.body, None
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        await super().handle_reply(protocol, message)
        if isinstance(protocol, Brake):
            await protocol.taken()


class AccessLog(AccessLogGenerator):  # type: ignore[misc]
    """Who asked for what, but for the tokens of links to sign in."""

    def write_entry(self, host: Any, date: Any, request: str, **more: Any) -> None:
        super().write_entry(host, date, without_token(request), **more)


def main() -> None:
    raise_limit()
    cli.AccessLogGenerator = AccessLog
    http_protocol.WebRequest, http_protocol.HTTPFactory.protocol = BoundedRequest, Connection
    ws_protocol.WebSocketFactory.protocol = Line
    CommandLineInterface.server_class = SpoolingServer
    tempfile.tempdir = str(settings.FILE_UPLOAD_TEMP_DIR)  # on the disk that the networks are on; /tmp may be memory
    # Daphne would look for it, and for what it imports, in the current directory first.
    import_module("tuningsite.asgi")
    CommandLineInterface.entrypoint()


if __name__ == "__main__":
    main()
