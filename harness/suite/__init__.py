"""suite.toml -> Suite -> cases."""
