"""A folder of pages made of a history: opened from a disk or by any web server."""
