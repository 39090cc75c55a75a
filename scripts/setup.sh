#!/usr/bin/env bash
# Everything `make demo` and `make test` need: .venv, packages, Java, jars; for tests a browser.
#
# Idempotent: each step leaves a stamp under .venv/tidegate and is skipped while the stamp holds.
# Works with or without uv, as root or not. Settings: PYTHON (interpreter), JAVA_HOME.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VENV=.venv
readonly STATE=$VENV/tidegate
readonly LOCK=requirements-dev.lock
readonly STEPS=5
readonly IMPORTED=(pyiceberg pyarrow sqlalchemy pydantic rich typer yaml strictyaml pyparsing markdown_it)
readonly JAVA_PACKAGE=openjdk-17-jre-headless
readonly BROWSER_PACKAGE=chromium
readonly MARIADB_PACKAGES="mariadb-server-core mariadb-client-core"  # programs alone: no service is started
readonly MYSQL_PACKAGES="libaio1 libnuma1"  # its server comes from Maven, by the tests themselves

step() { printf '\033[1m[%s/%s]\033[0m %s\n' "$1" "$STEPS" "$2"; }
note() { printf '      %s\n' "$*"; }
fail() {
    printf '\n\033[31m%s\033[0m\n' "$1" >&2
    shift
    printf '  %s\n' "$@" >&2
    exit 3
}

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq "$@" >/dev/null 2>&1 && return
    note "refreshing the package lists first"
    apt-get update -qq && apt-get install -y -qq "$@" >/dev/null
}

# --- Python -----------------------------------------------------------------------------------

python_ok() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3 python; do
        if command -v "$candidate" >/dev/null 2>&1 && python_ok "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    if has_uv uv; then
        uv python find '>=3.11' 2>/dev/null && return
        uv python install 3.11 >&2 && uv python find 3.11 && return
    fi
    fail "Python 3.11 or newer was not found." \
        "Debian, Ubuntu:  sudo apt-get install -y python3 python3-venv" \
        "macOS:           brew install python@3.12" \
        "or name one:     PYTHON=/path/to/python3.11 make $(target)"
}

target() { echo "${MAKE_TARGET:-setup}"; }

# A version manager's shim may exist without the program behind it: ask it.
has_uv() { command -v "$1" >/dev/null 2>&1 && "$1" --version >/dev/null 2>&1; }

make_venv() {
    if [ -x $VENV/bin/python ] && python_ok $VENV/bin/python; then
        note "$($VENV/bin/python --version) in $VENV"
        return
    fi
    local python
    python=$(find_python)
    note "creating $VENV with $("$python" --version)"
    if has_uv uv; then
        uv venv --quiet --allow-existing --python "$python" $VENV
    elif "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        "$python" -m venv $VENV
    elif can_apt; then
        note "installing python3-venv"
        apt_install python3-venv
        "$python" -m venv $VENV
    else
        fail "This Python cannot make virtual environments." \
            "Debian, Ubuntu:  sudo apt-get install -y python3-venv" \
            "then run:        make $(target)"
    fi
}

# --- packages ---------------------------------------------------------------------------------

fingerprint() { { cat "$@" && $VENV/bin/python --version; } | cksum | tr ' ' '-'; }

stamped() { [ -f "$STATE/$1" ] && [ "$(cat "$STATE/$1")" = "$2" ]; }
stamp() { mkdir -p $STATE && printf '%s\n' "$2" >"$STATE/$1"; }

