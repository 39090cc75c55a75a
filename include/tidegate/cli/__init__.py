"""The command line: a command tree, output, exit codes."""
