variable "word" {
  default = "hello"
}

variable "copies" {
  type    = number
  default = 1
}

job "talker" {
  group "talk" {
    count = var.copies

    update {
      min_healthy_time = "0s"
    }

    restart {
      attempts = 5
      delay    = "10ms"
    }

    task "say" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          trap 'echo "got USR1"' USR1
          trap 'echo "goodbye"; exit 0' INT
          echo "${var.word} from $NOMAD_ALLOC_ID"
          echo "a complaint" >&2
          while true; do sleep 1000 & wait $!; kill $!; done
        EOT
        ]
      }
    }
  }
}
