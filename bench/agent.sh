#!/usr/bin/env bash
# What the agent costs and how fast it is: measured from outside, on the real program, with real
# tasks, as a user of this machine would see it. Prints a table: each figure, what it must be at
# least, and what it is meant to be.
#
#   bench/agent.sh [--quick]      quick: fewer repetitions, for a first look
#
# DROVER_BENCH_DIR says on which disk (/var/tmp unless given), DROVER_BENCH_PROFILE which build of the
# agent (dist unless given). An ext4 without a journal is a bad one
# to compare on: it does not give out again what was deleted in the last minutes, and searches ever
# longer for something else.
#
# Needs root, for control groups. All it makes is below one temporary directory and one group, and
# is gone when it ends, however it ends. `strace`, if it is there, counts syncs.
#
# Where a figure is the median of several runs, all runs are the same agent's one after the other.

set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

# What one allocation after the other takes.
measure_latency() {
    start_agent
    local p50 p99 seen
    read -r p50 p99 seen < <("$client" latency "$addr" "$(runs 300 30)" "$dir/stamps")
    row_time 'one allocation, submitted to process started, p50' "$p50" 20000 5000
    row_time '... p99' "$p99" 60000 20000
    row_time '... submitted to seen as running by a client, p50' "$seen" 40000 10000
    stop_agent
}

# What many short allocations cost. The agent is left to clean up before it is asked for the bill.
measure_batch() {
    local number micros cpu0 bytes0 rates=() cpus=() bytes=()
    start_agent
    for ((number = 0; number < $(runs 7 2); number++)); do
        cpu0=$(group_cpu) bytes0=$(written "$agent")
        micros=$("$client" batch "$addr" "batch-$number" 300)
        await_rest
        rates+=($((300 * 1000000 / micros)))
        cpus+=($((($(group_cpu) - cpu0) / 300)))
        bytes+=($((($(written "$agent") - bytes0) / 300)))
    done
    stop_agent
    row_rate '300 batch allocations of /bin/true, submitted to all complete' "$(median "${rates[@]}")" 150 600
    row_time 'CPU of agent and helpers, per batch allocation' "$(median "${cpus[@]}")" 10000 2000
    row_bytes 'bytes written, per batch allocation (agent, helpers, logs)' "$(median "${bytes[@]}")" 65536 16384
}

# Counting calls slows the counted, so this is a run of its own.
measure_syncs() {
    local what='syncs, per batch allocation' calls
    if ! command -v strace > /dev/null; then
        row_text "$what" 'no strace' 8 3
        return
    fi
    start_agent strace --seccomp-bpf -f -qq -o "$dir/syncs" \
        -e trace=fsync,fdatasync,sync_file_range,msync,sync,syncfs
    # What it takes to start is not asked for.
    calls=$(grep -c '(' "$dir/syncs" || true)
    "$client" batch "$addr" syncs 300 > "$dir/micros"
    await_rest
    calls=$(($(grep -c '(' "$dir/syncs") - calls))
    stop_agent
    row_number "$what" "$(hundredths "$calls" 300)" 8 3
}

# What tasks cost that just run, and what it takes to find them again.
measure_running() {
    local number times=() before cpu0 seconds idle loaded kernel0 kernel
    start_agent
    sleep 2
    row_bytes 'agent idle, proportional memory' "$(proportional "$agent")" 12582912 7340032
    for ((number = 0; number < $(runs 7 2); number++)); do
        times+=("$("$client" service "$addr" "all-$number" 100)")
        "$client" stop "$addr" "all-$number"
        await_rest
    done
    row_time '100 service tasks, submitted to all running' "$(median "${times[@]}")" 1000000 200000
    "$client" service "$addr" some 100 > "$dir/micros"
    await_rest
    measure_helpers
    seconds=$(runs 20 5)
    cpu0=$(group_cpu) before=$EPOCHREALTIME
    sleep "$seconds"
    row_share 'CPU while 100 tasks just run, agent and helpers' \
        $(($(group_cpu) - cpu0)) $((${EPOCHREALTIME/./} - ${before/./})) 300 50
    idle=$(proportional "$agent") kernel0=$(group_kernel_memory)
    "$client" service "$addr" more 200 > "$dir/micros"
    await_rest
    loaded=$(proportional "$agent") kernel=$(group_kernel_memory)
    row_bytes 'agent memory, per further running allocation' $(((loaded - idle) / 200)) 61440 20480
    row_bytes '... kernel memory of all of it, helper and directories' $(((kernel - kernel0) / 200)) - -
    "$client" stop "$addr" more
    "$client" stop "$addr" some
    await_rest
    measure_return
    stop_agent
}

