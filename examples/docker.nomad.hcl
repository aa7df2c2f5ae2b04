# A web server in a container, and a port of the machine that leads to it.
job "docker" {
  group "web" {
    network {
      port "http" {
        to = 80
      }
    }

    task "server" {
      driver = "docker"

      config {
        image   = "nginx:1.27-alpine"
        ports   = ["http"]
        volumes = ["local/index.html:/usr/share/nginx/html/index.html:ro"]
      }

      template {
        data        = "Hello from {{ env \"NOMAD_ALLOC_NAME\" }}.\n"
        destination = "local/index.html"
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
