# Made from backup.service and backup.timer by `drover job import`. What is not carried over, or not
# quite the same, is said in comments: read them before you run it.
#
# Description: Copies what matters to another machine
# Documentation: https://example.org/backup

job "backup" {
  type = "batch"

  # Not carried over (line 6): OnCalendar=Mon *-*-01 04:00: both the day of the week and that of the
  # month are given: cron takes either of them; write an expression for cron that comes near.
  # Not carried over (line 7): RandomizedDelaySec=10min: a launch comes at its time.
  # Not carried over (line 11): WantedBy=timers.target: jobs that were submitted are started by the
  # agent, also after a restart of the machine.

  periodic {
    crons     = ["30 2 * * mon,tue,wed,thu,fri"]
    time_zone = "Local"
    # A unit is never started beside itself.
    prohibit_overlap = true
    missed           = "run-once"
  }

  group "backup" {
    restart {
      attempts = 0
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    max_run_duration = "2h"

    # Not carried over (line 4): After=network-online.target: of what is a job here, too, a task
    # waits with `wait_for { service = "NAME" }` (docs/checks.md); units of systemd that the machine
    # needs are there when the agent is.
    # Not carried over (line 5): ConditionPathExists=/etc/backup.conf: a prestart task that fails
    # keeps the others from starting.
    # Not carried over (line 26): WantedBy=multi-user.target: jobs that were submitted are started
    # by the agent, also after a restart of the machine.

    task "backup-before" {
      driver = "raw_exec"

      # ExecStartPre of the unit.

      lifecycle {
        hook = "prestart"
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "set -e; /usr/bin/mkdir -p /var/backup || true"]
      }

      env {
        TARGET = "store.example.org"
        KEEP   = "14"
        HOST   = "$${attr.unique.hostname}"
        QUOTED = "two words"
      }

      resources {
        memory = 64
      }
    }

    task "backup-after-end" {
      driver = "raw_exec"

      # ExecStopPost of the unit.

      lifecycle {
        hook = "poststop"
      }

      config {
        # The command (line 17): + before the program: it has no more rights than the task's user.
        command = "/usr/bin/logger"
        args    = ["done"]
      }

      env {
        TARGET = "store.example.org"
        KEEP   = "14"
        HOST   = "$${attr.unique.hostname}"
        QUOTED = "two words"
      }

      resources {
        memory = 64
      }
    }

    task "backup" {
      driver = "raw_exec"

      # Driver raw_exec: it was root's, and sees and may do what it did (docs/exec.md).

      # kill_timeout (line 21): an agent gives a task 30 s at most, unless its configuration says
      # max_kill_timeout.
      kill_timeout = "90s"

      # Not carried over (line 20): Nice=10: start the program by nice, ionice or chrt.
      # Not carried over (line 23): StandardOutput=journal: the output is kept in log files
      # (`drover alloc logs`); see the logs block.

      config {
        # The command (line 16): $OPTIONS stays one word, whatever spaces are in it.
        command = "/bin/sh"
        args = [
          "-c",
          "set -e; /usr/local/bin/dump --to /var/backup/backup --keep \"$KEEP\"; /usr/local/bin/send '$HOME is not replaced' \"$OPTIONS\" \"$TARGET\"",
        ]
      }

      env {
        TARGET = "store.example.org"
        KEEP   = "14"
        HOST   = "$${attr.unique.hostname}"
        QUOTED = "two words"
      }

      resources {
        # CPUQuota (line 19): cpu counts MHz. A core is taken for 1000 of them here:
        # `drover node status -self` says how many it has.
        cpu    = 500
        memory = 512
      }

      # The file of variables of line 13, as it is when the job is submitted. It becomes a part of
      # the job; for secrets see `drover var put`.
      template {
        data            = fileexists("/etc/default/backup") ? file("/etc/default/backup") : "# not there\n"
        destination     = "secrets/variables-13.env"
        left_delimiter  = "[[[["
        right_delimiter = "]]]]"
        env             = true
      }
    }
  }
}
