#!/usr/bin/env bash
# Compiles requirements/*.txt from pyproject.toml: exact versions, hashes, and no index or host.
# Versions stay as they are unless UPGRADE=1 is set.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=uv
uv --version >/dev/null 2>&1 || uv=.cache/uv-venv/bin/uv

compile() {
    local target="$1"
    shift
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
        --no-emit-index-url --no-emit-find-links ${UPGRADE:+--upgrade} \
        --output-file "$target" "$@" >/dev/null
}

compile requirements/base.txt pyproject.toml
compile requirements/dev.txt pyproject.toml --extra dev --constraint requirements/base.txt
compile requirements/spark.txt pyproject.toml --extra spark --constraint requirements/dev.txt # one environment has both
echo uv | compile requirements/uv.txt --no-annotate -
