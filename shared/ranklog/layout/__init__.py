"""What the bytes mean: keys, Parquet schema, index, tokens and templates, versions. Pure."""
