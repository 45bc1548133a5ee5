"""Parse a query, choose segments and row groups that might match, pack tasks. Pure; doubt keeps."""
