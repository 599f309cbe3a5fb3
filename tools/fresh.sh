#!/usr/bin/env bash
# Runs the two commands of the README in a minimal Debian that has only what the README requires, so
# that nothing left on this machine can hide a missing step. Run by `make fresh`.
#
# The root uses this machine's mirror and package index: it gets its apt sources, its settings of pip
# and uv, and its certificates. The checkout is cloned, so only committed files count. As root it
# uses debootstrap, otherwise mmdebstrap, which needs user namespaces.
#   SPARK=no       skips Spark, as everywhere
#   FRESH_RUN=...  runs this instead of the two commands
#   FRESH_DIR=...  creates the root there, and keeps it
set -euo pipefail
cd "$(dirname "$0")/.."

spark="${SPARK:-yes}"
commands="${FRESH_RUN:-make demo SPARK=$spark && make test SPARK=$spark}"
# What the README names, and ca-certificates, without which https does not work.
packages="make,git,python3,python3-venv,ca-certificates"
suite="$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")"

die() {
    echo "fresh: $1" >&2
    exit 1
}

# This machine's first archive that has the suite itself, in either format of apt's files.
mirror() {
    apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT) $(CREATED_BY)' 2>/dev/null |
        awk -v suite="$suite" '$2 == suite && $3 == "main" && $4 == "Packages" { print $1; exit }'
}

[ -n "$suite" ] && command -v apt-get >/dev/null || die "this needs Debian or a derivative"
site="$(mirror)"
[ -n "$site" ] || die "apt has no source for $suite"
git diff --quiet HEAD || echo "fresh: uncommitted changes are not tested" >&2

work="${FRESH_DIR:-$(mktemp -d -t kafkaesque-fresh-XXXXXX)}"
root="$work/root"
mkdir -p "$work"

# pip and uv read these; a host stays in the environment and is never written to a file.
names="http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY"
names="$names PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_DEFAULT_TIMEOUT"
names="$names UV_INDEX_URL UV_DEFAULT_INDEX UV_INDEX UV_EXTRA_INDEX_URL UV_HTTP_TIMEOUT"
settings=(HOME=/srv PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
for name in $names; do
    [ -z "${!name:-}" ] || settings+=("$name=${!name}")
done

furnish() { # copies the checkout and this machine's settings into the root $1
    local file
    git clone --quiet --no-hardlinks . "$1/srv/kafkaesque"
    cp -L /etc/resolv.conf "$1/etc/resolv.conf"
    cp /etc/hosts "$1/etc/hosts"
    for file in /etc/pip.conf /etc/uv/uv.toml; do
        [ ! -f "$file" ] || install -D -m 644 "$file" "$1$file"
    done
    for file in .config/pip/pip.conf .pip/pip.conf .config/uv/uv.toml; do
        [ ! -f "$HOME/$file" ] || install -D -m 644 "$HOME/$file" "$1/srv/$file"
    done
    # The certificate authorities that this machine trusts, including its network's own.
    install -D -m 644 "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" \
        "$1/etc/ssl/certs/ca-certificates.crt"
}
settings+=(SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt)
settings+=(PIP_CERT=/etc/ssl/certs/ca-certificates.crt)
inside="cd /srv/kafkaesque && $commands"

clean() { # never delete through a mount that still exists
    local place
    for place in proc dev/shm dev; do
        mountpoint --quiet "$root/$place" && umount --lazy "$root/$place"
    done
    if [ -z "${FRESH_DIR:-}" ] && ! grep -qs " $root" /proc/mounts; then
        rm -rf "$work"
    fi
    return 0
}

if [ "$(id -u)" = 0 ]; then
    command -v debootstrap >/dev/null || die "install debootstrap"
    trap clean EXIT
    if [ ! -e "$root/etc/debian_version" ]; then
        echo "fresh: creating a $suite with $packages"
        debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$site" \
            >"$work/debootstrap.txt" 2>&1 || { tail -n 20 "$work/debootstrap.txt"; exit 1; }
    fi
    rm -rf "$root/srv/kafkaesque"
    furnish "$root"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    echo "fresh: $commands"
    env -i "${settings[@]}" chroot "$root" bash -c "$inside"
else
    command -v mmdebstrap >/dev/null || die "install mmdebstrap, or run this as root"
    trap clean EXIT
    mkdir -p "$work/stage/srv" "$work/stage/etc"
    furnish "$work/stage"
    # The clone belongs to the caller, who is another user inside the namespace.
    settings+=(GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory 'GIT_CONFIG_VALUE_0=*')
    echo "fresh: $commands, in a $suite with $packages"
    mmdebstrap --quiet --mode=unshare --variant=apt --include="$packages" \
        --customize-hook="sync-in '$work/stage' /" \
        --customize-hook="env -i $(printf '%q ' "${settings[@]}") chroot \"\$1\" bash -c $(printf '%q' "$inside")" \
        "$suite" /dev/null "$site"
fi
echo "fresh: it works on a fresh machine"
