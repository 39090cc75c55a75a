"""One module per group of verbs. Heavy imports happen inside the commands."""
