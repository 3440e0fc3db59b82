"""What every outgoing HTTP request needs: which addresses may be called, which proxy leads there, which authorities are
trusted. A leaf: it knows nothing of providers, webhooks or datasets."""
