"""Tables of scores and labels in columns: wide, list and long; Parquet files among them."""
