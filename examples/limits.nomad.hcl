# What a task may take, and what becomes of one that wants more. It takes an agent that runs as root.
#
#   drover up examples/limits.nomad.hcl
#
# "hungry" is killed for its memory, and `drover alloc status` says with which limit. "pinned" has a processor for
# itself: no other task of this agent runs on it meanwhile.
job "limits" {
  type = "batch"

  group "hungry" {
    restart {
      attempts = 0
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "eats" {
      driver = "exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo I take all that I get; tail /dev/zero"]
      }

      resources {
        cpu    = 50
        memory = 16
      }
    }
  }

  group "pinned" {
    task "counts" {
      driver = "exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "grep Cpus_allowed_list /proc/self/status; sleep 5"]
      }

      resources {
        cores  = 1
        memory = 16
      }
    }
  }
}
