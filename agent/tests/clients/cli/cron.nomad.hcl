job "cron" {
  type = "batch"

  periodic {
    crons            = ["0 0 1 1 *"]
    prohibit_overlap = true
  }

  group "g" {
    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo happy new year"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
