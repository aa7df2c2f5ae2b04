# For tests that need an agent: it is started, and waited for.
export DROVER_ADDR=http://127.0.0.1:4646

start_agent() { # start_agent ARGUMENTS...
    drover agent -data-dir /data "$@" > /tmp/agent.log 2>&1 &
    tries=0
    until drover status > /dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 100 ]; then
            echo "VM: the agent does not answer"
            cat /tmp/agent.log
            exit 1
        fi
        sleep 0.3
    done
}

# A job file of this name with one task that runs this command.
job() { # job NAME TYPE COMMAND [CONFIG [DRIVER [USER]]]
    cat << JOB > "/tmp/$1.nomad.hcl"
job "$1" {
  type = "$2"
  group "g" {
    restart {
      attempts = 0
      mode     = "fail"
    }
    task "t" {
      driver = "${5:-raw_exec}"
      user   = "${6:-root}"
      config {
        command = "/bin/sh"
        args    = ["-c", "$3"]
        ${4:-}
      }
    }
  }
}
JOB
}

# Waits until a job's only allocation is in this state, unless it ended in another one.
until_job() { # until_job NAME STATE
    tries=0
    until drover job allocs -json "$1" > /tmp/allocs && grep -q "\"ClientStatus\": *\"$2\"" /tmp/allocs; do
        tries=$((tries + 1))
        if [ $tries -gt 90 ] || grep -q '"ClientStatus": *"\(complete\|failed\)"' /tmp/allocs; then
            echo "VM: $1 is not $2"
            drover job status "$1"
            drover alloc logs -job "$1"
            tail -n 20 /tmp/agent.log
            exit 1
        fi
        sleep 1
    done
}

# Runs a job to its end, and prints what it wrote.
said_by() { # said_by NAME
    drover job run -detach "/tmp/$1.nomad.hcl" > /dev/null || exit 1
    until_job "$1" complete >&2
    drover alloc logs -job "$1"
}

# Shows what a step found, and remembers that it is not what was to be.
failures=0
wrong() {
    echo "VM: WRONG: $*"
    failures=$((failures + 1))
}
