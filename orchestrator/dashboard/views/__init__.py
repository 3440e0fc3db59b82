"""View models: what a page shows, computed from rows. Pure: no database, no clock, no HTML."""