install_packages() {
    local wanted count uv=
    wanted=$(fingerprint $LOCK pyproject.toml)
    count=$(grep -c '==' $LOCK)
    if stamped packages "$wanted"; then
        note "$count packages are in place"
        return
    fi
    # Certificates of the machine, so that a company's own authority is trusted by uv as by pip.
    export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-true}
    if has_uv uv; then
        uv=uv
    elif $VENV/bin/python -m pip install --quiet uv >/dev/null 2>&1; then
        uv=$VENV/bin/uv
    fi
    note "installing $count packages from $LOCK (1.2 GB; about a minute with uv, a few with pip)"
    if [ -n "$uv" ] && install_with_uv "$uv" "$count"; then
        $uv pip install --quiet --python $VENV/bin/python --no-deps -e .
    else
        [ -n "$uv" ] && note "uv could not; trying pip"
        $VENV/bin/python -m pip --version >/dev/null 2>&1 || $VENV/bin/python -m ensurepip --upgrade >/dev/null
        $VENV/bin/python -m pip install --progress-bar off -r $LOCK 2>&1 | progress "$count"
        $VENV/bin/python -m pip install --quiet --no-deps -e .
    fi
    # What every command imports, and uv leaves to the first one that does: a second of its time, and
    # of every command's where nobody may write there.
    compile_bytecode "${IMPORTED[@]/#/$(site_packages)/}"
    stamp packages "$wanted"
}

site_packages() { $VENV/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

compile_bytecode() {
    $VENV/bin/python -m compileall -q -j 0 "$@" >/dev/null ||
        note "not all of it could be compiled: commands do that themselves, each time"
}

install_with_uv() {
    local command=("$1" pip install --python $VENV/bin/python -r $LOCK)
    if [ -t 2 ]; then "${command[@]}"; else "${command[@]}" 2>&1 | progress "$2"; fi
}

# uv and pip name each package once; show how far that is, and every line that is not routine.
# (On a terminal uv draws bars of its own.)
progress() {
    awk -v total="$1" '
        /^(Collecting|Downloading|Building|Requirement already)/ {
            if (++seen % 25 == 0) printf "      … %d of about %d\n", (seen > total ? total : seen), total
            fflush(); next
        }
        /^ *([+~-] |Using cached|Downloaded|Obtaining|Saved)/ { next }
        NF { print "      " substr($0, 1, 160); fflush() }'
}

# --- Java -------------------------------------------------------------------------------------

java_major() { "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }

java_candidates() {
    [ -n "${JAVA_HOME:-}" ] && echo "$JAVA_HOME/bin/java"
    command -v java || true
    [ -x /usr/libexec/java_home ] && echo "$(/usr/libexec/java_home 2>/dev/null)/bin/java"
    ls -d /usr/lib/jvm/*/bin/java /opt/java/*/bin/java /opt/homebrew/opt/openjdk*/bin/java 2>/dev/null || true
}

# Spark 4.1 is tested on 17 and 21: prefer those, take a newer one if it is all there is.
find_java() {
    local candidate major newer=
    while read -r candidate; do
        [ -x "$candidate" ] || continue
        major=$(java_major "$candidate")
        case $major in
            17 | 18 | 19 | 20 | 21) java_home "$candidate" && return ;;
            '' | ? | 1[0-6]) ;;
            *) newer=${newer:-$candidate} ;;
        esac
    done < <(java_candidates)
    [ -n "$newer" ] && java_home "$newer"
}

java_home() {
    "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.home = //p' | head -n 1
}

ensure_java() {
    local home
    home=$(find_java || true)
    if [ -z "$home" ] && can_apt; then
        note "installing $JAVA_PACKAGE"
        apt_install $JAVA_PACKAGE || note "apt-get could not install it"
        home=$(find_java || true)
    fi
    if [ -z "$home" ]; then
        fail "Java 17 or newer was not found; Spark needs one." \
            "Debian, Ubuntu:  sudo apt-get install -y $JAVA_PACKAGE" \
            "Fedora, RHEL:    sudo dnf install -y java-17-openjdk-headless" \
            "macOS:           brew install openjdk@17" \
            "or name one:     JAVA_HOME=/path/to/jdk make $(target)" \
            "then run again:  make $(target)"
    fi
    note "Java $(java_major "$home/bin/java") in $home"
    mkdir -p $STATE
    {
        printf 'export JAVA_HOME=%q\nexport PATH=%q:"$PATH"\n' "$home" "$home/bin"
        # Images of containers often set it. Every process would then compile all it imports anew:
        # half of the CPU time of a short command.
        printf 'unset PYTHONDONTWRITEBYTECODE\n'
    } >$STATE/env
    export JAVA_HOME=$home
}

