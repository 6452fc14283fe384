"""From text to vectors, and from vectors to the nearest ones."""
