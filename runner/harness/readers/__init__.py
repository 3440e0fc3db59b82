"""Turns what harnesses write into items, one module per format. Pure; nothing in a file is trusted."""
