"""`python -m everhash` is the command line."""

from everhash.cli import run

run()
