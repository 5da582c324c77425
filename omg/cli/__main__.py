"""`python -m omg.cli` is the command `omg`."""

from . import main

main()
