"""How well `harness tune` searches: its races and its sampler, against others of the same kind."""
