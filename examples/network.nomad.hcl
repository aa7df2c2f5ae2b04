# A web server in a network of its own: it listens on port 8080 there, and a port of the host that the node chooses
# leads to it. `drover alloc status` shows both. It takes an agent that runs as root.
job "site" {
  group "web" {
    network {
      mode     = "bridge"
      hostname = "site"

      port "http" {
        to = 8080
      }
    }

    service {
      name     = "site"
      provider = "nomad"
      port     = "http"

      check {
        type     = "http"
        path     = "/"
        interval = "10s"
        timeout  = "2s"
      }
    }

    task "server" {
      driver = "exec"

      config {
        command = "/bin/busybox"
        args    = ["httpd", "-f", "-p", "8080", "-h", "/local"]
      }

      template {
        data        = "Hello from {{ env \"NOMAD_ALLOC_ADDR_http\" }}\n"
        destination = "local/index.html"
      }
    }
  }
}
