"""Our own client: routing to leaders and coordinators, a batching producer, a consumer with groups, admin, columns."""
