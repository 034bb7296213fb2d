"""Small networks of families beside classifiers, with seeded random weights: what is enlarged, heard, spoken, or has depth.

`python -c "from pathlib import Path; from tests import families; families.write(Path('.'), 'unet')"` writes unet.onnx. The
forms are those of the papers named, narrower.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests import zoo


def write(folder: Path, name: str) -> Path:
    """`name`.onnx in `folder`, once; KeyError for a family that there is not."""
    build, shape = FAMILIES[name]
    return zoo._cached(folder, name, lambda: zoo._exported(lambda _: build(), shape))


def quantised(folder: Path, name: str) -> Path:
    """The same as ONNX Runtime quantises it, by channels: `name`_QDQ.onnx."""
    return zoo._cached(folder, f"{name}_QDQ", lambda: zoo._quantised(write(folder, name), "QDQ", True))


def _normed(kind: type[nn.Module], *sizes: int, **options: Any) -> nn.Module:
    """A normalisation by statistics that are not 0 and 1."""
    layer = kind(*sizes, **options)
    for name, values in layer.named_buffers():
        if name == "running_mean":
            values.normal_(0.0, 0.1)
        elif name == "running_var":
            values.uniform_(0.5, 1.5)
    return layer


class _Decoder(nn.Module):
    """Encoder and decoder with what the first saw beside it (Ronneberger et al. 2015; Cicek et al. 2016 with depth)."""

    def __init__(self, axes: int, inputs: int, widths: list[int]) -> None:
        super().__init__()
        self.conv, up = (nn.Conv2d, nn.ConvTranspose2d) if axes == 2 else (nn.Conv3d, nn.ConvTranspose3d)
        self.pool = nn.MaxPool2d(2) if axes == 2 else nn.MaxPool3d(2)
        pairs = list(zip([inputs, *widths], widths, strict=False))
        self.down = nn.ModuleList([self.block(*pair) for pair in pairs])
        falling = list(zip(widths[::-1], widths[-2::-1], strict=False))
        self.up = nn.ModuleList([up(wide, narrow, 2, 2) for wide, narrow in falling])
        self.joined = nn.ModuleList([self.block(wide, narrow) for wide, narrow in falling])
        self.last = self.conv(widths[0], 2, 1)

    def block(self, inputs: int, outputs: int) -> nn.Module:
        layers: list[nn.Module] = []
        for width in (inputs, outputs):
            layers += [self.conv(width, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU()]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        for block in self.down:
            x = block(self.pool(x) if seen else x)
            seen.append(x)
        for up, joined, beside in zip(self.up, self.joined, seen[-2::-1], strict=True):
            x = joined(torch.cat([up(x), beside], 1))
        return self.last(x)


def _generator(width: int = 64) -> nn.Module:
    """Images of noise (Radford et al. 2016)."""
    layers: list[nn.Module] = []
    for inputs, outputs, stride, pad in ((100, 8, 1, 0), (8, 4, 2, 1), (4, 2, 2, 1), (2, 1, 2, 1)):
        read, made = inputs if inputs == 100 else inputs * width, outputs * width
        layers += [nn.ConvTranspose2d(read, made, 4, stride, pad, bias=False), _normed(nn.BatchNorm2d, made), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())


class _Residual3d(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv3d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv3d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([_normed(nn.BatchNorm3d, outputs) for _ in range(2)])
        self.beside = nn.Conv3d(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(y)) + self.beside(x))


def _video(width: int = 32) -> nn.Module:
    """Clips of video (Tran et al. 2018, R3D)."""
    stem = [nn.Conv3d(3, width, (3, 7, 7), (1, 2, 2), (1, 3, 3)), nn.ReLU()]
    blocks = [_Residual3d(width * max(n // 2, 1), width * n, 1 + (n > 1)) for n in (1, 2, 4, 8)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8 * width, 400))


class _Gated(nn.Module):
    """Dilated convolutions of a signal, each gated (van den Oord et al. 2016)."""

    def __init__(self, width: int = 64, layers: int = 8) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(80, width, 1), nn.Conv1d(width, 256, 1)
        self.dilated = nn.ModuleList(
            [nn.Conv1d(width, 2 * width, 3, dilation=2**n, padding=2**n) for n in range(layers)]
        )
        self.after = nn.ModuleList([nn.Conv1d(width, 2 * width, 1) for _ in range(layers)])

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        total = torch.zeros_like(x)
        for dilated, after in zip(self.dilated, self.after, strict=True):
            value, gate = dilated(x).chunk(2, 1)
            left, skipped = after(torch.tanh(value) * torch.sigmoid(gate)).chunk(2, 1)
            x, total = (x + left) * 0.5**0.5, total + skipped
        return self.last(functional.relu(total))


class _Vocoder(nn.Module):
    """A waveform of a spectrogram (Kong et al. 2020, HiFi-GAN)."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.first, self.up, self.fields = nn.Conv1d(80, width, 7, padding=3), nn.ModuleList(), nn.ModuleList()
        for kernel, stride in ((16, 8), (16, 8), (4, 2), (4, 2)):
            self.up.append(nn.ConvTranspose1d(width, width // 2, kernel, stride, (kernel - stride) // 2))
            width //= 2
            fields = [
                [nn.Conv1d(width, width, k, padding=(k - 1) // 2 * d, dilation=d) for d in (1, 3, 5)] for k in (3, 7)
            ]
            self.fields.append(nn.ModuleList([nn.ModuleList(field) for field in fields]))
        self.last = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for up, fields in zip(self.up, self.fields, strict=True):
            x = up(functional.leaky_relu(x, 0.1))
            made = [self._field(x, field) for field in fields]
            x = (made[0] + made[1]) / 2
        return torch.tanh(self.last(functional.leaky_relu(x)))

    @staticmethod
    def _field(x: Tensor, convolutions: Any) -> Tensor:
        for one in convolutions:
            x = x + one(functional.leaky_relu(x, 0.1))
        return x


class _Separator(nn.Module):
    """Two voices of one signal (Luo and Mesgarani 2019, Conv-TasNet)."""

    def __init__(self, width: int = 128, hidden: int = 256) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, width, 16, 8, bias=False)
        self.decoder = nn.ConvTranspose1d(width, 1, 16, 8, bias=False)
        self.blocks = nn.ModuleList([self.block(width, hidden, 2**n) for _ in range(2) for n in range(4)])
        self.masks = nn.Conv1d(width, 2 * width, 1)

    @staticmethod
    def block(width: int, hidden: int, dilation: int) -> nn.Module:
        along = nn.Conv1d(hidden, hidden, 3, padding=dilation, dilation=dilation, groups=hidden)
        return nn.Sequential(
            nn.Conv1d(width, hidden, 1), nn.PReLU(), nn.GroupNorm(1, hidden), along, nn.PReLU(),
            nn.GroupNorm(1, hidden), nn.Conv1d(hidden, width, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        seen = functional.relu(self.encoder(x))
        found = seen
        for block in self.blocks:
            found = found + block(found)
        masks = torch.sigmoid(self.masks(found)).chunk(2, 1)
        return torch.cat([self.decoder(mask * seen) for mask in masks], 1)


class _Recogniser(nn.Module):
    """A line of text (Shi et al. 2017, CRNN)."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            *self.conv(1, 64), nn.MaxPool2d(2), *self.conv(64, 128), nn.MaxPool2d(2), *self.conv(128, 256),
            nn.MaxPool2d((2, 1)), *self.conv(256, 512), nn.MaxPool2d((2, 1)), nn.Conv2d(512, 512, (2, 3), 1, (0, 1)),
        )  # fmt: skip
        self.read = nn.LSTM(512, 256, 2, bidirectional=True)
        self.letters = nn.Linear(512, 37)

    @staticmethod
    def conv(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, 1, 1), _normed(nn.BatchNorm2d, outputs), nn.ReLU()]

    def forward(self, x: Tensor) -> Tensor:
        return self.letters(self.read(self.seen(x).squeeze(2).permute(2, 0, 1))[0])


class _Pyramid(nn.Module):
    """Each pixel's class at several rates, enlarged (Chen et al. 2017, DeepLab v3)."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        wide = 8 * width
        steps = [(3, width, 2), (width, 2 * width, 2), (2 * width, 4 * width, 2), (4 * width, wide, 2)]
        self.body = nn.Sequential(*(self.conv(i, o, 3, stride=s, padding=1) for i, o, s in steps))
        rated = [self.conv(wide, 128, 3, padding=rate, dilation=rate) for rate in (6, 12, 18)]
        self.rates = nn.ModuleList([self.conv(wide, 128, 1), *rated])
        self.whole = self.conv(wide, 128, 1)
        self.last = nn.Sequential(self.conv(640, 128, 1), nn.Conv2d(128, 21, 1))

    @staticmethod
    def conv(inputs: int, outputs: int, kernel: int, **options: Any) -> nn.Module:
        conv = nn.Conv2d(inputs, outputs, kernel, bias=False, **options)
        return nn.Sequential(conv, _normed(nn.BatchNorm2d, outputs), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        size, x = x.shape[2:], self.body(x)
        mean = self.whole(x.mean((2, 3), keepdim=True)).expand(-1, -1, *x.shape[2:])
        found = self.last(torch.cat([*(rate(x) for rate in self.rates), mean], 1))
        return functional.interpolate(found, size, mode="bilinear")


FAMILIES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "unet": (lambda: _Decoder(2, 3, [32, 64, 128, 256]), (1, 3, 128, 128)),
    "unet3d": (lambda: _Decoder(3, 1, [16, 32, 64]), (1, 1, 32, 32, 32)),
    "generator": (_generator, (1, 100, 1, 1)),
    "video": (_video, (1, 3, 8, 112, 112)),
    "wavenet": (_Gated, (1, 80, 500)),
    "vocoder": (_Vocoder, (1, 80, 32)),
    "separator": (_Separator, (1, 1, 8000)),
    "recogniser": (_Recogniser, (1, 1, 32, 128)),
    "pyramid": (_Pyramid, (1, 3, 384, 384)),
}
"""How each is built, and what it reads."""
