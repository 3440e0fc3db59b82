"""Simulated series of schedules: how often the product's own test alarms without cause, and how soon with one."""
