"""What the releases of IREE did to users of CPUs: measured, explained, and written down for docs/field/."""
