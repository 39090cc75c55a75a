"""One module per subject; each endpoint says the role it needs."""
