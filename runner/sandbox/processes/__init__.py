"""The processes of the sandbox on the far side of a socket: fork server, zygotes, supervisors, jailed children."""
