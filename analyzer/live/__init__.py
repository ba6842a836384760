"""Following a server while it runs: a growing file, a pipe, a container."""
