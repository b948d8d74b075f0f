"""Reports on GitHub: one comment a pull request and suite, found again by a hidden marker and updated in place."""
