"""What the history costs, and how often its changes are found; `python -m benchmarks.history` says more."""
