"""The first day of four people, command by command."""
