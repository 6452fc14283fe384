"""Profiles: defaults as published, every fault at once, layers with sources, names."""

import json
import pickle
from dataclasses import fields

import pytest

from hsca_fast import ProfileBook, ProfileError, RetrievalProfile, merge_profiles

# Defaults as published, decisions of ours apart: supersede annotates.
PUBLISHED = {
    "half_life_days": 90, "ltp_enabled": True, "ltp_window_days": 30, "ltp_max_boost": 2.0,
    "tagging_enabled": True, "tagging_window_hours": 24, "tagging_max_boost": 1.5,
    "association_enabled": True, "association_max_boost": 1.4, "association_coefficient": 0.2,
    "axes_enabled": ("ltp", "tagging", "association"), "mmr_enabled": False, "mmr_lambda": 0.7, "mmr_final_k": 5,
    "pinned_memory_enabled": False, "pinned_max_tokens": 2000, "pinned_max_items": 5, "pinned_ltp_threshold": 1.5,
    "pinned_include_tagged": True, "pinned_tagged_window_hours": 48, "query_expansion_enabled": False,
    "query_expansion_max_terms": 3, "query_expansion_similarity_threshold": 0.65, "query_expansion_boost": 0.7,
    "query_expansion_lookback_days": 60, "supersede_filter_enabled": False, "supersede_similarity_threshold": 0.86,
    "supersede_min_age_gap_days": 7, "supersede_action": "annotate", "supersede_max_candidates": 10,
    "include_consolidated_summaries": True, "include_consolidated_sources": False,
    "consolidation_suggestions_in_status": True, "description": "", "model_guard": True, "model_guard_strict": False,
    "wing_diversity_weight": 0.3, "candidate_pool_multiplier": 1, "explain": False, "candidate_trace": False,
    "adaptive_compaction": False, "compaction_threshold": 0.3, "compaction_age_days": 30, "decay_enabled": False,
    "decay_lambda": 0.01, "paginated_scoring": True, "batch_size": 5000, "max_scan_depth": 50_000,
}  # fmt: skip


def test_defaults_are_those_published():
    profile = RetrievalProfile()
    assert {name: getattr(profile, name) for name in PUBLISHED} == PUBLISHED


def test_every_field_has_a_check_and_passes_it():
    for each in fields(RetrievalProfile):
        assert each.metadata["check"](each.default) is None
        assert each.metadata["check"](object()) is not None


def test_ten_faults_are_ten_lines():
    bad = {
        "mmr_lambda": 1.5, "mmr_final_k": True, "ltp_max_boost": 0.9, "tagging_window_hours": 0, "batch_size": "many",
        "supersede_action": "delete", "axes_enabled": ["ltp", "speed"], "half_life_days": float("nan"),
        "authority_weights": (1, 2), "candidate_pool_multiplier": 0,
    }  # fmt: skip
    with pytest.raises(ProfileError) as error:
        RetrievalProfile(**bad)
    assert len(error.value.faults) == 10
    for name in bad:
        assert sum(fault.startswith(f"{name} ") for fault in error.value.faults) == 1
    assert "mmr_lambda must be a number from 0 to 1, not 1.5" in str(error.value)
    assert "axes_enabled has no axis 'speed'" in str(error.value)
    assert pickle.loads(pickle.dumps(error.value)).faults == error.value.faults


def test_numbers_beyond_any_float_are_faults():
    with pytest.raises(ProfileError) as error:
        RetrievalProfile(half_life_days=10**400, ltp_max_boost=1e9, wing_diversity_weight=float("inf"))
    assert [fault.split()[0] for fault in error.value.faults] == [
        "half_life_days", "ltp_max_boost", "wing_diversity_weight",
    ]  # fmt: skip


