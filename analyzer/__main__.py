"""``python -m analyzer``: the same as the ``kvautopsy`` command."""

from analyzer.cli import main

if __name__ == "__main__":
    main()
