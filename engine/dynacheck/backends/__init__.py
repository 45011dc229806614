"""What a graph is handed to: the contract, the registry, and the backends that come with the engine."""
