"""Extras, releases and what is said when they do not fit."""

import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

from hsca_fast.adapters import frontends
from hsca_fast.adapters.embedders import NAMES, named_embedder

ROOT = Path(__file__).parents[2]


def test_pyproject_has_the_tested_ranges():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, tested in frontends.TESTED.items():
        assert extras[extra] == [str(each) for each in tested]
    assert extras["adapters"] == [f"hsca_fast[{','.join(frontends.TESTED)}]"]


@pytest.mark.parametrize("extra", frontends.TESTED)
def test_a_missing_front_end_is_named_with_its_extra(extra, monkeypatch):
    def missing(name):
        raise frontends.PackageNotFoundError(name)

    monkeypatch.setattr(frontends, "version", missing)
    distribution = frontends.TESTED[extra][0].distribution
    with pytest.raises(
        ImportError, match=rf"adapters\.{extra} needs {distribution}: pip install 'hsca_fast\[{extra}\]'"
    ):
        frontends.require(extra)


@pytest.mark.parametrize(
    ("installed", "warns"),
    [
        ("1.7.0", False),
        ("1.7.99", False),
        ("1.7.2rc1", False),
        ("1.6.9", True),
        ("1.8", True),
        ("2.0.0.dev1", True),
        ("?", True),
    ],
)
def test_a_release_outside_the_range_gives_a_warning_that_names_both(installed, warns, monkeypatch):
    monkeypatch.setattr(frontends, "version", lambda name: installed if name == "langchain-core" else "1.1.0")
    if warns:
        with pytest.warns(frontends.FrontendVersionWarning) as caught:
            frontends.require("langchain")
        assert str(caught[0].message) == (
            "hsca_fast.adapters.langchain was tested with langchain-core>=1.7,<1.8, "
            f"and langchain-core {installed} is installed"
        )
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frontends.require("langchain")


def test_no_front_end_is_loaded_before_its_adapter():
    code = (
        "import sys, hsca_fast.adapters, hsca_fast.adapters.selection, hsca_fast.adapters.omega, hsca_fast.adapters.ragdocs\n"
        "print({'langchain_core', 'llama_index', 'haystack', 'mempalace', 'chromadb', 'pydantic'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "set()"


def test_embedders_by_name():
    assert NAMES[0] == "default"
    assert named_embedder("default").dim == 256
    with pytest.raises(ValueError, match="embedder must be one of default, minilm, not 'bert'"):
        named_embedder("bert")
