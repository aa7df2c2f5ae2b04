job "ticks" {
  group "g" {
    restart {
      attempts = 1000
      interval = "1h"
      delay    = "1s"
    }

    task "tick" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo tick"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
