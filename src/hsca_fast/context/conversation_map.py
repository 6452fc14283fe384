"""The macro layer: the ordered snapshots of a conversation, and questions to them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import overload

import numpy as np
import numpy.typing as npt

from hsca_fast.context import relevance
from hsca_fast.context.provenance import Provenance
from hsca_fast.context.relevance import EmbedsTexts, Floats
from hsca_fast.context.words import content_words, phrase_pattern
from hsca_fast.fields import unit
from hsca_fast.files import Tear, TornFileWarning
from hsca_fast.text.scoring import score_texts
from hsca_fast.types import ContextSnapshot, DomainTag, WeightedChunk

_NAMESPACE_END = "/"
_TAG_ORDER = {tag.value: i for i, tag in enumerate(DomainTag)}
_NO_DOMAIN = {DomainTag.CROSS_DOMAIN.value, DomainTag.UNCLASSIFIED.value}


@dataclass(frozen=True, slots=True)
class Transition:
    """The conversation moved from one domain to another.

    Attributes
    ----------
    position
        `conversation_position` of the first snapshot in the new domain.
    before, after
        The leading domains (`leading_domain`).
    shift
        Half the sum of absolute differences of the two domain distributions, in [0, 1].
    """

    position: int
    before: str
    after: str
    shift: float


class ConversationMap(Sequence[ContextSnapshot]):
    """The snapshots of a conversation, in order.

    Parameters
    ----------
    snapshots
        With distinct ids, and positions that increase.

    Attributes
    ----------
    tear
        Where the file was torn that the map was loaded from, or None.

    Examples
    --------
    >>> from hsca_fast import HSCAEngine
    >>> engine = HSCAEngine(max_buffer_chunks=1)
    >>> _ = engine.ingest_turns(["The keeper lit the lamp.", "Boats saw the lamp.", "Now, about lunch."])
    >>> talk = ConversationMap(engine.get_macro_context())
    >>> talk.state_before("lunch").chunks[0].text
    'Boats saw the lamp.'
    >>> talk.relevance("which lamp?").argmax(), talk.relevance("which lamp?", context_position=1, radius=0).tolist()[0]
    (np.int64(0), 0.0)
    """

    def __init__(self, snapshots: Sequence[ContextSnapshot]) -> None:
        self._snapshots = tuple(snapshots)
        self._origins: tuple[Provenance, ...] | None = None
        self.tear: Tear | None = None
        self._word_weights: dict[str, dict[int, float]] | None = None
        self._embedded: tuple[EmbedsTexts, Floats] | None = None
        self._texts_kept: npt.NDArray[np.bool_] | None = None
        seen: set[str] = set()
        latest = -1
        for i, snapshot in enumerate(self._snapshots):
            if not isinstance(snapshot, ContextSnapshot):
                raise TypeError(f"snapshots[{i}] must be a ContextSnapshot, not {type(snapshot).__name__}")
            if snapshot.snapshot_id in seen:
                raise ValueError(f"snapshots[{i}].snapshot_id {snapshot.snapshot_id!r} is there already")
            if snapshot.conversation_position <= latest:
                raise ValueError(
                    f"snapshots[{i}].conversation_position is {snapshot.conversation_position}, after {latest}"
                )
            seen.add(snapshot.snapshot_id)
            latest = snapshot.conversation_position

    def __len__(self) -> int:
        return len(self._snapshots)

    @overload
    def __getitem__(self, i: int) -> ContextSnapshot: ...
    @overload
    def __getitem__(self, i: slice) -> ConversationMap: ...
    def __getitem__(self, i: int | slice) -> ContextSnapshot | ConversationMap:
        if not isinstance(i, slice):
            return self._snapshots[i]
        return _with_origins(self._snapshots[i], None if self._origins is None else self._origins[i])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConversationMap):
            return NotImplemented
        return self._snapshots == other._snapshots and self._origins == other._origins

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ConversationMap of {len(self)} snapshots>"

    @property
    def provenance(self) -> list[Provenance]:
        """Where each snapshot comes from."""
        if self._origins is not None:
            return list(self._origins)
        return [Provenance("", s.snapshot_id, s.conversation_position) for s in self._snapshots]

    @property
    def decay(self) -> Floats:
        """What each snapshot's weights count for: 1, but for sessions that were merged with a decay."""
        if self._origins is None:
            return np.ones(len(self))
        return np.array([origin.decay for origin in self._origins])

    def first_mention(self, concept: str | DomainTag) -> int | None:
        """The index of the first snapshot with the concept, or None.

        Parameters
        ----------
        concept
            Words that follow each other in the text of a chunk, whatever their case; or a `DomainTag` that the snapshot's
            `domain_summary` names.

        Raises
        ------
        ValueError
            Words are looked for, but the snapshots kept only their weights, or one did that comes before all that hold the words.
        """
        if isinstance(concept, DomainTag):
            return next((i for i, s in enumerate(self._snapshots) if s.domain_summary.get(concept.value, 0) > 0), None)
        if not isinstance(concept, str):
            raise TypeError(f"concept must be a str or a DomainTag, not {type(concept).__name__}")
        pattern = phrase_pattern(concept)
        self._check_texts("concept", concept)
        for i, snapshot in enumerate(self._snapshots):
            if any(pattern.search(chunk.text) for chunk in snapshot.chunks):
                return i
            if any(chunk.layer1_score > 0 and not chunk.text for chunk in snapshot.chunks):
                raise ValueError(f"concept {concept!r} cannot be looked for: snapshots[{i}] kept weights and no text")
        return None

    def state_before(self, concept: str | DomainTag) -> ContextSnapshot | None:
        """The last snapshot before the concept came up (see `first_mention`); None if it never did, or in the first one."""
        first = self.first_mention(concept)
        return self._snapshots[first - 1] if first else None

    def domain_evolution(self) -> tuple[list[str], Floats]:
        """The domains that occur, and a matrix of their shares: a row a snapshot, a column a domain, ready to plot."""
        found = {tag for snapshot in self._snapshots for tag in snapshot.domain_summary}
        labels = sorted(found, key=lambda tag: (_TAG_ORDER.get(tag, len(_TAG_ORDER)), tag))
        column = {tag: j for j, tag in enumerate(labels)}
        matrix = np.zeros((len(self), len(labels)))
        for i, snapshot in enumerate(self._snapshots):
            for tag, share in snapshot.domain_summary.items():
                matrix[i, column[tag]] = share
        return labels, matrix

    def domain_summary(self) -> dict[str, float]:
        """Shares of the whole map: those of its snapshots, weighted by their chunks' weights and by `decay`."""
        labels, matrix = self.domain_evolution()
        weights = self.decay * np.array([s.macro_weight * len(s.chunks) for s in self._snapshots])
        total = _added(weights)
        shares = [_added(weights * column) / total if total else 0.0 for column in matrix.T]
        return dict(zip(labels, shares, strict=True))

    def transitions(self) -> list[Transition]:
        """Where the leading domain changes."""
        leading = [leading_domain(snapshot) for snapshot in self._snapshots]
        _, matrix = self.domain_evolution()
        return [
            Transition(
                self._snapshots[i].conversation_position, leading[i - 1], leading[i], _shift(matrix[i - 1], matrix[i])
            )
            for i in range(1, len(self))
            if leading[i] != leading[i - 1]
        ]

    def region(self, start: int | None = None, stop: int | None = None, last: int | None = None) -> ConversationMap:
        """The snapshots `start` to `stop`, as a slice would take them, or the `last` ones."""
        for name, value in (("start", start), ("stop", stop), ("last", last)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        if last is None:
            return self[start:stop]
        if start is not None or stop is not None:
            raise ValueError("region takes start and stop, or last, not both")
        if last < 0:
            raise ValueError(f"last must not be negative, not {last}")
        return self[max(0, len(self) - last) :]

    def relevance(
        self,
        query: str,
        *,
        context_position: int | None = None,
        radius: int | None = None,
        embedder: EmbedsTexts | None = None,
    ) -> Floats:
        """How relevant each snapshot is to `query`, in [0, 1].

        The mean of what can be told of a snapshot: by words, where it has texts; by domains, where it has none and the query is
        of a domain; by vectors, where it has texts and an embedder is given. Each counts a chunk by its `layer1_score`, so that
        a text that only contains the right words stays low. docs/context.md has the formulas.

        Parameters
        ----------
        context_position
            The index around which to look, as in a list: -1 is the latest snapshot.
        radius
            Snapshots farther away than this score 0; default 3. Closer ones fall off evenly.
        embedder
            Anything with `embed_documents` and `embed_query`. Its vectors of the snapshots are kept for the next query.
        """
        if not isinstance(query, str):
            raise TypeError(f"query must be str, not {type(query).__name__}")
        near = relevance.locality(len(self), context_position, radius)
        if not self._snapshots:
            return near
        kept = self._with_text()
        if embedder is not None and not kept.any():
            raise ValueError("embedder has nothing to embed: the snapshots kept weights and no text")
        found = np.zeros(len(self))
        if kept.any():
            signals = [relevance.by_words(content_words(query), self._words(), len(self))]
            if embedder is not None:
                if self._embedded is None or self._embedded[0] is not embedder:
                    self._embedded = embedder, relevance.snapshot_vectors(self._snapshots, embedder)
                signals.append(relevance.by_vectors(query, embedder, self._embedded[1]))
            found[kept] = (np.add.reduce(signals) / len(signals))[kept]
        if not kept.all() and (tags := [tag for tag in score_texts([query]).domain_tags(0) if tag not in _NO_DOMAIN]):
            found[~kept] = relevance.by_domains(tags, self._snapshots)[~kept]
        return found * near * self.decay

    def holding(self, words: Iterable[str]) -> ConversationMap:
        """The snapshots with any of these words (as `content_words` has them), in order."""
        wanted = set(words)
        self._check_texts("words", sorted(wanted))
        index = self._words()
        return self.rows(sorted({row for word in wanted for row in index.get(word, ())}))

    def rows(self, numbers: Sequence[int]) -> ConversationMap:
        """The snapshots of these indices, which must increase."""
        return _with_origins(
            [self._snapshots[i] for i in numbers],
            None if self._origins is None else [self._origins[i] for i in numbers],
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map, every bit of it: as JSON lines to a `.jsonl` file, in compressed columns to an `.npz` file."""
        from hsca_fast.context.map_files import write_map

        write_map(path, zip(self._snapshots, self._origins or repeat(None), strict=False))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ConversationMap:
        """The map that `save` wrote.

        Warns
        -----
        TornFileWarning
            The file is damaged. The map holds all that comes before the damage, and `tear` says where that is.
        """
        from hsca_fast.context.map_files import read_map

        snapshots, origins, tear = [], [], None
        for item in read_map(path):
            if isinstance(item, Tear):
                tear = item
                warnings.warn(str(tear), TornFileWarning, stacklevel=2)
            else:
                snapshots.append(item[0])
                origins.append(item[1])
        found = [origin for origin in origins if origin is not None]
        if found and len(found) < len(origins):
            raise ValueError(f"{os.fspath(path)}: only some snapshots have a provenance")
        loaded = _with_origins(snapshots, found)
        loaded.tear = tear
        return loaded

    def _words(self) -> dict[str, dict[int, float]]:
        if self._word_weights is None:
            self._word_weights = relevance.strongest_by_word(self._snapshots)
        return self._word_weights

    def _with_text(self) -> npt.NDArray[np.bool_]:
        """Which snapshots have texts; an engine with `retain="weights"` leaves none, and a merged map may have both kinds."""
        if self._texts_kept is None:
            self._texts_kept = np.array([any(chunk.text for chunk in s.chunks) for s in self._snapshots], np.bool_)
        return self._texts_kept

    def _check_texts(self, name: str, value: object) -> None:
        if any(s.chunks for s in self._snapshots) and not self._with_text().any():
            raise ValueError(f"{name} {value!r} cannot be looked for: the snapshots kept weights and no text")


def leading_domain(snapshot: ContextSnapshot) -> str:
    """The domain with the largest share: `cross_domain` when it ties with others, `unclassified` only without any other."""
    summary = {tag: share for tag, share in snapshot.domain_summary.items() if tag != DomainTag.UNCLASSIFIED.value}
    if not summary:
        return DomainTag.UNCLASSIFIED.value
    return min(
        summary,
        key=lambda tag: (-summary[tag], tag != DomainTag.CROSS_DOMAIN.value, _TAG_ORDER.get(tag, len(_TAG_ORDER)), tag),
    )


def merge_maps(
    maps: Sequence[ConversationMap],
    *,
    namespaces: Sequence[str],
    decay: float | Sequence[float] | None = None,
) -> ConversationMap:
    """The maps of several sessions as one, in order of time (HSCA 8.3).

    Ids become `namespace/id`; positions are counted anew, and `provenance` keeps the old ones. Snapshots are sorted by
    `created_at`; those of one session stay in their order even if its clock went back. Weights stay as they were: decay is
    applied when the map is asked for `relevance` or `domain_summary`, so that stale sessions cannot pollute new ones.

    Parameters
    ----------
    namespaces
        A distinct name for each map, without "/".
    decay
        A number d: the newest session counts fully, the one before d, the one before that d². A sequence: what each map
        counts for. All in [0, 1]. Decays of maps that were merged before are multiplied.

    Raises
    ------
    ValueError
        A namespace is given twice, or a snapshot is in two of the maps.

    Examples
    --------
    >>> from hsca_fast import ContextSnapshot
    >>> maps = [ConversationMap([ContextSnapshot(name, [], 1.0, {}, 0, False, day)]) for name, day in (("b", 2.0), ("a", 1.0))]
    >>> merged = merge_maps(maps, namespaces=["tuesday", "monday"], decay=0.5)
    >>> [s.snapshot_id for s in merged], merged.decay.tolist()
    (['monday/a', 'tuesday/b'], [0.5, 1.0])
    """
    if len(namespaces) != len(maps) or isinstance(namespaces, str):
        raise ValueError(f"namespaces must name each of {len(maps)} maps, not {namespaces!r}")
    for i, name in enumerate(namespaces):
        if not isinstance(name, str):
            raise TypeError(f"namespaces[{i}] must be a str, not {type(name).__name__}")
        if not name or _NAMESPACE_END in name:
            raise ValueError(f"namespaces[{i}] must be a name without {_NAMESPACE_END!r}, not {name!r}")
        if name in namespaces[:i]:
            raise ValueError(f"namespaces[{i}] {name!r} is there already")
    factors = _session_decays(maps, decay)
    keyed: list[tuple[float, int, int, ContextSnapshot, Provenance]] = []
    owner: dict[str, str] = {}
    for m, (name, conversation) in enumerate(zip(namespaces, maps, strict=True)):
        latest = float("-inf")
        for i, (snapshot, origin) in enumerate(zip(conversation, conversation.provenance, strict=True)):
            if snapshot.snapshot_id in owner:
                raise ValueError(
                    f"snapshot {snapshot.snapshot_id!r} is in {owner[snapshot.snapshot_id]!r} and in {name!r}"
                )
            owner[snapshot.snapshot_id] = name
            latest = max(latest, snapshot.created_at)
            came_from = Provenance(
                name, snapshot.snapshot_id, snapshot.conversation_position, factors[m] * origin.decay
            )
            keyed.append((latest, m, i, _renamed(snapshot, name), came_from))
    keyed.sort(key=lambda row: row[:3])
    snapshots = [replace(row[3], conversation_position=i) for i, row in enumerate(keyed)]
    return _with_origins(snapshots, [row[4] for row in keyed])


def _with_origins(snapshots: Sequence[ContextSnapshot], origins: Sequence[Provenance] | None) -> ConversationMap:
    made = ConversationMap(snapshots)
    made._origins = tuple(origins) if origins else None
    return made


def _session_decays(maps: Sequence[ConversationMap], decay: float | Sequence[float] | None) -> list[float]:
    if decay is None:
        return [1.0] * len(maps)
    if isinstance(decay, (int, float)):
        step = unit(decay, "decay")
        newest = [max((s.created_at for s in conversation), default=float("-inf")) for conversation in maps]
        factors, factor = [0.0] * len(maps), 1.0
        for m in sorted(range(len(maps)), key=lambda m: (-newest[m], -m)):
            factors[m] = factor
            factor *= step
        return factors
    if len(decay) != len(maps):
        raise ValueError(f"decay must have a value for each of {len(maps)} maps, not {len(decay)}")
    return [unit(value, f"decay[{i}]") for i, value in enumerate(decay)]


def _renamed(snapshot: ContextSnapshot, namespace: str) -> ContextSnapshot:
    prefix = namespace + _NAMESPACE_END

    def renamed(chunk: WeightedChunk) -> WeightedChunk:
        parent = None if chunk.parent_id is None else prefix + chunk.parent_id
        return replace(
            chunk,
            chunk_id=prefix + chunk.chunk_id,
            domain_tags=[*chunk.domain_tags],
            nuance_flags=[*chunk.nuance_flags],
            parent_id=parent,
        )

    return replace(
        snapshot,
        snapshot_id=prefix + snapshot.snapshot_id,
        chunks=[renamed(chunk) for chunk in snapshot.chunks],
        domain_summary={**snapshot.domain_summary},
    )


def _shift(before: Floats, after: Floats) -> float:
    def distribution(shares: Floats) -> Floats:
        total = _added(shares)
        return shares / total if total else shares

    return min(_added(np.abs(distribution(before) - distribution(after))) / 2, 1.0)


def _added(values: Floats) -> float:
    total = 0.0
    for value in values.tolist():
        total += value
    return total
