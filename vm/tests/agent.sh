# For tests that need an agent: it is started, and waited for.
export DROVER_ADDR=http://127.0.0.1:4646

start_agent() {
    drover agent -data-dir /data > /tmp/agent.log 2>&1 &
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
job() { # job NAME TYPE COMMAND
    cat << JOB > "/tmp/$1.nomad.hcl"
job "$1" {
  type = "$2"
  group "g" {
    restart {
      attempts = 0
      mode     = "fail"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "$3"]
      }
    }
  }
}
JOB
}
