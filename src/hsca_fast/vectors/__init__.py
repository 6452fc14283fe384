"""What vectors are near: prefix tiers, exact and approximate search, diversity."""
