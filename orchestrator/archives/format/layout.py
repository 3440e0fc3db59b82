"""The format of archives, for those who write and those who read them."""

FORMAT = "benchyard-archive-1"
BATCH_FORMAT = "benchyard-batch-1"
MANIFEST, ITEMS, OUTPUT, BATCH = "manifest.json", "items.jsonl", "output.txt", "batch.json"
