#!/usr/bin/env bash
# What it takes to keep tasks apart: those of `exec` and `docker`, groups with networks of their own, cores that nobody
# else has. Where a `nomad` program is on the PATH, its agent does the same in the same run. Prints a table: each figure,
# what it must be at least, and what it is meant to be.
#
#   bench/isolation.sh [--quick] [--only exec|network|cpuset|docker]
#
#   quick: smaller numbers, for a first look
#
# DROVER_BENCH_DIR says on which disk (/var/tmp unless given), DROVER_BENCH_PROFILE which build of the
# agent (dist unless given; release is soon built).
#
# Needs root, `ip` and `unshare`. It runs in a network of its own, with an engine of its own where `dockerd` and `docker`
# are installed; an image is made here. Of Nomad, networks need the CNI plugins in /opt/cni/bin. All it makes is below one
# temporary directory and in control groups, and is gone when it ends, however it ends. Figures whose needs are missing
# are "-", with the reason.
#
# Nomad copies the root of each task of `exec`. Of what its map has by default it does so for "10 at once" only: elsewhere
# its roots have what `true` needs.

set -euo pipefail
cd "$(dirname "$0")/.."

arguments=("$@")
only='' others=()
while [ $# -gt 0 ]; do
    case $1 in
        --only) only=${2:-nothing}; shift $(($# > 1 ? 2 : 1)) ;;
        *) others+=("$1"); shift ;;
    esac
done
case $only in
    '' | exec | network | cpuset | docker) ;;
    *) others=(--help) ;;
esac
set -- "${others[@]}"

. bench/lib.sh
. bench/everyday_nomad.sh
. bench/beside_nomad.sh
. bench/isolation_engine.sh
. bench/isolation_world.sh

# of MANY FEW NOMAD: how often or with how many; not more than NOMAD where that is measured, which takes longer
of() {
    local number
    number=$(runs "$1" "$2")
    [ "$who" = drover ] || [ "$number" -le "$3" ] || number=$3
    echo "$number"
}

# What the client says, or nothing: what cannot be measured leaves the rest as it is.
tried() { timeout 200 "$client" "$@" || echo "bench: $who: $1 was not measured" >&2; }

# Nomad's agent never rests for long.
settle() { await_rest "$(of 20 20 4)"; }

stop_job() {
    tried stop "$addr" "$1"
    settle
}

measure_exec() {
    measure_together
    if [ "$who" = nomad ]; then
        finish_agent
        begin_agent small
    fi
    measure_lives
    measure_least
}

measure_together() {
    local number took cpu0 walls=() cpus=()
    for ((number = 0; number < $(of 5 2 1); number++)); do
        cpu0=$(all_cpu)
        took=$(tried many "$addr" "ten-$number" exec 10 stay)
        cpus+=($(($(all_cpu) - cpu0)))
        [ -n "$took" ] || return 0
        walls+=("$took")
        settle
        [ "$number" -gt 0 ] || measure_helpers 10
        stop_job "ten-$number"
    done
    note exec.wall "$(median "${walls[@]}")"
    note exec.cpu "$(median "${cpus[@]}")"
}

# measure_helpers TASKS: what the helpers of so many tasks have, all together, for each task
measure_helpers() {
    local pid count=0 private=0 threads=0 files=0
    for pid in $(helper_pids); do
        count=$((count + 1))
        private=$((private + $(private_of "$pid")))
        threads=$((threads + $(field "/proc/$pid/status" Threads)))
        files=$((files + $(find "/proc/$pid/fd" -mindepth 1 2> /dev/null | wc -l)))
    done
    note exec.memory $((private / $1))
    note exec.processes $((count * 100 / $1))
    note exec.threads $((threads * 100 / $1))
    note exec.files $((files * 100 / $1))
}

measure_lives() {
    local p50 p99 stop count
    read -r p50 p99 stop count < <(tried isolated-lives "$addr" exec "$(of 300 20 5)" 40) || return 0
    note exec.start50 "$p50"
    note exec.start99 "$p99"
    note exec.stop "$stop"
    echo "bench: $who: of $count tasks" >&2
}

# The memory that jobs ask for is found by asking. No job asks for less than 10 MB: what Drover's tasks need of it is found
# by a limit of the group above theirs, to which their own group counts too.
measure_least() {
    local megabytes
    for megabytes in 10 12 14 16 20 24 28 32 48 64; do
        [ "$(tried fits "$addr" "fits-$megabytes" "$megabytes")" = 1 ] || continue
        if [ "$who" = drover ] && [ "$megabytes" = 10 ]; then
            measure_least_of_all
        else
            note exec.least $((megabytes << 20))
        fi
        return 0
    done
}

