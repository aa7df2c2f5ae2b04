#!/usr/bin/env bash
# A node of a cluster: how soon it is ready at a server, how soon what the server placed runs and is known to run,
# what it sends and what it costs; what TLS adds, and a hundred nodes whose leader dies. The same of Nomad's own client
# at the same server, in the same run, where that can be. Needs a `nomad` program on the PATH, which is the server.
# Then what the tests of the wire, of TLS and of simulated fleets measure. Prints a table: each figure, what it must be
# at least, and what it is meant to be.
#
#   bench/cluster.sh [--quick]    quick: smaller numbers, for a first look
#
# DROVER_BENCH_DIR says on which disk (/var/tmp unless given), DROVER_BENCH_PROFILE which build of the
# agent (dist unless given; release is soon built).
#
# Needs root, for control groups. All it makes is below one temporary directory and one group, and
# is gone when it ends, however it ends. Tasks are raw_exec, the smallest that both agents have.

set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh
. bench/beside_nomad.sh
. bench/cluster_more.sh

port=${addr##*:}
server_http=127.0.0.1:$((port + 10)) server_rpc=127.0.0.1:$((port + 11)) figures=127.0.0.1:$((port + 13))
# Processes that end with the servers: these, and who listens to what they count.
servers=() command=()

# begin_server NAME PORT EXPECTED [MORE]: a server of so many, with more settings. What it counts goes to one address.
# When it begins to lead it gives nodes half a minute: with the usual five nobody would see a minute later which are lost.
begin_server() {
    mkdir -p "$dir/$1"
    {
        nomad_settings "$dir/$1" "$2"
        cat << EOF
name = "$1"
server {
  enabled                = true
  bootstrap_expect       = $3
  failover_heartbeat_ttl = "30s"
}
telemetry {
  statsd_address   = "$figures"
  disable_hostname = true
}
EOF
        echo "${4:-}"
    } > "$dir/$1.hcl"
    env -i PATH="$PATH" HOME="$dir" nomad agent -config "$dir/$1.hcl" >> "$dir/log" 2>&1 &
    servers+=($!)
}

# await_leader PORT: of the API of a server.
await_leader() {
    local tries=600
    until curl -sf "http://127.0.0.1:$1/v1/status/leader" | grep -q :; do
        [ $((tries -= 1)) -gt 0 ] || fail 'the servers do not start'
        sleep 0.1
    done
}

# What it counts goes to a file, a line for each.
start_server() {
    "$client" figures "$figures" "$dir/figures" &
    servers+=($!)
    begin_server server $((port + 10)) 1
    await_leader $((port + 10))
}

end_servers() {
    [ ${#servers[@]} = 0 ] || kill -KILL "${servers[@]}" 2> /dev/null || true
    wait "${servers[@]}" 2> /dev/null || true
    servers=()
    rm -rf "$dir"/server*/
}

cleanup_all() {
    local code=$?
    trap - EXIT
    set +e
    end_servers
    (exit $code)
    cleanup
}

# client_settings DATA PORT SERVER: what Nomad's client is told.
client_settings() {
    nomad_settings "$1" "$2"
    cat << EOF
client {
  enabled       = true
  servers       = ["$3"]
  gc_max_allocs = 20000
  options = {
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean,consul,vault"
  }
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
EOF
}

# Starts the agent; sets agent, joined, and the command that starts it.
join_cluster() {
    command=("$program" agent --data-dir "$dir/data" --http "$addr" --log-level warn -servers "$server_rpc")
    [ "$who" = drover ] || command=(env -i PATH="$PATH" HOME="$dir" nomad agent -config "$dir/client.hcl")
    mkdir -p "$dir/data"
    read -r agent joined < <(inside "$client" join "$server_http" "$dir/log" -- "${command[@]}")
    [ -n "$agent" ] || fail "$who does not join"
}

leave_cluster() {
    local pid
    kill -KILL "$agent" 2> /dev/null || true
    while [ -e "/proc/$agent/exe" ] && readlink "/proc/$agent/exe" > /dev/null; do sleep 0.01; done
    agent=
    for pid in $(helpers); do
        kill -KILL $(children "$pid") "$pid" 2> /dev/null || true
    done
    for pid in $(cat "$group/cgroup.procs"); do
        kill -KILL "$pid" 2> /dev/null || true
    done
    sleep 0.3
    "$client" purge "$server_http"
    drop_groups
    forget "$dir/data"
}

# How often the server counted something.
counted() { grep -cx "nomad.nomad.client.$1" "$dir/figures" || true; }

# Bytes that went over the agent's connections to the server, both ways.
wire_bytes() {
    ss -tinpH dst "$server_rpc" | awk -v pid="pid=$agent," '
        /users:/ { own = index($0, pid) > 0; next }
        own { for (i = 1; i <= NF; i++) if ($i ~ /^bytes_(sent|received):/) { split($i, part, ":"); sum += part[2] } }
        END { print sum + 0 }'
}

# The ends of those connections: one that was made anew would count from nothing.
wire_ports() { ss -tnpH dst "$server_rpc" | grep "pid=$agent," | awk '{ print $4 }' | sort; }

measure_joining() {
    local number times=()
    for ((number = 0; number < $(runs 7 2); number++)); do
        join_cluster
        times+=("$joined")
        leave_cluster
    done
    note joined "$(median "${times[@]}")"
}

measure_idle() {
    local seconds cpu0 bytes0 beats0 nodes0 ports
    seconds=$(runs 300 40)
    sleep "$(runs 30 5)"
    note memory "$(proportional "$agent")"
    ports=$(wire_ports)
    cpu0=$(group_cpu) bytes0=$(wire_bytes) beats0=$(counted update_status) nodes0=$(counted register)
    sleep "$seconds"
    note cpu $((($(group_cpu) - cpu0) / (seconds * 10)))
    [ "$ports" = "$(wire_ports)" ] || fail "$who: a connection was made anew"
    note bytes $((($(wire_bytes) - bytes0) * 3600 / seconds))
    # The server asks for one after ten to twenty seconds, in the middle fifteen.
    note beats $((($(counted update_status) - beats0) * 15 * 1000 / seconds))
    note registrations $(($(counted register) - nodes0))
}

measure_work() {
    local p50 p99 start stop before count
    read -r p50 p99 < <(measured placed "$server_http" "$(runs 200 20)" "$dir/stamps")
    rm -f "$dir/stamps"
    note placed50 "$p50"
    note placed99 "$p99"
    read -r start stop < <(measured lives "$server_http" "$(runs 20 5)")
    note running "$start"
    note stopped "$stop"
    count=$(runs 300 50)
    before=$dir/before
    # Updates of the start are over when all are known to run; what is counted are those of the end.
    measured together "$server_http" all "$count" > "$before" &
    local updates work=$!
    await_running "$count" "$work"
    updates=$(counted update_alloc)
    wait "$work"
    note told "$(cat "$before")"
    sleep 2
    note updates $(($(counted update_alloc) - updates))
}

await_running() {
    until [ "$(curl -s "http://$server_http/v1/job/all/allocations" | grep -o '"ClientStatus":"running"' | wc -l)" = "$1" ]; do
        kill -0 "$2" 2> /dev/null || fail "$who: its allocations do not all run"
        sleep 0.2
    done
    # What was gathered is sent.
    sleep 1
}

# The agent dies while many allocations run, and another one goes on: whether servers missed it, and what it tells them
# that they know.
measure_return() {
    local count updates node
    count=$(runs 300 50)
    "$client" stay "$server_http" kept "$count" || fail "$who: its services do not all run"
    # Ten seconds later they are healthy, which servers are told.
    sleep 15
    updates=$(counted update_alloc)
    kill -KILL "$agent"
    while [ -e "/proc/$agent/exe" ] && readlink "/proc/$agent/exe" > /dev/null; do sleep 0.01; done
    agent=$(inside "$client" start "$server_http" "$dir/log" -- "${command[@]}")
    # Longer than servers ask for the next heartbeat.
    sleep "$(runs 60 30)"
    kill -0 "$agent" 2> /dev/null || fail "$who does not come back"
    node=$(curl -s "http://$server_http/v1/nodes" | grep -o '"ID":"[^"]*"' | cut -d'"' -f4)
    note missed "$(curl -s "http://$server_http/v1/node/$node" | grep -o '"Message":"Node heartbeat missed"' | wc -l)"
    note again $(($(counted update_alloc) - updates))
}

measure() {
    who=$1
    start_server
    measure_joining
    join_cluster
    measure_idle
    measure_work
    [ "$who" = nomad ] || measure_pull
    measure_return
    leave_cluster
    measure_encryption
    end_servers
}

print_table() {
    printf -v nomad_column '%12s %7s' nomad ratio
    header
    figure ' ms' 1000 2 less joined 'program start to ready at the server, p50' 250000 60000
    figure ' ms' 1000 2 less placed50 'submitted to process started, p50' 40000 12000
    figure ' ms' 1000 2 less placed99 '... p99' 120000 40000
    figure '' 1000 2 less encrypted '... with TLS, to the same without' 1200 1050
    figure ' ms' 1000 2 less running 'submitted to running at the server, p50' 250000 90000
    figure ' ms' 1000 2 less stopped 'stopped to complete at the server, p50' 150000 80000
    figure ' ms' 1000 0 less told '300 end at once: until the server knows all' - -
    figure '' 1 0 less updates '... calls that tell it' 20 8
    figure ' ms' 1000 0 less pulled '1,000 placed at once: until the node decided on all' 400000 80000
    figure '' 1000 2 less beats 'idle node: heartbeats for each that the TTL asks for' 1100 1000
    figure ' KB' 1000 0 less bytes '... bytes on the wire, an hour' 600000 400000
    figure '' 1 0 less registrations '... sent again though unchanged' 0 0
    figure ' MiB' 1048576 1 less memory '... proportional memory of the agent' 12582912 8388608
    figure ' %' 1000 3 less cpu '... CPU of the agent' 50 10
    figure '' 1 0 less missed 'killed with 300 allocations, back: heartbeats missed' 0 0
    figure '' 1 0 less again '... updates sent again' 0 0
    figure ' s' 1000000 1 less elected 'leader killed under 100 nodes: until all beat again' 30000000 12000000
    figure '' 100 2 less peak '... calls in the busiest second, to beats before' 500 200
    figure '' 1 0 less lost '... nodes that are not ready a minute later' 0 0
    figure '' 1 0 less late 'sessions lost by a call that is answered after 90 s' 0 0
    figure ' MB/s' 1 0 more decoded 'allocations decoded' 60 200
    figure ' /s' 1 0 more handshakes 'TLS handshakes, P-256, one core for both sides' 1500 4000
    figure ' MiB' 1 0 less simulated_memory '1,000 nodes in one simulation: memory' 381 95
    figure ' : 1' 1 0 more simulated '... simulated to wall time' 100 1000
}

command -v nomad > /dev/null || fail 'there is no program nomad, which is the server'
ulimit -n 16384
build everyday
prepare
trap cleanup_all EXIT
client_settings "$dir/data" "$port" "$server_rpc" > "$dir/client.hcl"
for one in drover nomad; do
    measure "$one"
done
who=drover
measure_fleet
measure_parts
print_table
