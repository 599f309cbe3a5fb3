#!/usr/bin/env bash
# Creates .venv from the pinned requirements; `make` runs it again only if an input has changed.
# With the argument `spark` it creates .venv-spark, which also has Spark.
# Needs Python 3.11 or later and, without uv, the venv module to install uv privately.
# PYTHON=... chooses the interpreter; otherwise uv takes one that it finds, or downloads one.
set -euo pipefail
cd "$(dirname "$0")/.."

python_wanted="${PYTHON:->=3.11}"
uv_home=".cache/uv-venv"

die() {
    echo "setup: $1" >&2
    exit 1
}

# A shim on PATH may have nothing behind it, so run uv instead of only looking for it.
if uv --version >/dev/null 2>&1; then
    uv=uv
else
    uv="$uv_home/bin/uv"
    if ! "$uv" --version >/dev/null 2>&1; then
        echo "setup: installing uv into $uv_home"
        command -v python3 >/dev/null || die "neither uv nor python3 was found; install one of them"
        python3 -m venv --clear "$uv_home" ||
            die "python3 cannot make a virtual environment; install its venv module or uv"
        "$uv_home/bin/python" -m pip install --quiet --disable-pip-version-check \
            --require-hashes --only-binary :all: -r requirements/uv.txt
    fi
fi

venv=.venv
files=(requirements/dev.txt)
if [ "${1:-}" = spark ]; then
    venv=.venv-spark
    files+=(requirements/spark.txt)
fi

unset VIRTUAL_ENV CONDA_PREFIX
if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "setup: creating $venv"
    "$uv" venv --quiet --clear --no-project --python "$python_wanted" "$venv"
fi
quiet=(--quiet)
if [ "$venv" = .venv-spark ]; then
    echo "setup: Spark is about 600 MB to download and 1.2 GB on disk; it is cached"
    quiet=(--compile-bytecode) # otherwise the first of Spark's processes would compile it
fi
echo "setup: installing the pinned requirements into $venv"
"$uv" pip sync "${quiet[@]}" --python "$venv/bin/python" --require-hashes "${files[@]}"
"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e .
if [ "$venv" = .venv-spark ]; then
    echo "setup: compiling the loops over records"
    "$venv/bin/python" -m kafkaesque.spark.worker_preload
fi
touch "$venv/.ready"
