"""Layouts: tables and figures for each kind of experiment, one file each."""
