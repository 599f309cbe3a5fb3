#!/usr/bin/env bash
# Makes .venv from the pinned requirements; run by `make`, again only when one of its inputs changed.
# Wants Python 3.11 or later and, if uv is not there, the venv module to install it privately.
# PYTHON=... chooses the interpreter; without it uv takes what it finds before it downloads one.
set -euo pipefail
cd "$(dirname "$0")/.."

python_wanted="${PYTHON:->=3.11}"
uv_home=".cache/uv-venv"

die() {
    echo "setup: $1" >&2
    exit 1
}

# A shim may be on PATH with nothing behind it, so uv is asked, not only looked for.
if uv --version >/dev/null 2>&1; then
    uv=uv
else
    uv="$uv_home/bin/uv"
    if ! "$uv" --version >/dev/null 2>&1; then
        echo "setup: installing uv into $uv_home"
        command -v python3 >/dev/null || die "neither uv nor python3 is here; install one of them"
        python3 -m venv --clear "$uv_home" ||
            die "python3 cannot make a virtual environment; install its venv module or uv"
        "$uv_home/bin/python" -m pip install --quiet --disable-pip-version-check \
            --require-hashes --only-binary :all: -r requirements/uv.txt
    fi
fi

unset VIRTUAL_ENV CONDA_PREFIX
if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "setup: making .venv"
    "$uv" venv --quiet --clear --no-project --python "$python_wanted" .venv
fi
echo "setup: installing the pinned requirements into .venv"
"$uv" pip sync --quiet --python .venv/bin/python --require-hashes requirements/dev.txt
"$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .
touch .venv/.ready
