"""What the harness says on GitHub: finds, updates or creates one comment for each pull request."""
