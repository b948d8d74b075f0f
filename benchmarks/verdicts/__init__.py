"""How often the harness's verdicts are right, measured with the real compiler and runtime; see __main__.py."""
