# A job to begin with: run it with "drover job run FILE", see it with "drover status example", and
# stop it with "drover job stop example".

job "example" {
  # service: runs until it is stopped. batch: runs until it succeeds. system and sysbatch: one copy
  # on each node.
  type = "service"

  # How a new version replaces an old one.
  update {
    # As many copies as this are replaced at a time.
    max_parallel = 1

    # A copy counts as healthy when its tasks have run for so long.
    min_healthy_time = "5s"
    healthy_deadline = "2m"

    # A version that does not become healthy is given up, and the one before it comes back.
    auto_revert = true
  }

  # Tasks of a group run together, and share a directory and a network.
  group "app" {
    # Copies of the group.
    count = 1

    network {
      # A free port of the node, which tasks find as NOMAD_PORT_http. For a port of your choice:
      # port "http" { static = 8080 }
      port "http" {}
    }

    # How often tasks that end with an error are started again.
    restart {
      attempts = 2
      interval = "30m"
      delay    = "15s"
      mode     = "fail"
    }

    # What of the group's directory is kept for a longer time, and its bounds.
    ephemeral_disk {
      sticky = true
      size   = 100
    }

    task "server" {
      # Which driver runs the task; its settings are in "config".
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "while true; do cat \"$NOMAD_TASK_DIR/greeting\"; sleep 5; done"]
      }

      env {
        LANG = "C.UTF-8"
      }

      # A file that is written before the task starts. Templates read variables, services and files.
      template {
        destination = "local/greeting"
        data        = "Hello from {{ env \"NOMAD_ALLOC_NAME\" }}, port {{ env \"NOMAD_PORT_http\" }}\n"
      }

      # Files that are fetched before the task starts:
      # artifact {
      #   source = "https://example.com/file.tar.gz"
      # }

      # How long a task may take to end after it was asked to.
      kill_timeout = "10s"

      logs {
        max_files     = 5
        max_file_size = 10
      }

      # What the task gets: MHz and MiB.
      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
