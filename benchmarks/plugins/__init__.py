"""What the built-in plugins gain, measured beside other engines; see __main__.py."""
