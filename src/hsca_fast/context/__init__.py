"""Layer 4 and above: chunks become snapshots, snapshots become the map of a conversation."""
