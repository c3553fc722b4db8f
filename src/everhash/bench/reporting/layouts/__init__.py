"""How the rows of each kind of experiment become tables and figures: one file a kind."""
