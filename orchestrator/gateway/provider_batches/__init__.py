"""Model calls through the providers' batch interfaces, which answer within a day at a lower price: calls are collected,
submitted in parts, polled, and settled into the ledger under their usual keys."""
