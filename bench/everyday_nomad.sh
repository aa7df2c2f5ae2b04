# Starting and ending an agent of Nomad that is client and server in one, as one machine would have
# it. Sourced, not run.

# What it is told besides.
nomad_options=()

start_nomad() {
    mkdir -p "$dir/nomad"
    {
        nomad_settings "$dir/nomad" "${addr##*:}"
        cat << EOF
server {
  enabled          = true
  bootstrap_expect = 1
}
client {
  enabled = true
  servers = ["127.0.0.1:$((${addr##*:} + 1))"]
  gc_max_allocs = 20000
  options = {
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean,consul,vault"
  }
}
limits {
  http_max_conns_per_client = 5000
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
EOF
    } > "$dir/nomad.hcl"
    inside env -i PATH="$PATH" HOME="$dir" nomad agent -config "$dir/nomad.hcl" "${nomad_options[@]}" \
        >> "$dir/log" 2>&1 &
    agent=$!
}

# Ends it and what it left. Everything in the bench's group is of it.
end_nomad() {
    local pid
    kill -KILL "$agent" 2> /dev/null || true
    wait "$agent" 2> /dev/null || true
    agent=
    for pid in $(cat "$group/cgroup.procs"); do
        kill -KILL "$pid" 2> /dev/null || true
    done
    sleep 0.5
    forget "$dir/nomad"
}
