job "fails" {
  type = "batch"

  group "g" {
    restart {
      attempts = 1
      interval = "1h"
      delay    = "1s"
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "exit 7"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
