# Made from api@one.service by `drover job import`. What is not carried over, or not quite the same,
# is said in comments: read them before you run it.
#
# Description: An interface for machines (%i)

job "api-one" {
  type = "service"

  group "api-one" {
    # Restart=on-failure (line 13): in a job of type service it is started again also when it ends
    # with exit code 0.
    restart {
      attempts = 3
      interval = "1m"
      delay    = "1s"
      mode     = "fail"
    }

    # Not carried over (line 3): Wants=postgresql.service: of what is a job here, too, a task waits
    # with `wait_for { service = "NAME" }` (docs/checks.md); units of systemd that the machine needs
    # are there when the agent is.

    task "api-one-after-start" {
      driver = "exec"

      # ExecStartPost of the unit.

      user = "www-data"

      lifecycle {
        hook = "poststart"
      }

      config {
        command = "/usr/bin/curl"
        args    = ["-fs", "http://127.0.0.1:8000/"]
      }

      env {
        SECOND = "2"
      }

      resources {
        memory = 64
      }
    }

    task "api-one" {
      driver = "exec"

      # Driver exec: it sees the host's programs, for reading only, and its own files
      # (docs/exec.md).
      # Not carried over (line 6): Type=notify: nobody receives the program's message that it is
      # ready: write a check (docs/checks.md).

      user = "www-data"

      # Not carried over: ProtectSystem=strict (line 21), PrivateTmp=yes (line 22),
      # NoNewPrivileges=true (line 23): exec keeps the task apart in its own way, which docs/exec.md
      # lists; compare.

      kill_signal  = "SIGINT"
      kill_timeout = "30s"

      # Not carried over (line 27): KillMode=process: whatever the task leaves is killed.
      # Not carried over (line 11): ExecStop=/usr/bin/api-server --stop: a task is asked to end by
      # its kill_signal; a task with `lifecycle { hook = "poststop" }` runs after it.
      # Not carried over (line 8): Group=www-data: the task has the groups of its user.
      # Not carried over (line 24): LimitNOFILE=65536: set it in a shell line before the program,
      # such as `ulimit -n 65536; exec PROGRAM`.
      # Not carried over (line 25): TasksMax=100: the agent's configuration says it for all tasks:
      # `client { pids_limit }`.
      # Not carried over (line 30): WatchdogSec=30: write a check that restarts it (docs/checks.md).
      # Not carried over (line 31): Slice=api.slice: the agent's tasks are in control groups of its
      # own.
      # Not carried over (line 32): Invented=1: nothing here is like it.

      config {
        # The command (line 9): @ before the program: it is called by its path, and not api.
        command = "/usr/bin/api-server"
        args    = ["--instance=one", "$${NOT_REPLACED}"]
        # The agent has to allow them with allow_caps (docs/exec.md).
        cap_add = ["net_bind_service"]
      }

      env {
        SECOND = "2"
      }

      resources {
        memory     = 200
        memory_max = 300
      }

      # Not carried over (line 10): ExecReload: a task is sent a signal by
      # `drover alloc signal -s SIGHUP ALLOC`.
    }
  }
}
