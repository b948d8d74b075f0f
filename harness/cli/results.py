"""`harness results`: what keeps a folder of runs in order."""
