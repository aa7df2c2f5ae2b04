# Where bench/isolation.sh measures: a network of its own, agents that know the bench's task and its engine, and what they
# may leave. Sourced, not run.

# Groups of Nomad's that this machine had before; what else there is of them at the end is ours.
groups_before=$(echo /sys/fs/cgroup/nomad.slice /sys/fs/cgroup/*/nomad)
addresses=/var/lib/cni/networks/nomad
had_addresses=false
[ ! -e "$addresses" ] || had_addresses=true

# The task is static: each root and each image can have it.
build_task() {
    task=${client%/*}/bench-task
    cargo rustc --release -q -p drover-bench --bin bench-task -- -C target-feature=+crt-static 2> /dev/null \
        || fail 'cannot build the task: it wants a static libc'
    ! ldd "$task" 2> /dev/null | grep -q '=>' || fail 'the task is not static'
}

# A loopback, and an interface with a way out, because Nomad wants one. All of it goes with this network.
set_up_network() {
    ip link set lo up || fail 'needs ip'
    ip link add bench0 type veth peer name bench1 || return 0
    ip addr add 10.9.0.1/24 dev bench0
    ip link set bench0 up
    ip link set bench1 up
    ip route add default via 10.9.0.2 dev bench0
}

set_up_tools() {
    mkdir "$dir/tools"
    cp "$task" "$dir/tools/bench-task"
    chmod 755 "$dir/tools" "$dir/tools/bench-task"
}

# client_settings MORE: what both agents are told: the volume with the task, and the engine
client_settings() {
    cat << EOF
client {
  gc_max_allocs = 20000
  host_volume "bench" {
    path      = "$dir/tools"
    read_only = true
  }
$1
}
plugin "docker" {
  config {
    endpoint = "unix://$socket"
  }
}
EOF
}

# Nomad copies each task's root. With this it is no more than what \`true\` needs.
small_root() {
    local file
    echo '  chroot_env {'
    for file in /bin/true $(ldd /bin/true | grep -o '/[^ ]*'); do
        echo "    \"$file\" = \"$file\""
    done
    echo '  }'
}

# begin_agent [small]: starts the agent that is called as `who` says
begin_agent() {
    local more='  network_interface = "bench0"'
    if [ "$who" = drover ]; then
        client_settings '' > "$dir/drover.hcl"
        options=(-config "$dir/drover.hcl")
        start_agent
    else
        [ -z "${1:-}" ] || more+=$'\n'$(small_root)
        client_settings "$more" > "$dir/nomad_more.hcl"
        nomad_options=(-config "$dir/nomad_more.hcl")
        start_nomad
    fi
    timeout 90 "$client" ready "$addr" || fail "$who does not get ready"
    [ "$who" = drover ] || agent=$(nomad_pid)
}

# The only process of Nomad before it has tasks. What started it is a shell.
nomad_pid() {
    local pid
    for pid in $(cat "$group/cgroup.procs"); do
        case $(readlink "/proc/$pid/exe") in
            */bash | */env) ;;
            *) echo "$pid"; return ;;
        esac
    done
    echo "$agent"
}

finish_agent() {
    if [ "$who" = drover ]; then
        kill_agent
        end_tasks
        forget "$dir/data"
    else
        end_nomad
        forget_nomad
    fi
    [ -z "$engine" ] || remove_containers
}

# Ends what Drover's agents left, and removes its groups.
end_tasks() {
    local pid record parent any=false
    for pid in $(helpers); do
        any=true
        # shellcheck disable=SC2046 # each is a word
        kill -KILL $(children "$pid" || true) "$pid" 2> /dev/null || true
    done
    ! $any || sleep 0.3
    for record in "$dir"/data/run/*.r; do
        for parent in /sys/fs/cgroup/drover /sys/fs/cgroup/*/drover; do
            rmdir "$parent/$(basename "$record" .r)" 2> /dev/null || true
        done
    done
}

# remove_group GROUP: ends what is in it, and removes it with all below.
remove_group() {
    local pid
    for pid in $(find "$1" -name cgroup.procs -exec cat {} + 2> /dev/null); do
        kill -KILL "$pid" 2> /dev/null || true
    done
    sleep 0.2
    find "$1" -depth -type d -exec rmdir {} \; 2> /dev/null || true
}

# Removes what Nomad leaves outside of its directory, if it was not there before.
forget_nomad() {
    local parent
    for parent in /sys/fs/cgroup/nomad.slice /sys/fs/cgroup/*/nomad; do
        case " $groups_before " in
            *" $parent "*) ;;
            *) [ ! -d "$parent" ] || remove_group "$parent" ;;
        esac
    done
    $had_addresses || rm -rf "$addresses"
}

# The helpers of tasks of the agent that is measured.
helper_pids() {
    if [ "$who" = drover ]; then helpers; else children "$agent" || true; fi
}

# Bytes that agent and helpers have for themselves.
private_memory() {
    local pid sum=0
    for pid in "$agent" $(helper_pids); do
        sum=$((sum + $(private_of "$pid")))
    done
    echo $sum
}

private_of() { echo $(($(field "/proc/$1/smaps_rollup" Private_Clean Private_Dirty) * 1024)); }

# Microseconds of CPU that all took: agent and helpers, and what is done for tasks in their own groups.
all_cpu() {
    local sum parent
    sum=$(group_cpu)
    for parent in "${group%/*}"/{drover,nomad.slice}; do
        [ ! -e "$parent/cpu.stat" ] || sum=$((sum + $(awk '$1 == "usage_usec" { print $2 }' "$parent/cpu.stat")))
    done
    echo "$sum"
}

# The group above those of Drover's tasks that limits their memory, and the file with the limit.
limiting_group() { if [ -d /sys/fs/cgroup/memory/drover ]; then echo /sys/fs/cgroup/memory/drover; else echo /sys/fs/cgroup/drover; fi; }

limited=false

# limit_all BYTES: limits what all tasks of Drover have together; nothing lifts it
limit_all() {
    local parent
    parent=$(limiting_group)
    limited=true
    if [ -e "$parent/memory.limit_in_bytes" ]; then
        # Memory of tasks that are gone counts there; a new group has none.
        if rmdir "$parent" 2> /dev/null; then mkdir "$parent"; fi
        echo "${1:--1}" > "$parent/memory.limit_in_bytes"
    else
        echo "${1:-max}" > "$parent/memory.max"
    fi
    [ -n "${1:-}" ] || limited=false
}

# Whether no task of Drover runs here, ours or others'.
no_task_runs() { [ -z "$(find "$(limiting_group)" -mindepth 1 -maxdepth 1 -type d)" ]; }

cleanup_all() {
    local code=$?
    trap - EXIT
    set +e
    [ $code = 0 ] || [ ! -e "$dir/engine/log" ] || tail -n 5 "$dir/engine/log" >&2
    [ -z "$agent" ] || kill -KILL "$agent" 2> /dev/null
    end_tasks
    # What was there before is known from before its agent is started.
    [ -z "${groups_before+known}" ] || forget_nomad
    ! $limited || limit_all
    end_engine
    (exit $code)
    cleanup
}
