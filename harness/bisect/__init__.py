"""Since when, and through what: the steps of an ordered history, and the parts of a change that make the difference."""
