"""The process in the container: boot, claim, resource usage and exit."""
