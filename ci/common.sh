# What the scripts of this directory share. It is sourced, after `set`:
#
#   enter_root       go to the root of the repository
#   clean_environment  forget what would change a result
#   step NAME CMD…   a banner, the command, its time; the first failure ends the script
#   finish           a table of the steps and their times
#   need_nextest     install cargo-nextest if it is missing or too old

# The version that is installed if there is none. The oldest that will do stands
# in .config/nextest.toml, and nextest checks it itself.
nextest_version=0.9.143

enter_root() {
    unset CDPATH
    cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
}

# A result must be that of the tree, not of the shell it was started from.
clean_environment() {
    local name
    for name in $(compgen -e); do
        case $name in
            # Flags would replace those of the steps, and rebuild everything.
            RUSTFLAGS | RUSTDOCFLAGS | CARGO_ENCODED_RUSTFLAGS | CARGO_ENCODED_RUSTDOCFLAGS | \
                CARGO_BUILD_RUSTFLAGS | CARGO_BUILD_RUSTDOCFLAGS | \
                CARGO_PROFILE_* | CARGO_INCREMENTAL | \
                RUST_TEST_* | RUST_MIN_STACK | RUST_LOG) ;;
            # Filters, seeds and "pass in any case" of the test tools.
            NEXTEST | NEXTEST_* | INSTA_* | PROPTEST_*) ;;
            # Our own options; and the cookie and the sockets of an outer program,
            # which a test could take for its own.
            MORTMAIN_* | LISTEN_PID | LISTEN_PIDFDID | LISTEN_FDS | LISTEN_FDNAMES | NOTIFY_SOCKET) ;;
            # Colour in the output that tests compare.
            NO_COLOR | CLICOLOR | CLICOLOR_FORCE | FORCE_COLOR) ;;
            *) continue ;;
        esac
        unset "$name"
    done
    export LC_ALL=C
    # Tests that look at modes must not depend on the user's.
    umask 022
}

step_names=()
step_seconds=()

step() {
    local name=$1 start=$SECONDS status=0
    shift
    printf '\n==> %s\n    %s\n' "$name" "$*"
    "$@" || status=$?
    local took=$((SECONDS - start))
    if ((status != 0)); then
        printf '\n==> FAILED after %d s: %s (exit %d)\n' "$took" "$name" "$status" >&2
        exit "$status"
    fi
    printf '    done in %d s\n' "$took"
    step_names+=("$name")
    step_seconds+=("$took")
}

finish() {
    local i
    printf '\n'
    for i in "${!step_names[@]}"; do
        printf '%6d s  %s\n' "${step_seconds[i]}" "${step_names[i]}"
    done
    printf '%6d s  in all\n' "$SECONDS"
}

need_nextest() {
    local status=0
    cargo nextest --version >/dev/null 2>&1 || status=$?
    if ((status == 0)); then
        # 92: older than .config/nextest.toml asks for; 10: older than recommended, which will do.
        cargo nextest show-config version >/dev/null 2>&1 || status=$?
        if ((status != 92)); then
            return 0
        fi
        printf 'The installed cargo-nextest is too old for .config/nextest.toml.\n'
    else
        printf 'cargo-nextest is missing.\n'
    fi
    printf 'Installing version %s. It is built from source, which takes minutes (about eight on two\n' "$nextest_version"
    printf 'cores). To run the tests without it: ci/test --no-install\n'
    cargo install cargo-nextest --locked --version "$nextest_version"
}
