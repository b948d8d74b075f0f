"""Runs over time: their figures as tables, which DuckDB queries, and the changes that stay."""
