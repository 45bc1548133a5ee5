def compare_ranks(*a, **k): raise NotImplementedError
export_lines = run_sql = compare_ranks