measure_least_of_all() {
    local low=0 high=$((10 << 20)) middle number=0
    settle
    if ! no_task_runs; then
        remarks["drover exec.least"]="other tasks run below $(limiting_group)"
        return 0
    fi
    while [ $((high - low)) -gt 16384 ]; do
        middle=$(((low + high) / 8192 * 4096)) number=$((number + 1))
        if limit_all "$middle" 2> /dev/null && [ "$(tried fits "$addr" "least-$number" 10)" = 1 ]; then
            high=$middle
        else
            low=$middle
        fi
    done
    limit_all ''
    note exec.least "$high"
}

measure_network() {
    local p50 p99 stop count number gone over rates=() ends=()
    if read -r p50 p99 stop count < <(tried added-by-networks "$addr" exec "$(of 150 10 10)" 40); then
        note network.start50 "$p50"
        note network.start99 "$p99"
        # Less than half a millisecond is noise.
        note network.stop $(((stop + 500) / 1000 * 1000))
        echo "bench: $who: of $count tasks each" >&2
    fi
    for ((number = 0; number < $(of 3 1 1); number++)); do
        read -r gone over < <(tried networks "$addr" "hundred-$number" "$(runs 100 20)") || return 0
        rates+=("$gone") ends+=("$over")
        settle
    done
    note network.rate "$(median "${rates[@]}")"
    note network.ended "$(median "${ends[@]}")"
}

# measure_cores GROUP DRIVER CHANGES SECONDS: after how many changes a process may run where it should not
measure_cores() {
    local outside count
    if [ "$(nproc)" -lt 2 ]; then
        remarks["$who $1.outside"]='there is one processor only'
        return 0
    fi
    read -r outside count < <(tried cpusets "$addr" "$2" "$3" "$4") || return 0
    note "$1.outside" "$outside"
    remarks["$who $1.outside"]="of $count changes"
}

measure_cpuset() { measure_cores cpuset exec "$(of 1000 60 200)" "$(of 90 90 25)"; }

measure_docker() {
    measure_starts
    measure_hundred
    measure_cores docker docker "$(of 60 20 20)" 20
    measure_return
}

measure_starts() {
    local above bare count number with without ratios=()
    if read -r above bare count < <(tried containers "$addr" "$socket" "$dir/bare" "$(of 30 5 10)" 25); then
        note docker.above "$above"
        echo "bench: $who: of $count containers each; the engine alone took $bare" >&2
    fi
    for ((number = 0; number < $(of 2 1 1); number++)); do
        read -r with without < <(tried container-services "$addr" "$socket" "$dir/bare" "all-$number" 30) || return 0
        ratios+=($((with * 100 / without)))
        settle
    done
    note docker.ratio "$(median "${ratios[@]}")"
}

measure_hundred() {
    local many seconds private cpu
    many=$(runs 100 20) seconds=$(of 15 5 10)
    settle
    private=$(private_memory)
    if [ -n "$(tried many "$addr" hundred docker "$many" stay)" ]; then
        settle
        note docker.memory $((($(private_memory) - private) / many))
        note docker.processes $(($(helper_pids | wc -w) * 100 / many))
        cpu=$(cpu_of "$seconds")
        note docker.idle $((cpu * 100000 / (seconds * 1000000)))
        cpu=$(group_cpu)
        if [ -n "$(tried look "$addr" hundred "$seconds")" ]; then
            note docker.looked $((($(group_cpu) - cpu) * 100000 / (seconds * 1000000)))
        fi
    fi
    stop_job hundred
}

