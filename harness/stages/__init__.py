"""The stages of a run: each takes what the stages before it gave, and leaves its results on disk."""
