"""The lines that a run is compared with, by name, and the packages whose versions decide what they are."""

ONNX_RUNTIME, UNTUNED = "ONNX Runtime", "TVM untuned"
BASELINES = (ONNX_RUNTIME, UNTUNED)
PACKAGES = ("onnxruntime", "apache-tvm")
