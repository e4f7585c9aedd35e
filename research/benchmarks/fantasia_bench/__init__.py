"""Fantasia beside its peers on Bayesmark's tasks. Only `evaluator` needs scikit-learn, and `tuners` what they wrap."""
