"""The phases of a retrieval, one module each or a few that belong together, all with the interface of `Phase`."""
