"""Finding and comparing answers: pure functions, shared by the runner and by the checks of a benchmark description."""
