job "tasks" {
  group "g" {
    update {
      min_healthy_time = "0s"
    }

    task "prepare" {
      driver = "raw_exec"

      lifecycle {
        hook = "prestart"
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo prepared > $NOMAD_ALLOC_DIR/data/ready; echo ready"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }

    task "main" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          trap 'echo got USR1' USR1
          for n in 1 2 3 4 5; do echo "number $n"; done
          while true; do sleep 1000 & wait $!; done
        EOT
        ]
      }

      template {
        data        = "port = 1\nname = {{ env \"NOMAD_JOB_NAME\" }}\n"
        destination = "local/app.conf"
      }

      action "hello" {
        command = "/bin/sh"
        args    = ["-c", "echo hello from the action"]
      }

      kill_timeout = "1s"

      resources {
        cpu    = 20
        memory = 16
      }
    }

    task "beside" {
      driver = "raw_exec"

      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo beside; exec sleep 1000"]
      }

      kill_timeout = "1s"

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
