import pytest
from contexts import chunk, snapshot
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import ClaimGraph, ClaimNode, ContextSnapshot, ConversationMap, EvidenceEdge, merge_maps, score_text
from hsca_fast._reference import claims as reference

UNITS = st.floats(0, 1)
WORDS = st.lists(st.sampled_from("lamp keeper harbour boat law statute court judge".split()), min_size=1, max_size=6)


def beat(*chunks, name="s", position=0):
    return ContextSnapshot(name, list(chunks), 0.5, {"legal": 1.0}, position, False, 0.0)


# ---- support


@given(WORDS, st.lists(st.tuples(WORDS, UNITS), max_size=5))
def test_support_and_grounding_are_those_of_the_reference(claim, sources):
    chunks = [chunk(" ".join(words), weight, name=str(i)) for i, (words, weight) in enumerate(sources)]
    node = ClaimGraph().ground(" ".join(claim), [beat(*chunks)])
    overlaps = [reference.overlap(set(claim), set(words)) for words, _ in sources]
    strengths = [reference.support_strength(o, weight) for o, (_, weight) in zip(overlaps, sources, strict=True)]
    assert node.support_strength == max(strengths, default=0.0)
    assert node.grounding_strength == reference.grounding_strength(max(overlaps, default=0.0))
    assert 0 <= node.support_strength <= max((w for _, w in sources), default=0.0) or not sources
    grounding = [c.chunk_id for c, o in zip(chunks, overlaps, strict=True) if o >= reference.INFERRED_OVERLAP]
    assert node.source_refs == (["s", *grounding] if grounding else [])


def test_numbers_worked_out_by_hand():
    source = beat(chunk("the lamp in the harbour", 0.8, name="c"))
    half = ClaimGraph().ground("lamp harbour court judge", [source])
    assert (half.claim_type, half.support_strength, half.grounding_strength) == ("supported", 0.75 * 0.8, 0.6)
    fifth = ClaimGraph().ground("lamp court judge law boat", [source])
    assert (fifth.claim_type, fifth.support_strength, fifth.grounding_strength) == ("inferred", 0.2 * 0.8, 0.1)
    none = ClaimGraph().ground("court judge", [source])
    assert (none.claim_type, none.support_strength, none.source_refs) == ("unresolved", 0.0, [])
    assert ClaimGraph().ground("", [source]).claim_type == "unresolved"


def test_a_shallow_source_supports_little():
    stuffed = score_text("Lamp harbour boats keeper. " * 12)
    prose = score_text(
        "The keeper lit the lamp above the harbour. When the lamp was lit, the boats turned for the harbour. The keeper "
        "counted the boats as they came past the lamp. No boat missed the harbour while the keeper kept the lamp."
    )
    claim = "The keeper lit the lamp for boats in the harbour"
    weak = ClaimGraph().ground(claim, [beat(stuffed)])
    strong = ClaimGraph().ground(claim, [beat(prose)])
    assert weak.grounding_strength > 0.5
    assert weak.support_strength < 0.35 < 0.5 < strong.support_strength


@given(WORDS, st.lists(st.tuples(WORDS, UNITS), min_size=1, max_size=5))
def test_another_source_never_takes_support_away(claim, sources):
    chunks = [chunk(" ".join(words), weight, name=str(i)) for i, (words, weight) in enumerate(sources)]
    fewer = ClaimGraph().ground(" ".join(claim), [beat(*chunks[:-1])])
    more = ClaimGraph().ground(" ".join(claim), [beat(*chunks)])
    assert more.support_strength >= fewer.support_strength


def test_stale_sessions_support_less():
    talk = ConversationMap([beat(chunk("lamp harbour", 0.8))])
    stale = merge_maps([talk], namespaces=["old"], decay=[0.25])
    assert ClaimGraph().ground("lamp harbour", stale).support_strength == 0.25 * 0.8


# ---- snapshots as sources


