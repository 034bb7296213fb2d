"""Pure algorithms: numbers in, numbers out. Knows neither TVM nor Django."""
