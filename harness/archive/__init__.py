"""Results as an archive: places they lie at, merging and checking them, Parquet, and dropping old raw turns."""
