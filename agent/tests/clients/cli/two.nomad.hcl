job "two" {
  priority = 60

  group "left" {
    count = 2

    update {
      min_healthy_time = "0s"
    }

    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }

      kill_timeout = "1s"

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }

  group "right" {
    update {
      min_healthy_time = "0s"
    }

    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }

      kill_timeout = "1s"

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
