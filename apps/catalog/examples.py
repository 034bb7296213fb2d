"""Example networks, made in a process of their own: the web side loads no model library."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from tempfile import TemporaryFile

from django.conf import settings

from apps.core.errors import Refused

EXAMPLE = "squeezenet"
EXAMPLES = {
    EXAMPLE: "SqueezeNet, 5 MB",
    "shufflenet": "ShuffleNet, 6 MB",
    "inception_v1": "GoogLeNet, 28 MB",
    "densenet121": "DenseNet-121, 33 MB",
    "resnet50": "ResNet-50, 103 MB",
}
"""Those of `workers.networks.examples` that a page offers, the smallest first, with what it calls them."""
EVERY = (*EXAMPLES, "alexnet", "vgg19")
"""All of them: the largest are for the command line."""
PATIENCE = 120.0  # s for a file to be made
WAIT = 30.0  # s for another to be done
PIECE = 1 << 20
_WRITE = "import sys; from workers.networks.examples import example_bytes; sys.stdout.buffer.write(example_bytes(sys.argv[1]))"
_ONE = threading.Lock()
"""Some hundred megabytes each: who asks for twenty takes the memory of what is tuned."""


def example_file(name: str) -> Iterator[bytes]:
    """The ONNX file of that example, in pieces. Raises Refused where it cannot be made, or others are for too long."""
    argv = [sys.executable, "-c", _WRITE, name]
    with TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as file:
        if not _ONE.acquire(timeout=WAIT):
            raise Refused(name, "other examples are being made", "wait a minute, then try again")
        try:
            subprocess.run(argv, stdout=file, cwd=settings.BASE_DIR, timeout=PATIENCE, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            look = "look at what it said in the log, or upload a network"
            raise Refused(name, "the example could not be made", look) from error
        finally:
            _ONE.release()
        file.seek(0)
        while piece := file.read(PIECE):
            yield piece
