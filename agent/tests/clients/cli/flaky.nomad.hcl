job "flaky" {
  type = "batch"

  group "g" {
    restart {
      attempts = 0
      mode     = "fail"
    }

    reschedule {
      attempts       = 1
      interval       = "1h"
      delay          = "20s"
      delay_function = "constant"
      unlimited      = false
    }

    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo gone; exit 3"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
