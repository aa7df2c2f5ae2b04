# A service of two tasks: a server that leads, and a sidecar that ships its log.
#
#   drover up examples/web.nomad.hcl
#
# Needs nothing but a shell: the "server" only pretends to answer requests.

variable "pause" {
  type        = string
  default     = "2"
  description = "Seconds between two requests."
}

job "web" {
  type = "service"

  group "app" {
    # The node chooses a free port; tasks find it as NOMAD_PORT_http.
    network {
      port "http" {}
    }

    # The leader: when it ends, the sidecar is stopped after it.
    task "server" {
      driver = "raw_exec"
      leader = true

      # What the server gets to say goodbye, after SIGINT.
      kill_timeout = "5s"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          trap 'echo "server: closing"; exit 0' INT TERM
          echo "server: listening on port $NOMAD_PORT_http"
          n=0
          while true; do
            n=$((n + 1))
            echo "GET /page/$n 200"
            sleep "$PAUSE" &
            wait $!
          done
        EOT
        ]
      }

      env {
        PAUSE = var.pause
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }

    # Starts when the server runs, and lives beside it.
    task "shipper" {
      driver = "raw_exec"

      lifecycle {
        hook    = "poststart"
        sidecar = true
      }

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          trap 'exit 0' INT TERM
          tail -n +1 -F "$NOMAD_ALLOC_DIR/logs/server.stdout.0" |
            while read -r line; do echo "shipped: $line"; done &
          wait
        EOT
        ]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
