variable "copies" {
  type    = number
  default = 1
}

variable "word" {
  default = "hello"
}

job "web" {
  meta {
    owner = "somebody"
  }

  group "app" {
    count = var.copies

    scaling {
      min = 1
      max = 4
    }

    update {
      min_healthy_time  = "0s"
      healthy_deadline  = "20s"
      progress_deadline = "30s"
    }

    task "server" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          trap 'echo got USR1' USR1
          echo "$WORD from $NOMAD_ALLOC_INDEX"
          echo "a complaint" >&2
          echo "a note" > "$NOMAD_TASK_DIR/note.txt"
          while true; do sleep 1000 & wait $!; done
        EOT
        ]
      }

      env {
        WORD = var.word
      }

      kill_timeout = "1s"

      resources {
        cpu    = 20
        memory = 32
      }
    }
  }
}
