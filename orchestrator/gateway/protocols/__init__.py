"""The providers' protocols, one module each: reading requests, assembling and streaming answers, counting tokens."""
