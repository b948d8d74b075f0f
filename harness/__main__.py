"""`python -m harness`: the `harness` command, where a shell does not find it."""

from harness.cli import main

if __name__ == "__main__":
    main()