# --- MariaDB, for the tests of that source -----------------------------------------------------

wants_mariadb() {
    case $(target) in
        test | test-integration | test-faults | test-mysql | conformance-mysql | bench) true ;;
        demo | up) [ "${SOURCE:-}" = mysql ] ;;
        *) false ;;
    esac
}

ensure_mariadb() {
    local server
    server=$(PATH=$PATH:/usr/sbin command -v mariadbd || true)
    if [ -n "$server" ] && command -v my_print_defaults >/dev/null; then note "$server" && return; fi
    if can_apt; then
        note "installing $MARIADB_PACKAGES"
        apt_install $MARIADB_PACKAGES && return
    fi
    note "no MariaDB server here: what runs on one will fail (apt-get install $MARIADB_PACKAGES)"
}

# The benchmark compares with mariadb-binlog, which the core package does not hold.
ensure_mariadb_binlog() {
    if command -v mariadb-binlog >/dev/null; then return; fi
    if can_apt; then
        note "installing mariadb-client"
        apt_install mariadb-client && return
    fi
    note "no mariadb-binlog: the benchmark of MariaDB will fail (apt-get install mariadb-client)"
}

ensure_mysql_libraries() {
    local known
    known=$(PATH=$PATH:/sbin ldconfig -p 2>/dev/null || true)
    case $known in *libaio.so.1\ *libnuma.so.1\ * | *libnuma.so.1\ *libaio.so.1\ *) return ;; esac
    if can_apt; then
        note "installing $MYSQL_PACKAGES"
        apt_install $MYSQL_PACKAGES && return
    fi
    note "no libaio: tests on MySQL 8 will fail (apt-get install $MYSQL_PACKAGES)"
}

# --- jars -------------------------------------------------------------------------------------

jars_exist() {
    local file
    [ -f $STATE/jars.files ] || return 1
    while read -r file; do
        [ -f "$file" ] || return 1
    done <$STATE/jars.files
}

fetch_jars() {
    local wanted
    wanted=$(fingerprint include/tidegate/lake/jars.py scripts/fetch_jars.py)-$JAVA_HOME
    if stamped jars "$wanted" && jars_exist; then
        note "$(grep -c . $STATE/jars.files) jars are in place"
        return
    fi
    $VENV/bin/python scripts/fetch_jars.py
    stamp jars "$wanted"
}

# --- browser ----------------------------------------------------------------------------------

wants_browser() { case $(target) in test | test-dags | test-page) true ;; *) false ;; esac }

# The tests of the page say so themselves where there is none: everything else runs without.
ensure_browser() {
    local name
    for name in chromium chromium-browser google-chrome-stable google-chrome; do
        command -v $name >/dev/null 2>&1 && note "$(command -v $name)" && return
    done
    if can_apt; then
        note "installing $BROWSER_PACKAGE"
        apt_install $BROWSER_PACKAGE && return
    fi
    note "no Chromium: \`make test-page\` needs one"
    note "Debian, Ubuntu:  sudo apt-get install -y $BROWSER_PACKAGE"
    note "macOS:           brew install --cask chromium"
}

# --- all --------------------------------------------------------------------------------------

main() {
    local started=$SECONDS
    if command -v flock >/dev/null 2>&1; then
        mkdir -p .tidegate
        exec 9>.tidegate/setup.lock
        flock -n 9 || { note "another set-up is running; waiting for it" && flock 9; }
    fi
    step 1 "Python"
    make_venv
    step 2 "packages"
    install_packages
    compile_bytecode include/tidegate  # again after each pull: only what is new
    step 3 "Java"
    ensure_java
    step 4 "jars"
    fetch_jars
    step 5 "what only tests need"
    if wants_mariadb; then ensure_mariadb && ensure_mysql_libraries; fi
    if [ "$(target)" = bench ]; then ensure_mariadb_binlog; fi
    if wants_browser; then ensure_browser; fi
    note "set-up done in $((SECONDS - started)) s"
}

main "$@"
