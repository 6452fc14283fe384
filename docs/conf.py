"""The site: `sphinx-build -W docs build/docs`. Pages are Markdown; the API pages are written from the docstrings."""

from pathlib import Path

import hsca_fast

project = "hsca_fast"
author = "the hsca_fast authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "hsca_fast"
exclude_patterns = ["README.md"]
myst_heading_anchors = 3
napoleon_google_docstring = False
autodoc_typehints = "none"  # the signature has them
autodoc_member_order = "bysource"
default_role = "code"
# Links that leave docs/ (README, examples, CONTRIBUTING) are for readers of the repository.
suppress_warnings = ["myst.xref_missing"]

_PACKAGES = {
    "text": "Layers 1 to 3 over texts",
    "context": "Turns, snapshots, maps",
    "vectors": "Embedders and vector search",
    "memory": "The semantic index, chunking, compaction",
    "ranking": "Formulas over candidates",
    "retrieval": "The retrieval pipeline and compression",
    "assembly": "Contexts within a budget",
    "corpus": "Corpora and engines",
    "report": "Pages and figures to look at",
}


def _write_api(folder: Path) -> None:
    """A page for each package with all of its public names, so that no name is forgotten and none is listed by hand."""
    folder.mkdir(exist_ok=True)
    pages: dict[str, list[str]] = {}
    for name in hsca_fast.__all__:
        home = hsca_fast._HOMES.get(name, "")
        package = home.split(".")[0] if home.split(".")[0] in _PACKAGES else "core"
        pages.setdefault(package, []).append(name)
    for package, names in pages.items():
        title = _PACKAGES.get(package, "Types and settings")
        lines = [title, "=" * len(title), ""]
        for name in sorted(names, key=str.lower):
            value = getattr(hsca_fast, name)
            if isinstance(value, type):
                lines += [f".. autoclass:: hsca_fast.{name}", "   :members:", ""]
            elif callable(value):
                lines += [f".. autofunction:: hsca_fast.{name}", ""]
            else:
                lines += [f".. data:: hsca_fast.{name}", "", f"   ``{value!r}``", ""]
        (folder / f"{package}.rst").write_text("\n".join(lines), encoding="utf-8")


_write_api(Path(__file__).parent / "api")
