"""Values that rooms share: a case, what a run folder holds, what a comparison says."""
