"""Loads compiled kernels when it is imported: for the process that others are forked from."""

from everhash import kernels

kernels.load_all()
