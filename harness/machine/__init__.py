"""What this computer is."""
