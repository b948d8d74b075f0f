"""Run and comparison folders, here and elsewhere."""
