"""What a fleet costs and what it survives: hosts that are simulated, hosts that are killed, and two that are real."""
