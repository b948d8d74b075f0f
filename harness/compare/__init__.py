"""Two sides of a case -> a verdict: what is paired, what is measured again, and what may be said of it."""
