"""Who may do what: keys, scopes, quotas of tenants, all in the store. A key's word is never its proof."""
