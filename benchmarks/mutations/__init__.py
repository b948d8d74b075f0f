"""What the tests catch: single faults put into the source, one at a time, and the tests that should notice each."""
