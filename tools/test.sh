#!/usr/bin/env bash
# Everything a change must pass: install into .venv, lint, the C++ core's tests plain and under sanitizers, the documentation, pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
[ -x "$python" ] || python3 -m venv .venv
"$python" -m pip install --quiet --upgrade pip
"$python" -m pip install --quiet '.[test]'
export PATH="$PWD/.venv/bin:$PATH"

echo "== lint"
ruff check .
ruff format --check .
mypy
python -m mypy.stubtest $(basename -s .pyx src/hsca_fast/_native/*.pyx | sed 's/^/hsca_fast._native./')
find csrc -name '*.hpp' -o -name '*.cpp' | xargs clang-format --dry-run --Werror

echo "== C++ core"
for preset in default asan; do
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset" --parallel 2
    ctest --preset "$preset"
done
# A weak symbol of a file built for AVX could be linked into the code of every machine.
if find build/core -name '*kernels_avx*.o' -exec nm -C {} + | grep -E ' [WV] '; then exit 1; fi

echo "== documentation"
sphinx-build -q -W --keep-going docs build/docs

echo "== Python"
python -m pytest -q
