"""Results folders over years: merged, compacted to Parquet, checked, thinned out."""
