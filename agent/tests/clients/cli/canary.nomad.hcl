variable "word" {
  default = "one"
}

variable "revert" {
  type    = bool
  default = false
}

job "canary" {
  group "g" {
    count = 2

    update {
      canary           = 1
      max_parallel     = 1
      min_healthy_time = "0s"
      auto_revert      = var.revert
    }

    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }

      env {
        WORD = var.word
      }

      kill_timeout = "1s"

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