def test_layers_keep_their_source_and_none_says_nothing():
    found = merge_profiles(
        ("config", {"mmr_lambda": 0.2, "batch_size": 10}),
        ("file", {"mmr_lambda": 0.4}),
        ("query", {"mmr_lambda": None}),
    )
    assert found.profile == RetrievalProfile(mmr_lambda=0.4, batch_size=10)
    assert {found.sources[name] for name in ("mmr_lambda", "batch_size", "explain")} == {"file", "config", "built in"}
    with pytest.raises(ProfileError) as error:
        merge_profiles(("a", {"mmr_lambda": 2}), ("b", {"speed": 1, "explain": 1}))
    assert error.value.faults == (
        "a: mmr_lambda must be a number from 0 to 1, not 2",
        "b: explain must be true or false, not 1",
        "b: there is no field 'speed'",
    )


def test_an_axis_that_is_not_listed_is_off():
    profile = RetrievalProfile(axes_enabled=["ltp"])
    assert [profile.axis(axis) for axis in ("ltp", "tagging", "association", "decay")] == [True, False, False, True]
    assert not any(RetrievalProfile(axes_enabled=[]).axis(axis) for axis in ("ltp", "tagging", "association", "decay"))
    assert not RetrievalProfile(ltp_enabled=False).axis("ltp")
    assert not RetrievalProfile(half_life_days=0).axis("decay")


def test_contributed_profiles():
    book = ProfileBook()
    found = {name: book.resolve(name).profile for name in book.names()}
    assert found["orient"].half_life_days == 180
    assert (found["orient"].ltp_window_days, found["orient"].tagging_enabled) == (60, False)
    assert found["observe"].axes_enabled == ()
    assert (found["decide"].half_life_days, found["decide"].ltp_enabled, found["decide"].association_enabled) == (
        7,
        False,
        False,
    )
    assert (found["act"].half_life_days, found["act"].ltp_max_boost, found["act"].tagging_max_boost) == (14, 1.5, 1.3)
    assert (found["orient"].mmr_lambda, found["decide"].mmr_lambda) == (0.4, 0.85)


def test_files_over_the_bundled_profiles(tmp_path):
    (tmp_path / "a.toml").write_text(
        "[default]\nbatch_size = 7\n[decide]\nhalf_life_days = 3\n[mine]\ninherits = 'decide'\nmmr_lambda = 0.1\n"
    )
    (tmp_path / "b.toml").write_text("[mine]\nmmr_lambda = 0.2\n")
    book = ProfileBook(tmp_path / "a.toml", tmp_path / "b.toml")
    found = book.resolve("mine", {"explain": True})
    assert (found.profile.batch_size, found.profile.half_life_days, found.profile.mmr_lambda) == (7, 3, 0.2)
    assert not found.profile.ltp_enabled  # of the bundled decide
    assert found.sources["half_life_days"] == f"profile decide of {tmp_path / 'a.toml'}"
    assert (found.sources["ltp_enabled"], found.sources["explain"]) == ("profile decide", "this query")
    assert book.resolve().profile == RetrievalProfile(batch_size=7)


def test_an_unknown_name_falls_back_and_says_so():
    found = ProfileBook().resolve("flow")
    assert found.profile == RetrievalProfile()
    assert found.warnings == (
        "there is no retrieval profile 'flow', only act, decide, observe, orient: the default is used",
    )


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[a]\nmmr_lambda = 9\nspeed = 1\n[b]\nexplain = 'x'\n", 3),
        ("[a]\ninherits = 'z'\n", 1),
        ("[a]\ninherits = 'b'\n[b]\ninherits = 'act'\n", 1),
        ("mmr_lambda = 0.5\n", 1),
        ("[a\n", 1),
    ],
)
def test_bad_files_are_told_in_full(tmp_path, text, faults):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(ProfileError) as error:
        ProfileBook(tmp_path / "p.toml")
    assert len(error.value.faults) == faults
    assert "p.toml has" in str(error.value)


def test_plain_values_make_the_same_profile():
    profile = ProfileBook().resolve("orient").profile
    assert RetrievalProfile(**json.loads(json.dumps(profile.to_dict()))) == profile
