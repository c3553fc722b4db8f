"""everhash on several machines: shards that learn in parallel and answer as one collection."""
