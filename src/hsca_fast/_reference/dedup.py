"""Near-duplicates as connected components of the graph that joins rows with cosine ≥ t."""

from collections.abc import Sequence

from hsca_fast._reference.mmr import cosine


def components(embeddings: Sequence[Sequence[float]], threshold: float) -> list[set[int]]:
    """Sets of rows, found by walking the graph."""
    left = set(range(len(embeddings)))
    found = []
    while left:
        start = min(left)
        left.remove(start)
        group, frontier = {start}, [start]
        while frontier:
            i = frontier.pop()
            near = {j for j in left if cosine(embeddings[i], embeddings[j]) >= threshold}
            left -= near
            group |= near
            frontier += sorted(near)
        found.append(group)
    return found


def deduplicate(
    embeddings: Sequence[Sequence[float]], scores: Sequence[float], threshold: float = 0.85
) -> tuple[list[int], list[int]]:
    """Representatives, best score first, and each row's position among them. Ties go to the lowest row."""
    groups = components(embeddings, threshold)
    heads = {min(group, key=lambda i: (-scores[i], i)): group for group in groups}
    keep = sorted(heads, key=lambda i: (-scores[i], i))
    label = {member: keep.index(head) for head, group in heads.items() for member in group}
    return keep, [label[i] for i in range(len(embeddings))]
