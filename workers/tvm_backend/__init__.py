"""All that is TVM's: networks in, operators and spaces out, candidates to times, best ones to a library. Beside it child,
device and benchmarks load tvm, and nobody else."""
