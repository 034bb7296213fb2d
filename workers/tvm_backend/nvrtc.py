"""CUDA's sources to machine code, by NVIDIA's compiler as a library (NVRTC).

What TVM writes in front of a kernel draws in thousands of lines of headers for the names of integers. With those few names
alone a kernel compiles in a third to a fourteenth of the time, 0.2 to 0.9 s in place of 2.5 on one core.
"""

from __future__ import annotations

import re
from typing import Any

import tvm_ffi

from workers.messages.linker import CUDA

CALLBACK = "tvm_callback_cuda_compile"
"""The function that TVM calls with a source."""
CREATE = "ffi.Module.create.cuda"
"""The function by which TVM's CUDA half makes a module of machine code; without that half it keeps sources."""
INTEGERS = (
    "typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short uint16_t;\n"
    "typedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t; typedef unsigned long long uint64_t;\n"
)
NOT_FINITE = (
    "#define CUDART_INF_F __int_as_float(0x7f800000)\n#define CUDART_NAN_F __int_as_float(0x7fffffff)\n"
    "#define CUDART_INF __longlong_as_double(0x7ff0000000000000LL)\n"
    "#define CUDART_NAN __longlong_as_double(0x7ff8000000000000LL)\n"
)
"""What TVM names of math_constants.h; the compiler knows these functions by itself."""
PLAIN = frozenset(
    {
        "cuda/std/cstdint", "cuda/std/type_traits", "cstdint", "type_traits", "cuda.h", "math_constants.h",
        "sm_61_intrinsics.h",
    }
)  # fmt: skip
"""Headers that TVM draws in whatever a kernel uses, and whose names there are few of: the last is for four bytes at once."""
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"].*$", re.MULTILINE)
_DOT = re.compile(r"(?<!int )__dp[24]a")
"""A call of what that header declares: TVM draws it in for any vector of bytes, and declares more of the kind itself."""
_USING = re.compile(r"^[ \t]*using cuda::std::\w+;[ \t]*$", re.MULTILINE)
MOST_SAID = 2000
"""Letters of what the compiler says of a source that it refuses."""


class NoCudaCompiler(RuntimeError):
    """Nothing here makes a GPU's machine code."""


def install(arch: str) -> None:
    """TVM compiles by NVRTC from now on, for GPUs of `arch` (sm_90)."""

    def compiled(source: str) -> bytes:
        return machine_code(source, arch)

    tvm_ffi.register_global_func(CALLBACK, compiled, override=True)


def check_driver() -> None:
    """Raises NoCudaCompiler where TVM found no driver or runtime of CUDA: what it builds then is no machine code, and who runs
    the library would have to compile it."""
    if tvm_ffi.get_global_func(CREATE, allow_missing=True) is None:
        reason = "TVM found no NVIDIA driver with CUDA's runtime 13 on the machine that builds, and makes no GPU code"
        raise NoCudaCompiler(f"{reason}: install them there (README, Graphics cards), or let a site with them tune")


def check() -> None:
    """Raises NoCudaCompiler, which names what to install."""
    try:
        _nvrtc().nvrtcVersion()
    except Exception as error:  # the package is not there, or finds no library: each says so in its own way
        said, *_ = [*str(error).splitlines(), type(error).__name__]
        raise NoCudaCompiler(f"no compiler for CUDA here ({said}): {CUDA}, or CUDA's toolkit") from None


def machine_code(source: str, arch: str) -> bytes:
    """The cubin of `source`. Raises RuntimeError with what the compiler says."""
    if (lean := without_headers(source)) is None:  # it uses half precision or the like
        from tvm.support.nvcc import compile_cuda

        return bytes(compile_cuda(source, target_format="cubin", arch=arch, compiler="nvrtc"))
    nvrtc = _nvrtc()
    program = _done(nvrtc, nvrtc.nvrtcCreateProgram(lean.encode(), b"kernels.cu", 0, None, None))
    try:
        options = [f"--gpu-architecture={arch}".encode(), b"-default-device"]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            said = bytearray(_done(nvrtc, nvrtc.nvrtcGetProgramLogSize(program)))
            nvrtc.nvrtcGetProgramLog(program, said)
            raise RuntimeError(f"NVRTC refused the source: {said.decode(errors='replace')[:MOST_SAID]}")
        code = bytearray(_done(nvrtc, nvrtc.nvrtcGetCUBINSize(program)))
        _done(nvrtc, nvrtc.nvrtcGetCUBIN(program, code))
        return bytes(code)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def without_headers(source: str) -> str | None:
    """`source` with few names in place of its headers; None where it needs more of them."""
    if not set(_INCLUDED.findall(source)) <= PLAIN or _DOT.search(source):
        return None
    return INTEGERS + NOT_FINITE + _USING.sub("", _INCLUDED.sub("", source))


def _nvrtc() -> Any:
    from cuda.bindings import nvrtc  # type: ignore[import-not-found,unused-ignore]  # of those who have a GPU

    return nvrtc


def _done(nvrtc: Any, answer: tuple[Any, ...]) -> Any:
    """The value beside a status. Raises RuntimeError."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC failed: {nvrtc.nvrtcGetErrorString(status)[1]!r}")
    return values[0] if values else None
