# A small web server with a check; docs/tour.md walks through its life.
#
#   drover job run examples/tour.nomad.hcl
#
# Needs python3.

job "tour" {
  type = "service"

  update {
    max_parallel     = 1
    min_healthy_time = "2s"
    auto_revert      = true
  }

  group "web" {
    count = 2

    scaling {
      min     = 1
      max     = 5
      enabled = true
    }

    network {
      port "http" {}
    }

    task "server" {
      driver = "raw_exec"
      config {
        command = "python3"
        args    = ["-m", "http.server", "${NOMAD_PORT_http}", "--bind", "127.0.0.1", "--directory", "local"]
      }

      template {
        data        = "Hello, version one"
        destination = "local/index.html"
      }

      service {
        name     = "tour"
        port     = "http"
        provider = "nomad"

        check {
          type     = "http"
          path     = "/index.html"
          interval = "2s"
          timeout  = "1s"

          check_restart {
            limit = 2
            grace = "2s"
          }
        }
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
