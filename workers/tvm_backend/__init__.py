"""The only room that imports tvm: networks in, operators and spaces out, candidates to times, best ones to a library."""
