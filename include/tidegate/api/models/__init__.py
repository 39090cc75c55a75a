"""What requests and responses look like. The contract; records of ``control`` may change freely."""
