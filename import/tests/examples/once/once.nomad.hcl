# Made from compose.yaml by `drover job import`. What is not carried over, or not quite the same, is
# said in comments: read them before you run it.

# Line 9. Another value is given with -var OUT=… or NOMAD_VAR_OUT.
variable "OUT" {
  type    = string
  default = "./out"
}

# The directory of the compose file, which relative paths in it are below.
variable "project_dir" {
  type    = string
  default = "/srv/once"
}

job "report" {
  type = "batch"

  group "report" {
    restart {
      attempts = 0
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "report" {
      driver = "docker"
      # a path of the host (line 9): it is read with the default of OUT; whoever gives another value
      # must change it here, too.
      kill_timeout = "10s"

      config {
        image    = "python:3.12-slim"
        args     = ["python", "-c", "print('done')"]
        work_dir = "/work"
        # Absolute paths are the host's, which the agent's configuration has to allow:
        # `enabled = true` in `volumes` of its block for docker (docs/docker.md). Relative ones are
        # below the task's own directory and need nothing.
        volumes = ["${var.project_dir}/out:/work/out"]
      }

      resources {
        # No limit was given. Here there is one: a task that needs more is ended.
        memory = 300
      }
    }
  }
}
