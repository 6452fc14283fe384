"""MemPalace's own backend tests, from the source distribution of the installed release, over the backend `hsca`.

    pip install '.[mempalace,test]' && python tools/mempalace_conformance.py

Its conformance suite runs whole. Of the tests of its reference backend, which also look into that backend's tables, those run
that use nothing but the contract.
"""

import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

CONTRACT = (
    "add_query_filters_and_persistence write_failure_rolls_back_whole_batch enforces_collection_dimension "
    "get_preserves_requested_id_order_and_duplicates get_ids_intersects_filters get_pages_tile_without_overlap "
    "upsert_delete_and_multi_collection_isolation lexical_search_filters_after_full_fts_window "
    "logical_filters_evaluate_sibling_predicates close_palace_marks_existing_collections_closed exact_ranking_uses_cosine "
    "missing_collection_error_names_collection collection_exposes_backend advertises_supports_metadata_facets "
    "exact_facet_counts_where facet_counts_ignores_missing_metadata facet_counts_empty_collection "
    "query_respects_equality_where query_cache_invalidates_on_add"
)

# Their modules are changed before their tests import the names.
PLUGIN = """
import mempalace.backends.rust_exact, mempalace.backends.sqlite_exact
from hsca_fast.adapters.mempalace import HSCABackend
mempalace.backends.rust_exact.RustExactBackend = HSCABackend
mempalace.backends.sqlite_exact.SQLiteExactBackend = HSCABackend
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        release = f"mempalace=={version('mempalace')}"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "mempalace"]
        subprocess.run([*pip, "--dest", folder, release], check=True)
        (archive,) = Path(folder).glob("mempalace-*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        tests = archive.with_name(archive.name.removesuffix(".tar.gz")) / "tests"
        (tests / "hsca_in_their_place.py").write_text(PLUGIN)
        pytest = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "pytest",
            "-q",
            "-p",
            "hsca_in_their_place",
            "-p",
            "no:cacheprovider",
        ]
        chosen = " or ".join(CONTRACT.split())
        runs = (["test_backend_conformance.py"], ["test_sqlite_exact_backend.py", "-k", chosen])
        return max(subprocess.run([*pytest, *run], cwd=tests, check=False).returncode for run in runs)


if __name__ == "__main__":
    sys.exit(main())
