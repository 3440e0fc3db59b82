"""Parquet: `rows` starts a process that decodes the file (`worker`, which alone imports pyarrow) and reads its rows."""
