"""Next-basket data: Ta-Feng, Instacart, or any Parquet file of lines."""
