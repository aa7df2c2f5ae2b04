# A docker engine of the bench's own, whose only image is made of the bench's task. All of it is below the bench's
# directory; nothing of an engine of this machine is touched. Sourced, not run.

engine=
image=drover-bench:1
no_engine=

# It is there only once the directory is.
engine_paths() { socket=$dir/engine/sock; }

docker_says() { env -u DOCKER_HOST docker -H "unix://$socket" "$@"; }

# Starts an engine and makes the image. If that cannot be, no_engine says why.
start_engine() {
    local name
    for name in dockerd docker tar; do
        command -v "$name" > /dev/null || { no_engine="no $name on the PATH"; return 0; }
    done
    mkdir -p "$dir/engine/image/bench"
    echo '{}' > "$dir/engine/none.json"
    launch_engine
    if ! await_engine; then
        no_engine='dockerd does not start'
    elif ! make_image > "$dir/engine/why" 2>&1; then
        no_engine="no container runs: $(tail -n 1 "$dir/engine/why" | cut -c 1-120)"
    fi
    [ -z "$no_engine" ] || tail -n 5 "$dir/engine/log" >&2
}

launch_engine() {
    rm -f "$dir/engine/pid"
    dockerd --data-root "$dir/engine/data" --exec-root "$dir/engine/exec" -p "$dir/engine/pid" \
        -H "unix://$socket" --config-file "$dir/engine/none.json" --storage-driver=vfs \
        --bridge=none --iptables=false --ip6tables=false --shutdown-timeout 2 --live-restore \
        >> "$dir/engine/log" 2>&1 &
    engine=$!
}

await_engine() {
    local tries=300
    until docker_says version > /dev/null 2>&1; do
        [ $((tries -= 1)) -gt 0 ] || return 1
        # One that follows one that was killed may find a containerd that hangs a while.
        kill -0 "$engine" 2> /dev/null || launch_engine
        sleep 0.1
    done
}

make_image() {
    cp "$dir/tools/bench-task" "$dir/engine/image/bench/" \
        && tar -C "$dir/engine/image" -c . | docker_says import - "$image" \
        && docker_says run --rm --network none "$image" /bench/bench-task stamp
}

# Ends it as a crash would; containers go on.
kill_engine() {
    local file=$dir/engine/exec/containerd/containerd.pid number tries=600
    number=$(cat "$file" 2> /dev/null || true)
    kill -KILL "$engine"
    wait "$engine" 2> /dev/null || true
    engine=
    # What it started ends with it, a little later. The next engine would wait for it as long as its number is there.
    while [ -n "$number" ] && readlink "/proc/$number/exe" > /dev/null && [ $((tries -= 1)) -gt 0 ]; do
        sleep 0.1
    done
    rm -f "$file"
}

remove_containers() {
    local ids
    ids=$(docker_says ps -aq 2> /dev/null || true)
    # shellcheck disable=SC2086 # each is a word
    [ -z "$ids" ] || docker_says rm -f $ids > /dev/null 2>&1 || true
}

# Ends the engine and all that it started, also if it is gone already. Nothing is left but its directory.
end_engine() {
    local tries=200 pid id parent
    [ -d "$dir/engine" ] || return 0
    if [ -n "$engine" ]; then
        remove_containers
        kill -TERM "$engine" 2> /dev/null || true
        while kill -0 "$engine" 2> /dev/null && [ $((tries -= 1)) -gt 0 ]; do sleep 0.1; done
        kill -KILL "$engine" 2> /dev/null || true
        wait "$engine" 2> /dev/null || true
        engine=
    fi
    for pid in $(grep -lsaF "$dir/engine/" /proc/[0-9]*/cmdline 2> /dev/null | cut -d/ -f3); do
        [ "$pid" = $$ ] || end_with_children "$pid"
    done
    sleep 0.2
    for id in "$dir"/engine/data/containers/*; do
        for parent in /sys/fs/cgroup/docker /sys/fs/cgroup/*/docker; do
            rmdir "$parent/${id##*/}" 2> /dev/null || true
        done
    done
    rmdir /sys/fs/cgroup/docker /sys/fs/cgroup/*/docker 2> /dev/null || true
    forget "$dir/engine"
}

end_with_children() {
    local child below
    below=$(children "$1" || true)
    kill -KILL "$1" 2> /dev/null || true
    for child in $below; do
        end_with_children "$child"
    done
}
