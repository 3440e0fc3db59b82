"""The process in the container: boot, claim, standby, what it uses and how it ends."""
