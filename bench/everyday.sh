#!/usr/bin/env bash
# What people and their programs do all day, how fast that is and what it costs: checks, sessions,
# lists, blocking queries, events, logs, periodic jobs, plans. Where a `nomad` program is on the PATH,
# its agent does the same in the same run. Prints a table: each figure, what it must be at least, and
# what it is meant to be.
#
#   bench/everyday.sh [--quick]   quick: smaller numbers, for a first look
#
# DROVER_BENCH_DIR says on which disk (/var/tmp unless given), DROVER_BENCH_PROFILE which build of the
# agent (dist unless given; release is soon built).
#
# Needs root, for control groups. All it makes is below one temporary directory and one group, and
# is gone when it ends, however it ends. Tasks are raw_exec, the smallest that both agents have.

set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh
. bench/everyday_nomad.sh
. bench/beside_nomad.sh

measure_memory() {
    local before count
    count=$(runs 1000 100)
    before=$(proportional "$agent")
    measured batch-jobs "$addr" "$count" > "$dir/micros"
    measured gc "$addr"
    await_rest 20
    note memory $(($(proportional "$agent") * 100 / before))
}

measure_sessions() {
    local first p50 p99 rate
    read -r first p50 p99 rate < <(measured exec "$addr")
    note first "$first"
    note key50 "$p50"
    note key99 "$p99"
    note output "$rate"
}

measure_reads() {
    local rate bytes seconds
    seconds=$(runs 5 2)
    measured service "$addr" some 100 > "$dir/micros"
    read -r rate bytes < <(measured rate "$addr" /v1/job/some/allocations "$seconds")
    note list100 "$rate"
    read -r rate bytes < <(measured rate "$addr" alloc "$seconds")
    note alloc "$rate"
    measured stop "$addr" some
    await_rest 20
}

measure_checks() {
    local cpu seconds many
    seconds=$(runs 30 10)
    measured checks "$addr" few 100 10 21000 > "$dir/micros"
    await_rest 20
    cpu=$(cpu_of "$seconds")
    note checks $((cpu * 100000 / (seconds * 1000000)))
    measured stop "$addr" few
    many=$(runs 1000 200) seconds=$(runs 10 5)
    measured checks "$addr" many "$many" 1 21100 > "$dir/micros"
    cpu=$(cpu_of "$seconds")
    note checks_rate $((many * seconds * 1000000 / (cpu + 1)))
    measured stop "$addr" many
    await_rest 20
}

measure_streams() {
    local one last rate count lines p50
    count=$(runs 1000 100)
    read -r one last < <(measured blocking "$addr" "$count")
    note blocking "$one"
    note blocking_many "$last"
    note event "$(measured event "$addr")"
    read -r rate lines < <(measured subscribers "$addr" "$count")
    note lines "$rate"
    note follower "$(measured follower "$addr")"
    note follow "$(measured follow "$addr" "$(runs 200 20)")"
}

measure_periodic() {
    local p50 p99 seconds
    # Long enough for what follows on their registration now and then, such as giving memory back.
    seconds=$(runs 60 5)
    measured periodic "$addr" "$(runs 1000 100)" > "$dir/micros"
    await_rest 20
    note periodic $(($(cpu_of "$seconds") * 100000 / (seconds * 1000000)))
    read -r p50 p99 < <(measured lateness "$addr" "$(runs 40 5)" "$dir/stamps")
    note late50 "$p50"
    note late99 "$p99"
}

# The agent is used up after it: it holds so many allocations.
measure_lists() {
    local time bytes alone busy read read_busy
    measured batch "$addr" batch "$1" > "$dir/micros"
    await_rest 20
    read -r time bytes < <(measured list "$addr")
    note list "$time"
    read -r alone busy read read_busy < <(measured meanwhile "$addr")
    note alone "$alone"
    note busy "$busy"
    note read "$read"
    note read_busy "$read_busy"
    note filter "$(measured filter "$addr")"
}

measure_all() {
    "$client" ready "$addr"
    await_rest 20
    local step
    for step in memory sessions reads checks streams; do
        echo "bench: $who: $step" >&2
        "measure_$step"
    done
    echo "bench: $who: plan and periodic jobs" >&2
    note plan "$(measured plan "$addr" "$(runs 100 10)")"
    measure_periodic
}

measure_drover() {
    who=drover
    # One client is many here, and what ended is not collected before it is listed.
    printf '%s\n' 'limits { http_max_conns_per_client = 4096 }' 'client { gc_max_allocs = 20000 }' > "$dir/drover.hcl"
    options=(-config "$dir/drover.hcl")
    start_agent
    measure_all
    echo "bench: $who: 10,000 allocations" >&2
    measure_lists "$(runs 10000 500)"
    kill_agent
    forget "$dir/data"
}

measure_nomad() {
    command -v nomad > /dev/null || return 0
    who=nomad
    start_nomad
    measure_all
    end_nomad
}

print_table() {
    printf -v nomad_column '%12s %7s' "nomad" "ratio"
    header
    figure ' %' 1000 3 less checks '100 http checks each 10 s, CPU' 600 200
    figure ' /s' 1 0 more checks_rate 'http checks a second that one core bears' 2000 6000
    figure ' ms' 1000 2 less first '`alloc exec`, request to first byte, p50' 40000 5000
    figure ' ms' 1000 2 less key50 '... keystroke to echo, p50' 2000 300
    figure ' ms' 1000 2 less key99 '... p99' 10000 2000
    figure ' MB/s' 1 0 more output '... output' 50 150
    figure ' ms' 1000 1 less list 'list of 10,000 allocations, p50' 120000 30000
    figure ' ms' 1000 2 less alone '... a job submitted, nobody lists: the longest of 100' - -
    figure ' ms' 1000 2 less busy '... while another lists without end' - -
    figure ' ms' 1000 2 less read '... a job read, nobody lists: the longest of 1,000' - -
    figure ' ms' 1000 2 less read_busy '... while another lists without end' 5000 500
    figure ' ms' 1000 1 less filter 'filter over 10,000 allocations, p50' 60000 8000
    figure ' /s' 1 0 more list100 '100 allocations listed' 3000 10000
    figure ' /s' 1 0 more alloc 'one allocation' 15000 30000
    figure ' ms' 1000 2 less blocking 'blocking query, change sent to answer, p50' 10000 1000
    figure ' ms' 1000 1 less blocking_many '... 1,000 of them on one job: the last' 400000 80000
    figure ' /s' 1 0 more lines 'events, 1,000 subscribers, lines' 50000 150000
    figure ' ms' 1000 2 less event '... change sent to line, p50' 50000 8000
    figure ' ms' 1000 2 less follower 'log line from write to a follower, p50' 30000 3000
    figure ' MB/s' 1 0 more follow '... follow, plain' 200 600
    figure ' %' 1000 3 less periodic '1,000 periodic jobs, idle CPU' 100 10
    figure ' ms' 1000 1 less late50 '... process started after its time, p50' - -
    figure ' ms' 1000 1 less late99 '... p99' 100000 15000
    figure ' ms' 1000 1 less plan 'plan of a job with 100 groups, unchanged' 60000 8000
    figure ' times' 100 2 less memory 'memory after 1,000 batch jobs came and went' 150 110
}

ulimit -n 16384
build everyday
prepare
measure_nomad
measure_drover
print_table
