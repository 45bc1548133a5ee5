"""What ranklog measures of itself and what it promises. What merges is exact; a quantile is never understated."""
