"""The format of archives, for those who write and those who read them."""

FORMAT = "benchyard-archive-1"
MANIFEST, ITEMS, OUTPUT = "manifest.json", "items.jsonl", "output.txt"