measure_helpers() {
    local pid private=() threads=() files=() helpers
    mapfile -t helpers < <(helpers)
    for pid in "${helpers[@]}"; do
        private+=("$(field "/proc/$pid/smaps_rollup" Private_Clean Private_Dirty)")
        threads+=("$(field "/proc/$pid/status" Threads)")
        files+=("$(find "/proc/$pid/fd" -mindepth 1 2> /dev/null | wc -l)")
    done
    pid=${helpers[0]}
    row_bytes 'helper of a running raw_exec task: private memory' \
        $(($(median "${private[@]}") * 1024)) 131072 16384
    row_bytes '... page tables and kernel stack of it' $((($(field "/proc/$pid/status" VmPTE) + 16) * 1024)) - -
    row_number '... processes' "$(hundredths "${#helpers[@]}" 100)" 1 1
    row_number '... threads' "$(median "${threads[@]}")" 1 1
    row_number '... file descriptors' "$(median "${files[@]}")" 10 6
}

# An agent that is killed while 300 tasks run, and one that just starts.
measure_return() {
    local number answered held starts=() returns=()
    for ((number = 0; number < $(runs 9 3); number++)); do
        kill_agent
        start_agent
        starts+=("$answered")
    done
    row_time 'program start to the API answers' "$(median "${starts[@]}")" 80000 25000
    "$client" service "$addr" held 300 > "$dir/micros"
    await_rest
    for ((number = 0; number < $(runs 7 2); number++)); do
        kill_agent
        restart_agent held 300
        returns+=("$held")
    done
    row_time 'agent killed with 300 tasks, started to all known running' "$(median "${returns[@]}")" 500000 100000
    "$client" stop "$addr" held
    await_rest
}

# What looking costs.
measure_telemetry() {
    local rate bytes cpu0 before seconds learned=() number micros all
    for ((number = 0; number < $(runs 7 2); number++)); do
        read -r agent micros < <(inside "$client" learn "$addr" "$dir/log" -- \
            "$program" agent --data-dir "$dir/data" --http "$addr" --log-level warn)
        learned+=("$micros")
        stop_agent
    done
    row_time 'program start to the first complete fingerprint' "$(median "${learned[@]}")" 300000 60000
    # One question after the other, so agent and client take turns: on one processor, because what
    # it takes to wake another is the machine's, and on a virtual one more than all the rest.
    start_agent
    "$client" service "$addr" some 100 > "$dir/micros"
    all=$(taskset -cp "$agent" | sed 's/.*: //')
    taskset -acp 0 "$agent" > /dev/null
    await_rest
    seconds=$(runs 10 3)
    read -r rate bytes < <(taskset -c 0 "$client" rate "$addr" alloc "$seconds")
    row_rate "statistics of an allocation, 100 run, one connection ($bytes bytes)" "$rate" 25000 60000
    read -r rate bytes < <(taskset -c 0 "$client" rate "$addr" '/v1/metrics?format=prometheus' "$seconds")
    row_rate "/v1/metrics, the same ($bytes bytes)" "$rate" 2000 5000
    taskset -acp "$all" "$agent" > /dev/null
    await_rest
    seconds=$(runs 30 10)
    cpu0=$(group_cpu) before=$EPOCHREALTIME
    "$client" each "$addr" '/v1/metrics?format=prometheus' "$seconds" > "$dir/micros"
    row_share 'CPU while 100 tasks are sampled each second, agent and helpers' \
        $(($(group_cpu) - cpu0)) $((${EPOCHREALTIME/./} - ${before/./})) 500 100
    "$client" stop "$addr" some
    await_rest
    stop_agent
}

# What the decisions alone cost: no process, no disk, no network.
measure_core() {
    local out
    out=$(cargo bench -q -p drover-core $($quick && echo -- --quick) 2> /dev/null)
    row_nanos 'a duplicate write to the store' "$(criterion 'a duplicate write, an equal record' "$out")" 150 -
    row_nanos 'one input to the core, 1000 tasks held' \
        "$(criterion "one input of a task's restart, 1000 tasks held" "$out")" 1000 300
}

build agent
prepare
header
measure_running
measure_latency
measure_batch
measure_syncs
measure_telemetry
measure_core
row_bytes 'program, stripped' "$(stat -c %s "$program")" 41943040 20971520
