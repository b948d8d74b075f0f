"""A history as a folder of pages that a browser opens by itself, from a disk or any web server."""
