# Made from old.service by `drover job import`. What is not carried over, or not quite the same, is
# said in comments: read them before you run it.

job "old" {
  type = "service"

  group "old" {
    restart {
      attempts = 4
      interval = "10s"
      delay    = "100ms"
      mode     = "fail"
    }

    # Not carried over (line 12): Key=1: a section of somebody's own, which systemd leaves alone.

    task "old" {
      driver = "raw_exec"

      # StateDirectory (line 4): nobody makes it for the task: make /var/lib/old once, for its user
      # (below /run anew after each restart of the machine), or use a host volume (docs/volumes.md).
      # Driver raw_exec: it needs files of the host that exec does not show (docs/exec.md).
      # Not carried over (line 2): Type=forking: a program that goes to the background counts as
      # ended, and what it leaves is killed: let it stay in the foreground.

      user         = "games"
      kill_timeout = "30s"

      config {
        command  = "/opt/old/bin/start.sh"
        work_dir = "/opt/old"
      }

      env {
        STATE_DIRECTORY = "/var/lib/old"
      }

      resources {
        # No limit was given. Here there is one: a task that needs more is ended.
        memory = 300
      }

      # Not carried over (line 9): EnvironmentFile=/opt/old/*.env: only a single absolute path is
      # read.

      # ExecReload: run it with `drover action -job JOB reload`.
      action "reload" {
        command = "/opt/old/bin/reload.sh"
        args    = ["now"]
      }
    }
  }
}
