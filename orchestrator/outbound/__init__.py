"""Shared by all outgoing HTTP requests: which addresses may be called, which proxy to use, which authorities to trust. A
leaf: it knows nothing of providers, webhooks or datasets."""