def test_stale_sessions_count_less_in_the_context_of_a_claim():
    old = ContextSnapshot("s", [chunk("the lamp", 0.8)], 0.8, {"legal": 1.0}, 0, False, 0.0)
    new = ContextSnapshot("t", [chunk("a lamp", 0.8)], 0.8, {"poetry": 1.0}, 0, False, 1.0)
    talk = merge_maps([ConversationMap([old]), ConversationMap([new])], namespaces=["old", "new"], decay=0.25)
    claim = ClaimGraph().ground("lamp", talk)
    assert claim.grounding_context == {"legal": 0.2, "poetry": 0.8}
    graph = ClaimGraph()
    assert graph.add_snapshot(talk[0], decay=talk.decay[0]) is None
    source = graph.add_snapshot(talk[0], decay=talk.decay[0], min_macro_weight=0.1)
    assert source.support_strength == 0.8 * 0.25


def test_nothing_can_be_grounded_on_weights_alone():
    bare = ConversationMap([snapshot("a", [""])])
    with pytest.raises(ValueError, match="kept weights and no text"):
        ClaimGraph().ground("lamp", bare)
    assert ClaimGraph().ground("lamp", ConversationMap([])).claim_type == "unresolved"


@pytest.mark.parametrize(
    ("call", "error", "names"),
    [
        (lambda g: g.add_claim(3), TypeError, "claim must be a ClaimNode"),
        (lambda g: g.add_claim(ClaimNode("n", "t", support_strength=float("nan"))), ValueError, "support_strength"),
        (lambda g: g.add_claim(ClaimNode("n", "t", claim_type="sure")), ValueError, "claim_type"),
        (lambda g: g.add_edge(3), TypeError, "edge must be an EvidenceEdge"),
        (lambda g: g.add_snapshot(3), TypeError, "snapshot must be a ContextSnapshot"),
        (lambda g: g.relevant_claims(3, ConversationMap([])), TypeError, "query must be str"),
    ],
)
def test_what_no_graph_holds(call, error, names):
    graph = ClaimGraph()
    with pytest.raises(error, match=names):
        call(graph)
    assert (graph.claims, graph.edges) == ([], [])


def test_a_heavy_snapshot_is_a_source():
    graph = ClaimGraph()
    heavy = snapshot("h", ["lamp", "lamp harbour"], weight=0.9, domains={"narrative": 0.75, "legal": 0.25})
    heavy.chunks[0].layer1_score = 0.5
    source = graph.add_snapshot(heavy)
    assert (source.text, source.support_strength, source.grounding_strength) == ("lamp harbour", 0.9, 0.75)
    assert source.grounding_context == heavy.domain_summary
    assert graph.add_snapshot(snapshot("l", ["lamp"], weight=0.3)) is None
    assert graph.add_snapshot(snapshot("l", ["lamp"], weight=0.3), min_macro_weight=0.2) is not None
    with pytest.raises(ValueError, match="'snapshot:h' is there already"):
        graph.add_snapshot(heavy)
    claim = graph.ground("the harbour", [heavy])
    (edge,) = graph.edges
    assert (edge.source_id, edge.target_id, edge.relation, edge.weight) == (
        source.claim_id,
        claim.claim_id,
        "supports",
        1.0,
    )
    assert (edge.source_ref, edge.excerpt) == ("h.1", "lamp harbour")
    assert claim.grounding_context == heavy.domain_summary


# ---- the graph


def claims(**strengths):
    graph = ClaimGraph()
    for name, strength in strengths.items():
        graph.add_claim(ClaimNode(name, name, "supported", strength, strength, created_at=0.0))
    return graph


def test_grounding_ratio():
    assert ClaimGraph().grounding_ratio() == 0.0
    graph = claims(a=0.9, b=0.3, c=0.31)
    graph["c"].claim_type = "inferred"
    assert graph.grounding_ratio() == 1 / 3


