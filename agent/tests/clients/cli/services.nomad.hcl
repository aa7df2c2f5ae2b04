job "shop" {
  group "g" {
    network {
      port "http" {}
    }

    service {
      name     = "shop-web"
      port     = "http"
      provider = "nomad"
      tags     = ["blue", "v1"]

      check {
        type     = "tcp"
        interval = "1s"
        timeout  = "1s"
      }
    }

    service {
      name     = "shop-admin"
      port     = "http"
      provider = "nomad"
    }

    update {
      min_healthy_time = "0s"
    }

    task "server" {
      driver = "raw_exec"

      config {
        command = "/usr/bin/python3"
        args    = ["-m", "http.server", "--bind", "${NOMAD_IP_http}", "${NOMAD_PORT_http}"]
      }

      kill_timeout = "1s"

      resources {
        cpu    = 20
        memory = 64
      }
    }
  }
}
