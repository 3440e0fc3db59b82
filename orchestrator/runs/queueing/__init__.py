"""How a run is described and stored in the queue."""
