"""`python -m moldau` is the command `moldau`."""

from moldau.cli.main import main

if __name__ == "__main__":
    main()
