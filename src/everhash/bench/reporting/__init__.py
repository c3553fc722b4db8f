"""The parts of a report: samples, tables, figures, layouts."""