def test_uncertainty():
    graph = claims(a=0.8, b=0.5, c=0.9, d=0.1)
    graph.add_edge(EvidenceEdge("1", "a", "b", "contradicts", 1.0))
    graph.add_edge(EvidenceEdge("2", "b", "c", "contradicts", 0.5))
    graph.add_edge(EvidenceEdge("3", "a", "c", "supports", 1.0))
    assert graph.propagate_uncertainty() == ["b"]
    assert graph["b"].support_strength == reference.contradicted_strength(0.5, [(1.0, 0.8)])
    assert graph["c"].support_strength == reference.contradicted_strength(0.9, [(0.5, 0.5)])
    assert [c.claim_type for c in graph.claims] == ["supported", "contradicted", "supported", "supported"]
    assert graph["a"].support_strength == 0.8


@given(st.permutations(range(4)))
def test_the_order_of_edges_does_not_matter(order):
    edges = [("a", "b", 0.3), ("c", "b", 0.7), ("b", "a", 0.9), ("a", "c", 0.1)]
    graph = claims(a=0.7, b=0.9, c=0.6)
    for i in order:
        source, target, weight = edges[i]
        graph.add_edge(EvidenceEdge(str(i), source, target, "contradicts", weight))
    graph.propagate_uncertainty()
    in_order = claims(a=0.7, b=0.9, c=0.6)
    for i, (source, target, weight) in enumerate(edges):
        in_order.add_edge(EvidenceEdge(str(i), source, target, "contradicts", weight))
    in_order.propagate_uncertainty()
    assert graph.claims == in_order.claims
    assert all(0 <= c.support_strength <= 1 for c in graph.claims)


def test_claims_near_a_position():
    talk = ConversationMap(
        [snapshot(str(i), [f"the lamp of keeper number {i}"], weight=0.5, position=i) for i in range(6)]
    )
    graph = ClaimGraph()
    for i in range(6):
        graph.ground(f"the lamp of {i}", [talk[i]], claim_id=f"c{i}")
    everywhere = graph.relevant_claims("which lamp", talk)
    assert [name for name, _ in everywhere] == [f"c{i}" for i in range(6)]
    near = graph.relevant_claims("which lamp", talk, context_position=-4, radius=1)
    assert [name for name, _ in near] == ["c2", "c1", "c3"]
    assert near[0][1] == dict(everywhere)["c2"]
    assert graph.relevant_claims("statute", talk) == []


def test_round_trip():
    graph = claims(a=1 / 3, b=0.5)
    graph.add_edge(EvidenceEdge("1", "a", "b", "qualifies", 0.5, "ref", "x" * 300))
    exact = ClaimGraph.from_dict(graph.to_dict(digits=None))
    assert exact.claims == graph.claims
    assert exact.edges[0].excerpt == "x" * 200
    assert graph.to_dict()["claims"][0]["support_strength"] == 0.3333


@pytest.mark.parametrize(
    ("change", "error", "names"),
    [
        ({"claim_id": None}, TypeError, "ClaimNode.claim_id"),
        ({"claim_type": "guess"}, ValueError, "ClaimNode.claim_type.*'guess'"),
        ({"support_strength": 2}, ValueError, "ClaimNode.support_strength"),
        ({"why": 1}, ValueError, "'why'"),
    ],
)
def test_a_wrong_claim_names_its_field(change, error, names):
    with pytest.raises(error, match=names):
        ClaimNode.from_dict({**ClaimNode("c", "text").to_dict(), **change})


def test_edges_that_are_refused():
    graph = claims(a=0.5, b=0.5)
    graph.add_edge(EvidenceEdge("1", "a", "b", "supports"))
    for edge, names in (
        (EvidenceEdge("1", "a", "b", "supports"), "edge_id '1' is there already"),
        (EvidenceEdge("2", "a", "z", "supports"), "target_id 'z'"),
        (EvidenceEdge("2", "a", "b", "likes"), "relation"),
        (EvidenceEdge("2", "a", "b", "supports", 1.5), "weight"),
    ):
        with pytest.raises(ValueError, match=names):
            graph.add_edge(edge)
    with pytest.raises(ValueError, match="claim_id 'a' is there already"):
        graph.add_claim(ClaimNode("a", "again"))
    with pytest.raises(TypeError, match="text must be str"):
        graph.ground(3, [])
