"""The providers' protocols, one module each: how a request is read, an answer put together, streamed, counted."""
