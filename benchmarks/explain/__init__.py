"""How often `harness explain` names the right dispatch: pairs of programs whose difference is known."""
