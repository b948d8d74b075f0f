"""Runs as pictures. matplotlib is imported when one is drawn, and not before."""