# The engine dies while 30 tasks write a line each 100 ms, and comes back.
measure_return() {
    local number healthy known first=() all=()
    if [ -n "$(tried many "$addr" beating docker 30 beat 100)" ]; then
        for ((number = 0; number < $(of 2 1 1); number++)); do
            kill_engine
            launch_engine
            if read -r healthy known < <(tried engine-returns "$addr" "$socket" beating 20); then
                first+=("$healthy") all+=("$known")
            fi
            await_engine || return 0
        done
    fi
    if [ ${#all[@]} -gt 0 ]; then
        note docker.healthy "$(median "${first[@]}")"
        note docker.known "$(median "${all[@]}")"
    fi
    stop_job beating
}

# obstacle NEED...: why the agent that runs cannot be measured; nothing if it can
obstacle() {
    local need why
    for need; do
        why=$(tried lacks "$addr" "$need" 20)
        if [ "$who $need" = 'nomad bridge' ] && [ ! -x /opt/cni/bin/bridge ]; then
            why='no CNI plugins in /opt/cni/bin'
        fi
        [ -z "$why" ] || { echo "${why:0:120}"; return; }
    done
}

# measure GROUP NEED...: with an agent for each
measure() {
    local why small=small
    [ "$1" != exec ] || small=
    for who in nomad drover; do
        is_there "$who" || continue
        echo "bench: $who: $1" >&2
        begin_agent $small
        why=$(obstacle "${@:2}")
        if [ -n "$why" ]; then
            remarks["$who $1"]=$why
        else
            "measure_$1"
        fi
        finish_agent
    done
}

measure_with_engine() {
    start_engine
    if [ -n "$no_engine" ]; then
        remarks["drover docker"]=$no_engine remarks["nomad docker"]=$no_engine
    else
        measure docker docker
    fi
    end_engine
}

wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }

show_exec() {
    figure ' ms' 1000 2 less exec.start50 'exec: submitted to process started, p50' 30000 8000
    figure ' ms' 1000 2 less exec.start99 '... p99' 90000 25000
    figure ' ms' 1000 1 less exec.wall '... 10 at once with the default chroot map, until all run' 1000000 200000
    figure ' ms' 1000 1 less exec.cpu '... CPU of agent, helpers and tasks' 500000 100000
    figure ' ms' 1000 2 less exec.stop '... stop of a task that handles no signal, p50' 200000 20000
    figure ' KiB' 1024 1 less exec.memory '... helpers of a task: private memory' 131072 32768
    figure '' 100 1 less exec.processes '... processes' 200 200
    figure '' 100 1 less exec.threads '... threads' 200 200
    figure '' 100 1 less exec.files '... file descriptors' 1600 1000
    figure ' MiB' 1048576 2 less exec.least '... least memory with which `true` runs' 6291456 1048576
}

show_network() {
    figure ' ms' 1000 2 less network.start50 'network of a group: added until its process started, p50' 40000 6000
    figure ' ms' 1000 2 less network.start99 '... p99' 120000 25000
    figure ' ms' 1000 2 less network.stop '... added until it is over' 10000 0
    figure ' /s' 1 0 more network.rate '100 networks set up and removed' 20 80
    figure ' /s' 1 0 more network.ended '... until all tasks are over, whatever is left' - -
}

show_cpuset() {
    figure '' 1 0 less cpuset.outside '1,000 changes of cpusets that leave a process elsewhere' 0 0
}

show_docker() {
    figure ' ms' 1000 2 less docker.above 'docker: submitted to started, above create and start, p50' 40000 10000
    figure ' times' 100 2 less docker.ratio '... 30 services to running, against a bare loop, 4 at once' 130 105
    figure ' KiB' 1024 1 less docker.memory '... agent and helpers, private memory, per task' 262144 65536
    figure '' 100 2 less docker.processes '... processes beside the engine, per task' 0 0
    figure ' %' 1000 3 less docker.idle '... CPU while 100 tasks just run' 500 50
    figure ' %' 1000 3 less docker.looked '... while each is looked at each second' 1500 800
    figure ' ms' 1000 1 less docker.known '... engine killed with 30 tasks, back: all outputs go on' 3000000 500000
    figure ' ms' 1000 1 less docker.healthy '... the driver is healthy' - -
    figure '' 1 0 less docker.outside '... changes of cpusets that leave a process elsewhere' - -
}

print_table() {
    local one
    printf -v nomad_column '%12s %7s' nomad ratio
    header
    for one in exec network cpuset docker; do
        ! wanted "$one" || "show_$one"
    done
}

# What is built may need the machine's network; what is measured needs one of its own.
if [ -z "${DROVER_BENCH_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || fail 'needs root'
    build everyday
    build_task
    export client launcher program task DROVER_BENCH_INSIDE=1
    exec unshare --net bash bench/isolation.sh "${arguments[@]}"
fi

ulimit -n 16384
prepare
trap cleanup_all EXIT
engine_paths
set_up_network
set_up_tools
! wanted exec || measure exec exec
! wanted network || measure network exec bridge
! wanted cpuset || measure cpuset exec
! wanted docker || measure_with_engine
print_table
