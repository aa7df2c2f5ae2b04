# More of a node of a cluster: encrypted, with a thousand allocations at once, one of a hundred, and in parts. Sourced,
# not run, beside cluster.sh.

# From a plan of the server until the node has decided on all of it.
measure_pull() {
    local from_plan from_first
    read -r from_plan from_first < <(measured pulled "$server_http" "$addr" "$(runs 1000 200)") ||
        fail "$who: nobody saw when it took in a plan"
    note pulled "$from_plan"
    note pulled_from_first "$from_first"
    curl -s -X DELETE "http://$server_http/v1/job/pulled?purge=true" > /dev/null
    sleep "$(runs 30 10)"
}

# tls_settings ROLE: with the certificate of a server or a client. Users come without.
tls_settings() {
    cat << EOF
tls {
  http                   = false
  rpc                    = true
  verify_server_hostname = true
  ca_file                = "$dir/tls/nomad-agent-ca.pem"
  cert_file              = "$dir/tls/global-$1-nomad.pem"
  key_file               = "$dir/tls/global-$1-nomad-key.pem"
}
EOF
}

make_certificates() {
    [ ! -e "$dir/tls" ] || return 0
    mkdir "$dir/tls"
    (
        cd "$dir/tls"
        nomad tls ca create
        nomad tls cert create -server
        nomad tls cert create -client
    ) >> "$dir/log" 2>&1 || fail 'there are no certificates'
}

# encrypted_settings PORT SERVER: what our agent is told.
encrypted_settings() {
    cat << EOF
data_dir  = "$dir/second"
bind_addr = "127.0.0.1"
log_level = "WARN"
ports {
  http = $1
}
client {
  servers = ["$2"]
}
EOF
    tls_settings client
}

# One more server and one more node, with TLS, beside those without: their turns alternate.
measure_encryption() {
    local plain encrypted second http=$((port + 20)) rpc=127.0.0.1:$((port + 21)) own=$((port + 30))
    make_certificates
    begin_server server_tls "$http" 1 "$(tls_settings server)"
    await_leader "$http"
    mkdir -p "$dir/second"
    if [ "$who" = drover ]; then
        encrypted_settings "$own" "$rpc" > "$dir/second.hcl"
        command=("$program" agent -config "$dir/second.hcl")
    else
        { client_settings "$dir/second" "$own" "$rpc"; tls_settings client; } > "$dir/second.hcl"
        command=(env -i PATH="$PATH" HOME="$dir" nomad agent -config "$dir/second.hcl")
    fi
    read -r second _ < <(inside "$client" join "127.0.0.1:$http" "$dir/log" -- "${command[@]}") ||
        fail "$who does not join with TLS"
    join_cluster
    # What probes find is told by then.
    sleep "$(runs 15 5)"
    read -r plain encrypted < <(measured beside "$server_http" "127.0.0.1:$http" "$(runs 200 30)" "$dir/stamps") ||
        fail "$who: nobody saw how long starts take with TLS"
    rm -f "$dir/stamps"
    note plain50 "$plain"
    note encrypted50 "$encrypted"
    note encrypted $((encrypted * 1000 / plain))
    kill -KILL "$second"
    leave_cluster
    forget "$dir/second"
}

# start_nodes COUNT: each has an empty directory and an API. Sets agents to where these are.
start_nodes() {
    local number server
    agents=()
    for ((number = 0; number < $1; number++)); do
        agents+=("127.0.0.1:$((port + 100 + number))")
        mkdir -p "$dir/nodes/$number"
        command=("$program" agent --data-dir "$dir/nodes/$number" --http "${agents[-1]}" --log-level error)
        for server in 0 1 2; do
            command+=(-servers "127.0.0.1:$((port + 41 + (number + server) % 3 * 10))")
        done
        inside "$client" start "$dir/log" "$dir/log" -- "${command[@]}" > /dev/null
        sleep 0.1
    done
}

# Three servers and many nodes. The leader dies.
measure_fleet() {
    local number others='' https='' again peak lost agents=() count=100
    for number in 0 1 2; do
        others+="${others:+, }\"127.0.0.1:$((port + 42 + number * 10))\""
        https+="${https:+,}127.0.0.1:$((port + 40 + number * 10))"
    done
    for number in 0 1 2; do
        begin_server "server_$number" $((port + 40 + number * 10)) 3 \
            "server { server_join { retry_join = [$others] } }"
    done
    await_leader $((port + 40))
    start_nodes $count
    "$client" nodes "${https%%,*}" $count || fail 'not all nodes are ready'
    # Each tells what its probes find, and then rests.
    sleep "$(runs 60 30)"
    read -r again peak lost < <(measured failover "$https" "$figures" "$(IFS=,; echo "${servers[*]}")" \
        "$(runs 120 40)" "${agents[@]}") || fail 'nobody saw what became of the nodes'
    note elected "$again"
    note peak "$peak"
    note lost "$lost"
    for number in $(cat "$group/cgroup.procs"); do
        kill -KILL "$number" 2> /dev/null || true
    done
    end_servers
    sleep 0.3
    forget "$dir/nodes"
}

# What needs no agent: tests that measure, and a simulated fleet.
measure_parts() {
    local said
    said=$(said_by cargo test --release -q -p drover-rpc --test speed -- --ignored --nocapture decoding)
    note_part decoded 's/.*decoded \([0-9]*\) MB.*/\1/p' "$said"
    said=$(said_by cargo test --release -q -p drover-tls --test speed -- --ignored --nocapture)
    note_part handshakes 's/^\([0-9]*\) handshakes a second.*/\1/p' "$said"
    said=$(said_by cargo run --profile search -q -p drover-sim-tests -- fleet --nodes 1000)
    note_part simulated 's/.*(\([0-9]*\) : 1).*/\1/p' "$said"
    note_part simulated_memory 's/.* \([0-9]*\) MiB at most.*/\1/p' "$said"
    # It passes if the session is still there.
    said=$(said_by cargo test --release -q -p drover-rpc --test nomad -- --ignored waits_90_s)
    note_part late 's/.* passed; \([0-9]*\) failed.*/\1/p' "$said"
}

# said_by COMMAND...: what it writes. If it fails, what it complains of is told, and its figures are missing.
said_by() {
    "$@" 2> "$dir/complaint" || { echo "bench: $*: failed" && tail -n 5 "$dir/complaint"; } >&2
}

# note_part FIGURE PATTERN TEXT: the number that a pattern of sed finds, if any.
note_part() {
    local number
    number=$(sed -n "$2" <<< "$3" | head -n 1)
    [ -z "$number" ] || note "$1" "$number"
}
