"""Reading, checking and cleaning ONNX networks; knows no compiler and no database. Import the part that is needed."""
