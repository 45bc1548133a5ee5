"""The built functions: what `sam build` made, its sizes and imports, and the system that it runs."""
